//! The options of the load, and the plan that they mean. Each subject has its own file, which owns both.

pub(crate) mod connection;
pub(crate) mod factors;
pub(crate) mod meaning;
pub(crate) mod netns;
pub(crate) mod request;
pub(crate) mod requests;
pub(crate) mod restart;
pub(crate) mod settings;
pub(crate) mod shape;
pub(crate) mod targets;
pub(crate) mod tls;
pub(crate) mod values;

use crate::load::connection::ConnectionFlags;
use crate::load::factors::FactorFlags;
use crate::load::netns::NetnsFlags;
use crate::load::request::RequestFlags;
use crate::load::requests::RequestsFlags;
use crate::load::settings::{SettingFlags, WebOnly};
use crate::load::shape::ShapeFlags;
use crate::load::tls::TlsFlags;
use crate::outcome::Usage;
use clap::{Args, ValueEnum};
use duel_model::Schema;

/// The load, the same for every target.
#[derive(Args, Clone)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadFlags {
    #[command(flatten)]
    pub(crate) web_only: WebOnly,
    /// Connections to each target; a list makes a factor: 1,2,4 or 8..64, which doubles [default: 50; 1 where the targets are no web
    /// servers]
    #[arg(short = 'c', long, allow_negative_numbers = true, value_name = "N")]
    pub(crate) connections: Option<String>,
    /// How long: of the run, or most load time of a comparison over all targets [default: 10s, or 30s; with factors 4s for
    /// each treatment on each target, if that is more]
    #[arg(short = 'd', long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Open loop: requests per second, whether or not the server keeps up; latency counts from the due time. A list makes a
    /// factor
    #[arg(long, allow_negative_numbers = true, value_name = "PER_SECOND")]
    pub(crate) rate: Option<String>,
    /// How an open loop's requests are spaced
    #[arg(long, value_enum, default_value_t = ArrivalFlag::Constant)]
    pub(crate) arrival: ArrivalFlag,
    /// Closed loop: pause between an answer and the connection's next request
    #[arg(long, value_name = "TIME", conflicts_with = "rate")]
    pub(crate) think: Option<String>,
    /// Worker threads [default: half of the CPUs]. Where the targets are no web servers, how many threads or connections do the
    /// work; then a list makes a factor
    #[arg(short = 't', long, allow_negative_numbers = true, value_name = "N")]
    pub(crate) threads: Option<String>,
    /// While requests are in flight, stay awake and ask for answers for a while before sleeping: a server that has to wake
    /// whom it sends to is slower, and so is the answer. `auto` tries both before a comparison and takes what lets every target serve as
    /// much; a run of one target polls where a CPU is free
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = BusyPollFlag::Auto)]
    pub(crate) busy_poll: BusyPollFlag,
    /// Longest time of a request
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub(crate) timeout: String,
    /// Longest time to connect, TLS included
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub(crate) connect_timeout: String,
    #[command(flatten)]
    pub(crate) shape: ShapeFlags,
    #[command(flatten)]
    pub(crate) request: RequestFlags,
    #[command(flatten)]
    pub(crate) requests: RequestsFlags,
    #[command(flatten)]
    pub(crate) connection: ConnectionFlags,
    #[command(flatten)]
    pub(crate) tls: TlsFlags,
    #[command(flatten)]
    pub(crate) netns: NetnsFlags,
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
    #[command(flatten)]
    pub(crate) factors: FactorFlags,
}

impl LoadFlags {
    /// How many lanes were asked for: by `-c`, or by an option that is called as the lanes of these targets are.
    pub(crate) fn lanes(&self, schema: &Schema) -> Result<Option<&str>, Usage> {
        let streams = self.settings.typed("streams").filter(|_| schema.lane.many == "streams");
        match (&self.connections, streams) {
            (Some(_), Some(_)) => Err(Usage(format!(
                "-c and --streams both say how many streams there are for {}; give one of them",
                schema.targets.to_lowercase()
            ))),
            (connections, streams) => Ok(streams.or(connections.as_deref())),
        }
    }
}

/// Spacing of an open loop's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArrivalFlag {
    /// Equal gaps
    Constant,
    /// Exponential gaps, as from many independent users
    Poisson,
}

/// Whether duel stays awake while it waits for answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BusyPollFlag {
    /// Where every target serves at least as much then
    Auto,
    /// Sleep whenever there is nothing to do
    Never,
    /// Stay awake for a short while each time, whoever else wants the CPU
    Always,
}

impl From<BusyPollFlag> for duel_model::BusyPoll {
    fn from(flag: BusyPollFlag) -> Self {
        match flag {
            BusyPollFlag::Auto => Self::Auto,
            BusyPollFlag::Never => Self::Never,
            BusyPollFlag::Always => Self::Always,
        }
    }
}

impl From<ArrivalFlag> for duel_model::Arrival {
    fn from(flag: ArrivalFlag) -> Self {
        match flag {
            ArrivalFlag::Constant => Self::Constant,
            ArrivalFlag::Poisson => Self::Poisson,
        }
    }
}
