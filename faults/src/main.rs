//! The fault bench: twin servers, one of them with a real fault. Does duel name it?

mod arena;
mod case;
mod check;
mod dice;
mod handler;
mod injections;
mod kinds;
mod lines;
mod names;
mod openssl;
mod own;
mod possible;
mod random;
mod relay;
mod score;
mod select;
mod servers;
mod twin;
mod world;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "faults", about = "Twin servers, one with a real fault: does duel name it?", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List all cases
    List {
        /// Causes, cases, or beginnings of a case
        ids: Vec<String>,
    },
    /// Inject faults and verify by other means than duel that they bite
    Check {
        /// Causes, cases, or beginnings of a case; all without
        ids: Vec<String>,
    },
    /// Let duel look for the causes, and count how often it is right
    Score(score::ScoreFlags),
    /// Draw set-ups and faults at random, let duel look once at each, and count
    Random(random::RandomFlags),
    /// Remove what processes have left that were killed
    Clean,
    /// Relay packets between two namespaces
    #[command(hide = true)]
    RelayPackets(relay::packets::PacketRelayFlags),
    /// Relay TCP connections
    #[command(hide = true)]
    RelayStream(relay::stream::StreamRelayFlags),
    /// Relay messages between Unix sockets
    #[command(hide = true)]
    RelayMessages(relay::messages::MessageRelayFlags),
    /// Serve with faults that no packaged server has
    #[command(hide = true)]
    Own(own::OwnFlags),
    /// Serve the ruler
    #[command(hide = true)]
    Ruler {
        #[arg(last = true)]
        arguments: Vec<OsString>,
    },
    /// Send and receive over a path, to see what it does
    #[command(hide = true)]
    FlowServe(kinds::net::flow::ServeFlags),
    #[command(hide = true)]
    FlowAsk(kinds::net::flow::AskFlags),
    /// Answer questions for names
    #[command(hide = true)]
    Names(names::NameFlags),
}

fn main() -> ExitCode {
    match run(Cli::parse().verb) {
        Ok(code) => code,
        Err(error) if error.is::<world::Interrupted>() => {
            eprintln!("faults: interrupted");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("faults: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::List { ids } => check::list(&ids)?,
        Verb::Check { ids } => return check::check(&ids),
        Verb::Score(flags) => score::score(&flags)?,
        Verb::Random(flags) => random::random(&flags)?,
        Verb::Clean => world::clean()?,
        Verb::RelayPackets(flags) => relay::packets::main(&flags)?,
        Verb::RelayStream(flags) => relay::stream::main(&flags)?,
        Verb::RelayMessages(flags) => relay::messages::main(&flags)?,
        Verb::Own(flags) => own::main(&flags)?,
        Verb::FlowServe(flags) => kinds::net::flow::serve(&flags)?,
        Verb::FlowAsk(flags) => kinds::net::flow::ask(&flags)?,
        Verb::Names(flags) => names::main(&flags)?,
        Verb::Ruler { arguments } => {
            let arguments = arguments.iter().map(|argument| argument.to_string_lossy().into_owned());
            let config = duel_ruler::child::ChildConfig::from_args(arguments).map_err(anyhow::Error::msg)?;
            duel_ruler::child::main(config)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
