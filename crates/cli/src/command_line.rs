//! The whole command line: its commands, and how its words are sorted. The options of a command stand with it, those of one subject
//! with what they mean; [`crate::load::meaning`] makes a plan of them. No command uses this file: what one needs of it is handed down.

use crate::commands::check::CheckFlags;
use crate::commands::compare::CompareFlags;
use crate::commands::completions::CompletionsFlags;
use crate::commands::crypto::CryptoFlags;
use crate::commands::demo::DemoFlags;
#[cfg(target_os = "linux")]
use crate::commands::disk::DiskFlags;
use crate::commands::export::ExportFlags;
use crate::commands::facts::FactsFlags;
use crate::commands::lens::{ChildFlags, LensFlags};
use crate::commands::manual::ManFlags;
use crate::commands::net::NetFlags;
use crate::commands::plan::PlanWords;
use crate::commands::report::ReportFlags;
use crate::commands::rerun::RerunFlags;
use crate::commands::ruler::RulerFlags;
use crate::commands::run::RunFlags;
use crate::commands::runs::{DiffFlags, ListFlags};
use crate::commands::tables::{PrepareFlags, TablesFlags};
use crate::commands::why::WhyFlags;
use crate::keep::RunName;
use crate::load::LoadFlags;
use crate::outcome::Usage;
use crate::output::OutputFlags;
use crate::{commands, secrets};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use duel_model::Plan;
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
    /// The crypto libraries of this machine: this comparison, and the kernel where it can do the same.
    Crypto(CompareFlags),
    Run(RunFlags),
    Check(Box<CheckFlags>, Box<LoadFlags>),
    Demo(DemoFlags),
    #[cfg(target_os = "linux")]
    Disk(DiskFlags),
    Why(WhyFlags),
    List(ListFlags),
    Show(RunName),
    Diff(DiffFlags),
    Report(ReportFlags),
    Export(ExportFlags),
    Rerun(RerunFlags),
    Facts(FactsFlags),
    Prepare(PrepareFlags),
    Cleanup(TablesFlags),
    Lens(LensFlags),
    LensChild(ChildFlags),
    CryptoChild(ChildFlags),
    Net(NetFlags),
    Plan(PlanWords),
    Man(ManFlags),
    Completions(CompletionsFlags),
    Ruler(RulerFlags),
}

/// What the help of preparing ends with.
const PREPARE: &str = "\
The tables are those of sysbench's OLTP tests, sbtest1 to sbtestN, and sysbench can use them, too. Tables that are whole are
left as they are. Passwords are taken from PGPASSWORD or ~/.pgpass, MYSQL_PWD or ~/.my.cnf, or from the address.

Examples:
  duel prepare postgres://u@/db --tables 4 --table-size 100000
  duel prepare postgres://u@/db --tables 4 --table-size 100000 --go-on    after an interruption
  duel cleanup postgres://u@/db --tables 4";

/// What the help of a check ends with.
const CHECK: &str = "\
Examples:
  duel check https://a.example/ -d 5s --critical 'p99<200ms' --warning 'p99<100ms'
  duel check old=https://a/ new=https://b/ --critical 'slower than old by 5%'
  duel check last --critical 'errors<1%' --critical 'rate>500/s' --junit check.xml

A threshold on a figure is held against all requests of the run, or with factors of each level, and has a unit. 'slower \
than' is CRITICAL or OK if the whole interval of the verdict says so, and UNKNOWN where it does not tell. Every check is \
kept as a run, unless --no-archive is given.

TIME is 500ms, 10s, 2m or the like; a bare number counts seconds.
Exit codes: 0 OK, 1 WARNING, 2 CRITICAL (a target that does not answer, too), 3 UNKNOWN (not known, or could not be \
checked).";
/// As in wrk, h2load and ab, where a bare number of `-d` or `-t` counts seconds.
const TIMES: &str = "TIME is 500ms, 10s, 2m or the like; a bare number counts seconds.";

/// Words of the reports that a reader cannot know from elsewhere. The README has the same ones.
const WORDS: &str = "\
Words of the reports:
  baseline      the first target; every ratio is of a target over the baseline
  slot          one stretch of load on one target, mostly 0.15 to 2 s; what a verdict rests on
  block         each target twice, in random order and then in the reverse order
  round         of factors: each treatment once on each target
  treatment     one combination of the levels of all factors
  op            one operation: a request and its response; of other targets a transaction, a block, one use of a cipher
  response      time from when a request was due to the end of its answer
  service       the same from when it was sent (with --rate it may wait for a connection first)
  schedule lag  how late the generator itself started a request
  loop lag      how long an answer may have lain there before the generator looked at it
  noticed late  how long an answer's end lay there unread; no part of response times (Linux)
  polling       time that the generator stayed awake with nothing to do (--busy-poll)
  unfinished    requests that were given up, not answered when a slot's wait for answers was over
  shed          requests that were too late to be sent (--deadline)
  call          an answer: faster, slower, equivalent or unknown
  doubt         something that weakens a number
  probe         a small comparison that --why makes with one thing changed
  first-contact the one request to each target before any load
  NAME*         in lines of progress: the target that is under load now";

/// What the help ends with.
const EXAMPLES: &str = "Examples:\n  \
        duel demo                                         see it work; nothing needed\n  \
        duel https://a.example/f https://b.example/f      compare two servers\n  \
        duel old=https://a/f new=https://b/f --why        name them, and find the cause\n  \
        duel run https://a.example/ -c 100 -d 10s         load one server\n  \
        duel run https://a.example/ --rate 500            at a fixed rate, latency from the due time\n  \
        duel https://a/f https://b/f -c 1..64             at 1, 2, 4 ... 64 connections: table, chart, scaling law\n  \
        duel list; duel show last; duel diff last~1 last  look at earlier runs\n\n\
        TIME is 500ms, 10s, 2m or the like; a bare number counts seconds.\n\
        Exit codes: 0 done, 1 could not run, or a target did not do what was asked (README), 2 bad usage, 130 interrupted.";

/// What is said to who types nothing behind the program's name.
pub(crate) const FIRST_STEPS: &str = "\
duel: which of two systems is faster, by how much, how sure, and why

Usage: duel [OPTIONS] [NAME=]URL [NAME=]URL...
       duel COMMAND ...

It loads web servers, databases, disks, networks or crypto libraries in turn and
compares them. The first target is the baseline.

Examples:
  duel demo                                     see it work; nothing needed
  duel https://a.example/f https://b.example/f  compare two servers
  duel old=https://a/f new=https://b/f --why    name them, and find the cause
  duel run https://a.example/ -c 100 -d 10s     load one server
  duel /mnt/xfs /mnt/ext4 --op randread         compare two file systems
  duel list; duel show last                     look at earlier runs

Further:
  duel --help          all commands and options
  duel help run        those of one command, here 'run'
  duel man | man -l -  the manual page
";

#[derive(Parser)]
#[command(
    name = "duel",
    version,
    about = "Which of two systems is faster, by how much, how sure, and why",
    long_about = "Point duel at two or more systems that should be equally fast. It loads them in turn, in short slots in \
                  random mirrored order, says which is faster, by how much and how sure, and with --why finds out the \
                  reason by further experiments.",
    after_help = EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{WORDS}"),
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
    /// Compare the crypto libraries of this machine over a short list of ops
    Crypto(Box<CryptoFlags>),
    /// Serve network work, or watch a link
    Net(NetFlags),
    /// Look at a file system, a file or a device; remove work files of runs that were killed
    #[cfg(target_os = "linux")]
    Disk(DiskFlags),
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
    /// Make the tables that load on databases needs
    #[command(after_help = PREPARE)]
    Prepare(PrepareFlags),
    /// Drop the tables that load on databases needs
    Cleanup(TablesFlags),
    /// Measure a libcrypto alone: does it use the CPU's AES instructions?
    Lens(LensFlags),
    /// Load a libcrypto and measure it, for `duel lens`
    #[command(hide = true)]
    LensChild(ChildFlags),
    /// Do the ops of a crypto library, for a run that loads one
    #[command(hide = true)]
    CryptoChild(ChildFlags),
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

/// hey's command line, parsed by itself.
#[derive(Args, Clone)]
pub(crate) struct HeyFlags {
    #[arg(value_name = "OPTIONS> <URL", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

/// All commands and options, as the help shows them.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// All commands and options that users are told of, for completions: clap's generators offer hidden ones as well.
pub(crate) fn shown() -> clap::Command {
    let mut all = command();
    // Global options reach their commands by that; in the copies they are global no more, as `duel hey` must not get them.
    all.build();
    without_hidden(&all)
}

fn without_hidden(built: &clap::Command) -> clap::Command {
    let args: Vec<Arg> = built.get_arguments().filter(|arg| !arg.is_hide_set()).map(offered).collect();
    let is_shown = |id: &&clap::Id| args.iter().any(|arg| arg.get_id() == *id);
    let groups = built
        .get_groups()
        .map(|group| ArgGroup::new(group.get_id().clone()).args(group.get_args().filter(is_shown)).multiple(true));
    let commands = built.get_subcommands().filter(|command| !command.is_hide_set());
    let commands = commands.map(|command| match command.get_name() {
        "hey" => without_hidden(&duel_hey::command()),
        _ => without_hidden(command),
    });
    // clap takes names that live as long as the program.
    clap::Command::new(&*built.get_name().to_owned().leak())
        .version(env!("CARGO_PKG_VERSION"))
        .about(built.get_about().cloned().unwrap_or_default())
        .groups(groups)
        .args(args.iter().cloned())
        .subcommands(commands)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
}

/// An option as generators of completions take it. A colon in what its value is called has to be escaped for zsh, the only
/// shell that shows it.
fn offered(arg: &Arg) -> Arg {
    let offered = arg.clone().global(false);
    let Some(names) = arg.get_value_names().filter(|names| names.iter().any(|name| name.contains(':'))) else {
        return offered;
    };
    let escaped: Vec<&'static str> = names.iter().map(|name| &*name.replace(':', "\\:").leak()).collect();
    offered.value_names(escaped)
}

/// As [`command`], to read a command line by: what can only be switched on takes `=false`, too, which goes before a plan file that
/// switches it on. The help shows it once (`--plan`) and not at every option.
pub(crate) fn readable() -> clap::Command {
    fn switchable(command: clap::Command) -> clap::Command {
        let switch = |arg: Arg| match arg.get_action() {
            ArgAction::SetTrue => arg
                .action(ArgAction::Set)
                .value_parser(clap::value_parser!(bool))
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .default_value("false"),
            _ => arg,
        };
        command.mut_args(switch).mut_subcommands(switchable)
    }
    switchable(command())
}

/// What clap makes of the words of a command line, the program's name first. Help and errors show options as [`command`] does.
pub(crate) fn matched(words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    readable().try_get_matches_from(words).map_err(|error| {
        let shown = command().try_get_matches_from(words).err();
        shown.filter(|shown| shown.kind() == error.kind()).unwrap_or(error)
    })
}

/// Whether `--json` stands on a command line that may make no sense otherwise.
pub(crate) fn asks_for_document(typed: &[OsString]) -> bool {
    let options = typed.iter().skip(1).take_while(|word| *word != "--");
    let values = options.filter_map(|word| word.to_str()?.strip_prefix("--json"));
    values.filter(|value| value.is_empty() || value.starts_with('=')).last().is_some_and(|value| value != "=false")
}

/// Sorts the words of a command line, the program's name first.
pub(crate) fn read(words: &[OsString]) -> Result<Flags, clap::Error> {
    let matches = matched(words)?;
    if let Some(error) = senseless(&matches) {
        return Err(error);
    }
    let Cli { verb, compare, load, output } = Cli::from_arg_matches(&matches)?;
    Ok(match verb {
        None => Flags { command: Command::Compare(compare), load, output },
        Some(Verb::Run { run, load }) => Flags { command: Command::Run(run), load: *load, output },
        Some(Verb::Crypto(crypto)) => {
            let (compare, load, may_join) = crypto.comparison();
            let command = if may_join { Command::Crypto(compare) } else { Command::Compare(compare) };
            Flags { command, load, output }
        }
        Some(Verb::Check { check, load: own }) => {
            let cli = readable();
            let check = match (cli.find_subcommand("check"), matches.subcommand_matches("check")) {
                (Some(command), Some(matches)) => Box::new(check.with_load_option(command, matches)),
                _ => check,
            };
            Flags { command: Command::Check(check, own), load, output }
        }
        Some(Verb::Demo { demo }) => Flags { command: Command::Demo(demo), load, output },
        #[cfg(target_os = "linux")]
        Some(Verb::Disk(disk)) => Flags { command: Command::Disk(disk), load, output },
        Some(Verb::Why(why)) => Flags { command: Command::Why(why), load, output },
        Some(Verb::List { list }) => Flags { command: Command::List(list), load, output },
        Some(Verb::Show { run }) => Flags { command: Command::Show(run), load, output },
        Some(Verb::Diff { diff }) => Flags { command: Command::Diff(diff), load, output },
        Some(Verb::Report(report)) => Flags { command: Command::Report(report), load, output },
        Some(Verb::Export(export)) => Flags { command: Command::Export(export), load, output },
        Some(Verb::Rerun(rerun)) => Flags { command: Command::Rerun(rerun), load, output },
        Some(Verb::Facts { facts }) => Flags { command: Command::Facts(facts), load, output },
        Some(Verb::Prepare(prepare)) => Flags { command: Command::Prepare(prepare), load, output },
        Some(Verb::Cleanup(cleanup)) => Flags { command: Command::Cleanup(cleanup), load, output },
        Some(Verb::Lens(lens)) => Flags { command: Command::Lens(lens), load, output },
        Some(Verb::LensChild(child)) => Flags { command: Command::LensChild(child), load, output },
        Some(Verb::Net(net)) => Flags { command: Command::Net(net), load, output },
        Some(Verb::CryptoChild(child)) => Flags { command: Command::CryptoChild(child), load, output },
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
        self.plan()?.map_or(Ok(()), |plan| secrets::refuse_missing_secrets(&plan))
    }

    /// The plan that it means; `None` where nothing is loaded.
    pub(crate) fn plan(&self) -> Result<Option<Plan>, Usage> {
        Ok(match &self.command {
            Command::Compare(compare) | Command::Crypto(compare) => {
                Some(commands::compare::plan(compare, &self.load)?.0)
            }
            Command::Run(run) => Some(commands::run::plan(run, &self.load)?),
            Command::Check(check, load) => commands::check::plan(check, load)?,
            _ => None,
        })
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
        let mut targets = matches.get_many::<String>("targets")?;
        let first = targets.clone().next().filter(|word| !word.contains("://"));
        match targets.find(is_command) {
            Some(verb) => misplaced(verb),
            None => misspelt(first.filter(|word| duel_lab::kinds::of_address(word).is_none())?, &cli)?,
        }
    };
    Some(cli.error(ErrorKind::ArgumentConflict, text))
}

fn misplaced(verb: &str) -> String {
    format!("'{verb}' is a command and stands before its targets: duel {verb} ...")
}

/// What is said of a word in a command's place that is nearly one.
fn misspelt(word: &str, cli: &clap::Command) -> Option<String> {
    // One slip in three letters: less of a word is another word.
    let slips = |name: &&str| strsim::damerau_levenshtein(word, name);
    let is_alike = |name: &&str| (1..=name.len().min(word.len()) / 3).contains(&slips(name));
    let names = cli.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    let name = names.filter(is_alike).min_by_key(slips)?;
    Some(format!("'{}' is neither a command nor an address; did you mean {name}?", duel_model::sanitize_line(word)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::usage;
    use std::collections::BTreeSet;

    /// The plan that a command line means, the program's name first.
    pub(crate) fn plan_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Plan {
        planned(words).unwrap()
    }

    /// Why a command line means no plan.
    pub(crate) fn refused<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
        planned(words).unwrap_err().0
    }

    fn planned<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Plan, Usage> {
        duel_model::kinds::register(duel_lab::kinds::SCHEMAS);
        let cli = Cli::try_parse_from(words).unwrap();
        match cli.verb {
            None => commands::compare::plan(&cli.compare, &cli.load).map(|(plan, _)| plan),
            Some(Verb::Run { run, load }) => commands::run::plan(&run, &load),
            Some(_) => panic!("not a command that makes a plan"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
        readable().debug_assert();
    }

    /// The tests are compiled with checks for overflow: a number that is calculated with unchecked would panic.
    #[test]
    fn no_number_that_can_be_typed_is_too_much_to_calculate_with() {
        const NUMBERS: [&str; 7] = [
            "18446744073709551615",
            "4294967295",
            "9007199254740991",
            "18446744073709551615h",
            "8784h",
            "1..18446744073709551615",
            "8784h@10000000",
        ];
        let (mut tried, mut understood) = (BTreeSet::new(), 0);
        for (verb, targets) in
            [(Some("run"), &["http://a/"][..]), (None, &["http://a/", "http://b/"]), (Some("check"), &["http://a/"])]
        {
            let all = readable();
            let of_verb = verb.map_or(&all, |verb| all.find_subcommand(verb).unwrap());
            let takes_value = |arg: &&Arg| arg.get_action().takes_values() && !arg.is_positional();
            for long in of_verb.get_arguments().filter(takes_value).filter_map(Arg::get_long) {
                if !tried.insert(long.to_owned()) {
                    continue;
                }
                for number in NUMBERS {
                    let option = format!("--{long}={number}");
                    let words =
                        ["duel"].into_iter().chain(verb).chain(targets.iter().copied()).chain([option.as_str()]);
                    let words: Vec<OsString> = words.map(OsString::from).collect();
                    let checked = || read(&words).ok().is_some_and(|flags| flags.checked().is_ok());
                    understood += u32::from(std::panic::catch_unwind(checked).unwrap_or_else(|_| panic!("{option}")));
                }
            }
        }
        assert!(tried.len() > 60 && understood > 20, "{} tried, {understood} understood", tried.len());
    }

    #[test]
    fn every_switch_can_be_typed_as_on_and_as_off() {
        let words = |verb: Option<&str>, rest: &[&str]| -> Vec<OsString> {
            ["duel"].into_iter().chain(verb).chain(rest.iter().copied()).map(OsString::from).collect()
        };
        for (verb, targets) in
            [(None, &["http://a/", "http://b/"][..]), (Some("run"), &["http://a/"]), (Some("check"), &["last"])]
        {
            let all = command();
            let of_verb = verb.map_or(&all, |verb| all.find_subcommand(verb).unwrap());
            let declared = |arg: &&Arg| duel_model::web::SCHEMA.param(arg.get_id().as_str()).filter(|p| p.is_switch());
            let is_switch = |arg: &&Arg| matches!(arg.get_action(), ArgAction::SetTrue) || declared(arg).is_some();
            let switches = of_verb.get_arguments().filter(is_switch);
            let mut tried = 0;
            for long in switches.filter_map(Arg::get_long) {
                for (typed, is_on) in [("", true), ("=true", true), ("=false", false)] {
                    let option = format!("--{long}{typed}");
                    let matches = matched(&words(verb, &[targets, &[&option]].concat())).unwrap();
                    let of_verb = matches.subcommand().map_or(&matches, |(_, matches)| matches);
                    let id = of_verb.ids().map(clap::Id::as_str).find(|id| id.replace('_', "-") == long).unwrap();
                    let is_typed_on = match duel_model::web::SCHEMA.param(id) {
                        Some(param) => param.read(of_verb.get_one::<String>(id).unwrap()).unwrap() == "on",
                        None => of_verb.get_flag(id),
                    };
                    assert_eq!(is_typed_on, is_on, "{verb:?} {option}");
                }
                tried += 1;
            }
            assert!(tried >= 8, "{verb:?}: {tried}");
        }
        let flags = read(&words(None, &["-kq", "http://a/", "http://b/", "--no-keepalive=false"])).unwrap();
        assert!(
            flags.load.settings.typed("insecure") == Some("on")
                && flags.output.quiet
                && flags.load.settings.typed("keepalive").is_none(),
            "letters are still put together"
        );
        let maybe = words(None, &["http://a/", "http://b/", "--why=maybe"]);
        let error = read(&maybe).map(drop).unwrap_err();
        assert!(usage::sentence(&error, &maybe).contains("'maybe'"), "{error}");
        let error = read(&words(None, &["http://a/", "--no-archive", "--archive", "x"])).map(drop).unwrap_err();
        assert!(!error.to_string().contains("[="), "shown as in the help: {error}");
    }
}
