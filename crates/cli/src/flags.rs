//! What was typed. What it means is found out in [`crate::meaning`].

use crate::check::CheckFlags;
use crate::commands::manual::{CompletionsFlags, ManFlags};
use crate::commands::plan::PlanWords;
use crate::connection::ConnectionFlags;
use crate::factors::FactorFlags;
use crate::outcome::{self, Outcome, Usage};
use crate::plan_file::{self, PlanFlag};
use crate::requests::RequestFlags;
use crate::shape::ShapeFlags;
use crate::telemetry::TelemetryFlags;
use crate::{commands, usage};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use duel_report::Format;
use std::ffi::OsString;
use std::path::PathBuf;

/// The command line, sorted.
pub(crate) struct Flags {
    pub(crate) command: Command,
    pub(crate) load: LoadFlags,
    pub(crate) output: OutputFlags,
}

/// What is to be done.
pub(crate) enum Command {
    Compare(CompareFlags),
    Run(RunFlags),
    Check(Box<CheckFlags>, Box<LoadFlags>),
    Demo(DemoFlags),
    Why(WhyFlags),
    List(ListFlags),
    Show(RunName),
    Diff(DiffFlags),
    Report(ReportFlags),
    Export(ExportFlags),
    Rerun(RerunFlags),
    Facts(FactsFlags),
    Lens(LensFlags),
    LensChild(ChildFlags),
    Plan(PlanWords),
    Man(ManFlags),
    Completions(CompletionsFlags),
    Ruler(RulerFlags),
}

/// Default of `--tls`.
pub(crate) const TLS_VERSIONS: &str = "1.2,1.3";
/// Default of `--alpn`.
pub(crate) const ALPN: &str = "http/1.1";
/// What the help of a check ends with.
const CHECK: &str = "\
Examples:
  duel check https://a.example/ -d 5s --critical 'p99<200ms' --warning 'p99<100ms'
  duel check old=https://a/ new=https://b/ --critical 'slower than old by 5%'
  duel check last --critical 'errors<1%' --critical 'rate>500/s' --junit check.xml

A threshold on a figure is held against all requests of the run. 'slower than' is CRITICAL or OK if the whole interval of \
the verdict says so, and UNKNOWN where it does not tell.

TIME is 500ms, 10s, 2m or the like; a bare number counts seconds.
Exit codes: 0 OK, 1 WARNING, 2 CRITICAL (a target that does not answer, too), 3 UNKNOWN (not known, or could not be \
checked).";
/// As in wrk, h2load and ab, where a bare number of `-d` or `-t` counts seconds.
const TIMES: &str = "TIME is 500ms, 10s, 2m or the like; a bare number counts seconds.";

#[derive(Parser)]
#[command(
    name = "duel",
    version,
    about = "Which of two systems is faster, by how much, how sure, and why",
    long_about = "Point duel at two or more systems that should be equal. It loads them in turn, in short slots in \
                  random mirrored order, says which is faster, by how much and how sure, and with --why finds out the \
                  reason by further experiments.",
    after_help = "Examples:\n  \
        duel demo                                         see it work; nothing needed\n  \
        duel https://a.example/f https://b.example/f      compare two servers\n  \
        duel old=https://a/f new=https://b/f --why        name them, and find the cause\n  \
        duel run https://a.example/ -c 100 -d 10s         load one server\n  \
        duel run https://a.example/ --rate 500            at a fixed rate, latency from the due time\n  \
        duel https://a/f https://b/f -c 1..64             at 1, 2, 4 ... 64 connections: table, chart, scaling law\n  \
        duel list; duel show last; duel diff last~1 last  look at earlier runs\n\n\
        TIME is 500ms, 10s, 2m or the like; a bare number counts seconds.\n\
        Exit codes: 0 done, 1 could not run, 2 bad usage, 130 interrupted.",
    override_usage = "duel [OPTIONS] [NAME=]URL [NAME=]URL...\n       duel [OUTPUT OPTIONS] COMMAND ...",
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    compare: CompareFlags,
    #[command(flatten)]
    load: LoadFlags,
    #[command(flatten)]
    output: OutputFlags,
}

#[derive(Subcommand)]
enum Verb {
    /// Load one target and show its figures
    #[command(after_help = TIMES)]
    Run {
        #[command(flatten)]
        run: RunFlags,
        #[command(flatten)]
        load: Box<LoadFlags>,
    },
    /// Hold targets, or an earlier run, against thresholds: one line and an exit code for monitoring and CI
    #[command(after_help = CHECK)]
    Check {
        #[command(flatten)]
        check: Box<CheckFlags>,
        #[command(flatten)]
        load: Box<LoadFlags>,
    },
    /// Compare two embedded HTTPS servers, one of them really handicapped, and find out why it is slower
    Demo {
        #[command(flatten)]
        demo: DemoFlags,
    },
    /// Find out why the targets of an earlier comparison differ
    #[command(after_help = TIMES)]
    Why(WhyFlags),
    /// Take hey's command line and print what hey prints; see duel hey -help
    #[command(disable_help_flag = true)]
    Hey(HeyFlags),
    /// List the runs in the archive, the latest first
    List {
        #[command(flatten)]
        list: ListFlags,
    },
    /// Show an earlier run, judged again from its raw data
    Show {
        #[command(flatten)]
        run: RunName,
    },
    /// Show what differs between two earlier runs
    Diff {
        #[command(flatten)]
        diff: DiffFlags,
    },
    /// Write an earlier run as one page, or its charts as files
    #[command(after_help = "Secrets of header fields, addresses and bodies are left out of the page. It needs no \
                            network to be shown.")]
    Report(ReportFlags),
    /// Write an earlier run in a form that other programs read
    Export(ExportFlags),
    /// Repeat an earlier run with the same plan and seed
    Rerun(RerunFlags),
    /// Show what machines are, side by side, what differs first
    Facts {
        #[command(flatten)]
        facts: FactsFlags,
    },
    /// Measure a libcrypto alone: does it use the CPU's AES instructions?
    Lens(LensFlags),
    /// Load a libcrypto and measure it, for `duel lens`
    #[command(hide = true)]
    LensChild(ChildFlags),
    /// Print the plan file of a command line
    #[command(disable_help_flag = true)]
    Plan(PlanWords),
    /// Print the manual page
    Man(ManFlags),
    /// Print completions for a shell
    Completions(CompletionsFlags),
    /// Serve the ruler: a test server whose truth is known
    #[command(hide = true)]
    Ruler(RulerFlags),
}

/// Options of a comparison.
#[derive(Args, Clone)]
pub(crate) struct CompareFlags {
    /// Targets as [NAME=]URL; the first is the baseline
    #[arg(value_name = "[NAME=]URL")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) judging: JudgingFlags,
    /// Go on until the cause of a difference is found
    #[arg(long)]
    pub(crate) why: bool,
    #[command(flatten)]
    pub(crate) diagnosis: DiagnosisFlags,
    #[command(flatten)]
    pub(crate) hosts: HostFlags,
    #[command(flatten)]
    pub(crate) telemetry: TelemetryFlags,
    #[command(flatten)]
    pub(crate) plan: PlanFlag,
}

/// How a cause is looked for.
#[derive(Args, Clone)]
pub(crate) struct DiagnosisFlags {
    /// Most load time for finding the cause
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) why_budget: String,
    /// Name also the causes that the fault bench has not proven yet; without, they are told as suspicions
    #[arg(long, hide = true)]
    pub(crate) name_suspects: bool,
    /// Let a private twin of a server be started, as it is and with one thing changed, where that can prove the cause: of
    /// every target that is read with --local, or of NAME only (repeatable). It runs on this machine, in namespaces and
    /// on files of its own, and ends with duel; the running server is not touched. It takes as much memory again. Linux, root
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) may_start_twin: Vec<String>,
}

/// How a comparison is judged.
#[derive(Args, Clone)]
#[command(next_help_heading = "Comparing")]
pub(crate) struct JudgingFlags {
    /// Difference that does not matter in practice
    #[arg(long, value_name = "SHARE", default_value = "2%")]
    pub(crate) margin: String,
    /// Length of a slot [default: from the latency seen]
    #[arg(long, value_name = "TIME")]
    pub(crate) slot: Option<String>,
    /// Use the whole time even when the interval is narrow enough before
    #[arg(long)]
    pub(crate) no_early_stop: bool,
    /// Seed of all random choices [default: from the clock; shown and kept]
    #[arg(long, allow_negative_numbers = true, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Options of a run on one target.
#[derive(Args, Clone)]
pub(crate) struct RunFlags {
    /// The target as [NAME=]URL, or null: to measure the generator itself
    #[arg(value_name = "[NAME=]URL")]
    pub(crate) target: String,
    /// Number of requests instead of a duration
    #[arg(short = 'n', long, allow_negative_numbers = true, value_name = "N")]
    pub(crate) requests: Option<u64>,
    /// Seed of Poisson arrivals
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) hosts: HostFlags,
    /// Progress as lines for programs: seconds, and how many requests are done, twice a second on standard error
    #[arg(long)]
    pub(crate) progress_log: bool,
    #[command(flatten)]
    pub(crate) telemetry: TelemetryFlags,
    #[command(flatten)]
    pub(crate) plan: PlanFlag,
}

/// The load, the same for every target.
#[derive(Args, Clone)]
pub(crate) struct LoadFlags {
    /// Connections to each target; a list makes a factor: 1,2,4 or 8..64, which doubles [default: 50]
    #[arg(short = 'c', long, allow_negative_numbers = true, value_name = "N", help_heading = "Load")]
    pub(crate) connections: Option<String>,
    /// How long: of the run, or most load time of a comparison over all targets [default: 10s, or 30s; with factors 4s for
    /// each treatment on each target, if that is more]
    #[arg(short = 'd', long, value_name = "TIME", help_heading = "Load")]
    pub(crate) duration: Option<String>,
    /// Open loop: requests per second, whether or not the server keeps up; latency counts from the due time. A list makes a
    /// factor
    #[arg(long, allow_negative_numbers = true, value_name = "PER_SECOND", help_heading = "Load")]
    pub(crate) rate: Option<String>,
    /// How an open loop's requests are spaced
    #[arg(long, value_enum, default_value_t = ArrivalFlag::Constant, help_heading = "Load")]
    pub(crate) arrival: ArrivalFlag,
    /// Closed loop: pause between an answer and the connection's next request
    #[arg(long, value_name = "TIME", conflicts_with = "rate", help_heading = "Load")]
    pub(crate) think: Option<String>,
    /// Worker threads [default: half of the CPUs]
    #[arg(short = 't', long, allow_negative_numbers = true, value_name = "N", help_heading = "Load")]
    pub(crate) threads: Option<u32>,
    /// Longest time of a request
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Load")]
    pub(crate) timeout: String,
    /// Longest time to connect, TLS included
    #[arg(long, value_name = "TIME", default_value = "10s", help_heading = "Load")]
    pub(crate) connect_timeout: String,
    #[command(flatten)]
    pub(crate) shape: ShapeFlags,

    /// Method; a list makes a factor: GET,HEAD
    #[arg(short = 'm', long, default_value = "GET", help_heading = "Request")]
    pub(crate) method: String,
    /// Further header field, repeatable; @FILE reads fields from a file, which keeps secrets out of the process list
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = "Request")]
    pub(crate) headers: Vec<String>,
    /// Request body
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file", help_heading = "Request")]
    pub(crate) body: Option<String>,
    /// Request body from a file
    #[arg(long, value_name = "FILE", help_heading = "Request")]
    pub(crate) body_file: Option<PathBuf>,
    /// Request body of generated text that hardly compresses; a list makes a factor: 0,1k,64k
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["body", "body_file"], help_heading = "Request")]
    pub(crate) body_size: Option<String>,
    /// Host field, where it differs from the address
    #[arg(long, value_name = "NAME", help_heading = "Request")]
    pub(crate) host: Option<String>,
    /// Accept-Encoding; 'identity' sends none, and in a list makes a factor: identity,gzip
    #[arg(long, value_name = "LIST", default_value = "gzip", help_heading = "Request")]
    pub(crate) encoding: String,
    /// A new connection for each request
    #[arg(long, help_heading = "Request")]
    pub(crate) no_keepalive: bool,
    /// Whether connections are kept alive: on (the default), off, or both as a factor: on,off
    #[arg(long, value_name = "ON|OFF", conflicts_with = "no_keepalive", help_heading = "Request")]
    pub(crate) keepalive: Option<String>,
    /// Follow up to N redirects before measuring, then measure where they lead
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 0, help_heading = "Request")]
    pub(crate) follow: u32,
    #[command(flatten)]
    pub(crate) requests: RequestFlags,

    /// Connect to ADDR:PORT2 for requests to HOST:PORT1; empty parts apply to all, or stay
    #[arg(long, value_name = "HOST:PORT1:ADDR:PORT2", help_heading = "Connection")]
    pub(crate) connect_to: Vec<String>,
    /// Connect to this Unix socket
    #[arg(long, value_name = "PATH", help_heading = "Connection")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Acknowledge what arrives at once, not after up to 40 ms (Linux)
    #[arg(long, help_heading = "Connection")]
    pub(crate) quick_ack: bool,
    /// Announce that we take TCP segments of at most this size (88 to 32767)
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(88..=32767), help_heading = "Connection")]
    pub(crate) segment_bytes: Option<u16>,
    #[command(flatten)]
    pub(crate) connection: ConnectionFlags,

    /// Do not verify certificates
    #[arg(short = 'k', long, help_heading = "TLS")]
    pub(crate) insecure: bool,
    /// PEM file of certificate authorities instead of the system's
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub(crate) ca: Option<PathBuf>,
    /// PEM file of the client's certificate chain
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub(crate) client_cert: Option<PathBuf>,
    /// PEM file of the client's key
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    pub(crate) client_key: Option<PathBuf>,
    /// Versions allowed
    #[arg(long, value_name = "LIST", default_value = TLS_VERSIONS, help_heading = "TLS")]
    pub(crate) tls: String,
    /// Cipher suites allowed, by IANA name, in order of preference [default: all of the library's]
    #[arg(long, value_name = "LIST", help_heading = "TLS")]
    pub(crate) ciphers: Option<String>,
    /// Key exchange groups in order of preference [default: x25519,secp256r1,secp384r1]
    #[arg(long, value_name = "LIST", help_heading = "TLS")]
    pub(crate) groups: Option<String>,
    /// Resume sessions on new connections
    #[arg(long, help_heading = "TLS")]
    pub(crate) resumption: bool,
    /// Protocols offered by ALPN; empty offers none
    #[arg(long, value_name = "LIST", default_value = ALPN, help_heading = "TLS")]
    pub(crate) alpn: String,
    /// Name for SNI and verification, where it differs from the address
    #[arg(long, value_name = "NAME", help_heading = "TLS")]
    pub(crate) server_name: Option<String>,

    #[command(flatten)]
    pub(crate) factors: FactorFlags,
}

/// Spacing of an open loop's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalFlag {
    /// Equal gaps
    Constant,
    /// Exponential gaps, as from many independent users
    Poisson,
}

impl From<ArrivalFlag> for duel_model::Arrival {
    fn from(flag: ArrivalFlag) -> Self {
        match flag {
            ArrivalFlag::Constant => Self::Constant,
            ArrivalFlag::Poisson => Self::Poisson,
        }
    }
}

/// What an archived plan does not hold.
#[derive(Args, Clone)]
pub(crate) struct SecretFlags {
    /// Header field whose value was not kept because it is a secret, repeatable; @FILE reads fields from a file
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
}

/// Where results go. Global: they may stand before a command and behind it.
#[derive(Args, Clone)]
pub(crate) struct OutputFlags {
    /// Print exactly one JSON document (schema duel/1)
    #[arg(long, help_heading = "Output", global = true)]
    pub(crate) json: bool,
    /// No progress
    #[arg(short = 'q', long, help_heading = "Output", global = true)]
    pub(crate) quiet: bool,
    /// Keep runs in this file [default: $DUEL_ARCHIVE, or runs.sqlite in the user's data folder]
    #[arg(long, value_name = "FILE", help_heading = "Output", global = true)]
    pub(crate) archive: Option<PathBuf>,
    /// Do not keep this run
    #[arg(long, conflicts_with = "archive", help_heading = "Output", global = true)]
    pub(crate) no_archive: bool,
}

/// Options of the demonstration.
#[derive(Args, Clone)]
pub(crate) struct DemoFlags {
    /// Seed of all random choices
    #[arg(long, allow_negative_numbers = true, value_name = "N")]
    pub(crate) seed: Option<u64>,
}

/// Options of finding out why.
#[derive(Args, Clone)]
pub(crate) struct WhyFlags {
    #[command(flatten)]
    pub(crate) run: RunName,
    #[command(flatten)]
    pub(crate) diagnosis: DiagnosisFlags,
    #[command(flatten)]
    pub(crate) secrets: SecretFlags,
    #[command(flatten)]
    pub(crate) telemetry: TelemetryFlags,
}

/// Options of repeating a run.
#[derive(Args, Clone)]
pub(crate) struct RerunFlags {
    #[command(flatten)]
    pub(crate) run: RunName,
    #[command(flatten)]
    pub(crate) secrets: SecretFlags,
    #[command(flatten)]
    pub(crate) telemetry: TelemetryFlags,
}

/// Options of listing runs.
#[derive(Args, Clone)]
pub(crate) struct ListFlags {
    /// How many
    #[arg(short = 'n', long, allow_negative_numbers = true, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
}

/// An earlier run.
#[derive(Args, Clone)]
pub(crate) struct RunName {
    /// Id of the run, a unique beginning of it, 'last', or 'last~1' for the one before
    #[arg(value_name = "RUN")]
    pub(crate) name: String,
}

/// Machines to look at.
#[derive(Args, Clone)]
pub(crate) struct FactsFlags {
    /// Machines as [NAME=]HOST: 'local' for this one, or a destination of ssh
    #[arg(value_name = "[NAME=]HOST", default_value = "local")]
    pub(crate) hosts: Vec<String>,
    /// The server on NAME is whoever listens on this TCP port
    #[arg(long, value_name = "NAME=PORT")]
    pub(crate) port: Vec<String>,
    #[command(flatten)]
    pub(crate) server: ServerFlags,
    #[command(flatten)]
    pub(crate) redfish: RedfishFlags,
    /// Show the facts that are the same, too
    #[arg(long)]
    pub(crate) all: bool,
}

/// Which machines are read while their targets are under load, and how.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Hosts")]
pub(crate) struct HostFlags {
    /// Target NAME runs on this machine: read it
    #[arg(long, value_name = "NAME")]
    pub(crate) local: Vec<String>,
    /// Target NAME runs on a machine that ssh reaches as DEST: read it, by a shell; nothing is installed
    #[arg(long, value_name = "NAME=DEST")]
    pub(crate) ssh: Vec<String>,
    #[command(flatten)]
    pub(crate) server: ServerFlags,
    #[command(flatten)]
    pub(crate) redfish: RedfishFlags,
}

/// Which process is the server, where it is not found by the port it listens on.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Hosts")]
pub(crate) struct ServerFlags {
    /// The server of NAME is process N and its children
    #[arg(long, value_name = "NAME=N")]
    pub(crate) pid: Vec<String>,
    /// The server of NAME is this service
    #[arg(long, value_name = "NAME=UNIT")]
    pub(crate) service: Vec<String>,
}

/// Management controllers of machines. A password on the command line could be read by everybody on this machine.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Hosts")]
pub(crate) struct RedfishFlags {
    /// The management controller of NAME's machine: its fans, temperatures and power supplies are read before and after
    /// the run. The password of USER is in $DUEL_REDFISH_PASSWORD or in a file
    #[arg(long, value_name = "NAME=https://[USER@]HOST")]
    pub(crate) redfish: Vec<String>,
    /// The first line of FILE is the password for NAME's management controller
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) redfish_password_file: Vec<String>,
    /// Do not verify certificates of management controllers
    #[arg(long)]
    pub(crate) redfish_insecure: bool,
}

/// Two earlier runs.
#[derive(Args, Clone)]
pub(crate) struct DiffFlags {
    /// The run to compare with
    #[arg(value_name = "RUN")]
    pub(crate) before: String,
    /// The other run
    #[arg(value_name = "RUN")]
    pub(crate) after: String,
}

/// Options of a report.
#[derive(Args, Clone)]
pub(crate) struct ReportFlags {
    #[command(flatten)]
    pub(crate) run: RunName,
    /// Write the page to this file; - is standard output [default: duel-RUN.html here; none with --svg or --png]
    #[arg(short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write each chart to this folder as an SVG file
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,
    /// Write each chart to this folder as a PNG file
    #[arg(long, value_name = "DIR")]
    pub(crate) png: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long)]
    pub(crate) force: bool,
}

/// Options of an export.
#[derive(Args, Clone)]
pub(crate) struct ExportFlags {
    #[command(flatten)]
    pub(crate) run: RunName,
    /// The form
    #[arg(short = 'f', long, value_name = "FORM", value_parser = forms())]
    pub(crate) format: Format,
    /// Write to this file; - is standard output [default: -]
    #[arg(short = 'o', value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Only this target; hgrm holds one
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) force: bool,
}

/// The forms, by name.
fn forms() -> impl TypedValueParser<Value = Format> {
    let names = Format::ALL.iter().map(|format| format.name());
    PossibleValuesParser::new(names).map(|name| {
        let found = Format::ALL.iter().find(|format| format.name() == name);
        found.copied().unwrap_or(Format::Json)
    })
}

/// Options of the lens.
#[derive(Args, Clone)]
pub(crate) struct LensFlags {
    /// A libcrypto, or the id of a process that maps one
    #[arg(value_name = "PATH|PID")]
    pub(crate) subject: OsString,
}

/// Arguments of the lens's child, parsed by itself.
#[derive(Args, Clone)]
pub(crate) struct ChildFlags {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

/// hey's command line, parsed by itself.
#[derive(Args, Clone)]
pub(crate) struct HeyFlags {
    #[arg(value_name = "OPTIONS> <URL", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

/// Arguments of the ruler, parsed by itself.
#[derive(Args, Clone)]
pub(crate) struct RulerFlags {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

/// All commands and options, as clap knows them.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Reads the command line; help and usage errors are printed and become an outcome.
pub(crate) fn parse(typed: Vec<OsString>) -> Result<Flags, Outcome> {
    let is_check = is_check(&typed);
    let bad_usage = |sentence: &str| {
        if is_check { commands::check::unknown(sentence) } else { Outcome::BadUsage }
    };
    let words = plan_file::filled_in(typed).map_err(|error| {
        error.say();
        bad_usage(&error.sentence)
    })?;
    let flags = read(&words).map_err(|error| {
        if error.use_stderr() {
            let sentence = usage::sentence(&error);
            outcome::say(&sentence);
            return bad_usage(&sentence);
        }
        // Help. Where even this cannot be printed, there is nobody to read it.
        let _ = error.print();
        // By the guidelines for plugins: nobody watches a service by asking for help.
        if is_check { Outcome::Checked(crate::check::State::Unknown) } else { Outcome::Done }
    })?;
    if let Command::Compare(compare) = &flags.command
        && compare.targets.is_empty()
    {
        let _ = Cli::command().print_help();
        return Err(Outcome::BadUsage);
    }
    Ok(flags)
}

/// Whether the first command on a command line is a check.
fn is_check(typed: &[OsString]) -> bool {
    let cli = Cli::command();
    let verb = typed.iter().skip(1).find(|word| cli.get_subcommands().any(|command| *word == command.get_name()));
    verb.is_some_and(|verb| verb == "check")
}

/// Sorts the words of a command line, the program's name first.
pub(crate) fn read(words: &[OsString]) -> Result<Flags, clap::Error> {
    let matches = Cli::command().try_get_matches_from(words)?;
    if let Some(error) = senseless(&matches) {
        return Err(error);
    }
    let Cli { verb, compare, load, output } = Cli::from_arg_matches(&matches)?;
    Ok(match verb {
        None => Flags { command: Command::Compare(compare), load, output },
        Some(Verb::Run { run, load }) => Flags { command: Command::Run(run), load: *load, output },
        Some(Verb::Check { check, load: own }) => Flags { command: Command::Check(check, own), load, output },
        Some(Verb::Demo { demo }) => Flags { command: Command::Demo(demo), load, output },
        Some(Verb::Why(why)) => Flags { command: Command::Why(why), load, output },
        Some(Verb::List { list }) => Flags { command: Command::List(list), load, output },
        Some(Verb::Show { run }) => Flags { command: Command::Show(run), load, output },
        Some(Verb::Diff { diff }) => Flags { command: Command::Diff(diff), load, output },
        Some(Verb::Report(report)) => Flags { command: Command::Report(report), load, output },
        Some(Verb::Export(export)) => Flags { command: Command::Export(export), load, output },
        Some(Verb::Rerun(rerun)) => Flags { command: Command::Rerun(rerun), load, output },
        Some(Verb::Facts { facts }) => Flags { command: Command::Facts(facts), load, output },
        Some(Verb::Lens(lens)) => Flags { command: Command::Lens(lens), load, output },
        Some(Verb::LensChild(child)) => Flags { command: Command::LensChild(child), load, output },
        // Where it stands first, clap never sees it.
        Some(Verb::Hey(_)) => {
            let text = "'hey' stands first, and its options behind it: duel hey ...";
            return Err(Cli::command().error(ErrorKind::ArgumentConflict, text));
        }
        Some(Verb::Plan(plan)) => Flags { command: Command::Plan(plan), load, output },
        Some(Verb::Man(man)) => Flags { command: Command::Man(man), load, output },
        Some(Verb::Completions(shell)) => Flags { command: Command::Completions(shell), load, output },
        Some(Verb::Ruler(ruler)) => Flags { command: Command::Ruler(ruler), load, output },
    })
}

impl Flags {
    /// Whether what was typed has a meaning, as far as that can be told before anything is done.
    pub(crate) fn checked(&self) -> Result<(), Usage> {
        let plan = match &self.command {
            Command::Compare(compare) => commands::compare::plan(compare, &self.load)?.0,
            Command::Run(run) => commands::run::plan(run, &self.load)?,
            Command::Check(check, load) => match commands::check::plan(check, load)? {
                Some(plan) => plan,
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        commands::rerun::refuse_missing_secrets(&plan)
    }
}

/// What clap lets pass and makes no sense.
///
/// Of what stands before a command only [`OutputFlags`] have a meaning: without this check `duel -c 5 run URL` would run
/// with 50 connections and not say so. And conflicts are looked for on either side of a command only.
fn senseless(matches: &ArgMatches) -> Option<clap::Error> {
    let mut cli = Cli::command();
    let is_command = |word: &&String| cli.get_subcommands().any(|command| command.get_name() == word.as_str());
    let is_typed = |arg: &&Arg| {
        !arg.is_global_set() && matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let text = if let Some(verb) = matches.subcommand_name() {
        match cli.get_arguments().find(is_typed).map(Arg::get_long) {
            Some(Some(option)) => {
                format!(
                    "--{option} stands before '{verb}'; a command's options stand behind it: duel {verb} ... --{option}"
                )
            }
            Some(None) => misplaced(verb),
            None if matches.get_flag("no_archive") && matches.get_one::<PathBuf>("archive").is_some() => {
                "--archive and --no-archive cannot be used together".to_owned()
            }
            None => return None,
        }
    } else {
        misplaced(matches.get_many::<String>("targets")?.find(is_command)?)
    };
    Some(cli.error(ErrorKind::ArgumentConflict, text))
}

fn misplaced(verb: &str) -> String {
    format!("'{verb}' is a command and stands before its targets: duel {verb} ...")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{hosts, meaning};

    /// The plan that a command line means, the program's name first.
    pub(crate) fn plan_of<'a>(words: impl IntoIterator<Item = &'a str>) -> duel_model::Plan {
        planned(words).unwrap()
    }

    /// Why a command line means no plan.
    pub(crate) fn refused<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
        planned(words).unwrap_err().0
    }

    fn planned<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<duel_model::Plan, crate::outcome::Usage> {
        let cli = Cli::try_parse_from(words).unwrap();
        let (plan, hosts) = match cli.verb {
            None => (meaning::comparison(&cli.compare.targets, &cli.compare.judging, &cli.load), cli.compare.hosts),
            Some(Verb::Run { run, load }) => (meaning::single(&run.target, run.requests, run.seed, &load), run.hosts),
            Some(_) => panic!("not a command that makes a plan"),
        };
        let mut plan = plan?;
        hosts::assign(&mut plan.targets, &hosts).unwrap();
        Ok(plan)
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
