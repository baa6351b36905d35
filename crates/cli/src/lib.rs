//! The `duel` command: which of two systems is faster, by how much, how sure, and why.
//!
//! A library, because programs of a fuzzer cannot use what is in a binary. Nobody else is meant to: nothing is public but
//! [`main`], and for fuzzers what they call.

mod aside;
mod basic;
mod check;
mod command_line;
mod command_words;
mod commands;
mod deliver;
mod diagnosis;
#[cfg(test)]
mod foreign;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod hey;
mod hosts;
mod inherited;
mod keep;
mod load;
mod measuring;
mod outcome;
mod output;
mod plan_file;
mod progress_log;
mod proxy;
#[cfg_attr(not(feature = "png"), path = "raster_left_out.rs")]
mod raster;
mod reading;
#[cfg(test)]
mod round_trips;
mod secrets;
mod signals;
mod streams;
mod telemetry;
mod terminal;
mod trust;
mod usage;
mod watching;

use command_line::{Command, Flags};
use outcome::Outcome;

/// The whole program, first thing in a process: it reads the arguments, and ends with the exit code.
pub fn main() -> std::process::ExitCode {
    // First of all: it takes that nothing else runs and nothing of ours is open.
    inherited::keep_from_children();
    aside::guard();
    duel_model::kinds::register(duel_lab::kinds::SCHEMAS);
    let typed: Vec<std::ffi::OsString> = std::env::args_os().collect();
    if !command_words::hide_passwords(&typed) {
        outcome::say(
            "other users of this machine see the password of the address in the list of processes; the environment and files hide it \
             (README.md)",
        );
    }
    let typed = reading::with_options_for_words(typed);
    if let Some(arguments) = hey::arguments(typed.iter().cloned()) {
        return hey::main(&arguments).exit_code();
    }
    let flags = match reading::parse(typed) {
        Ok(flags) => flags,
        Err(outcome) => return outcome.exit_code(),
    };
    let Flags { command, load, output } = flags;
    duel_disk::tell_by(outcome::say, terminal::overwriting(&output));
    let done = match command {
        Command::Compare(compare) => commands::compare::compare(&compare, &load, &output),
        Command::Crypto(compare) => commands::crypto::crypto(compare, &load, &output),
        Command::Run(run) => commands::run::run(&run, &load, &output),
        Command::Check(check, load) => return commands::check::check(&check, &load, &output).exit_code(),
        Command::Demo(demo) => commands::demo::demo(&demo, &output),
        #[cfg(target_os = "linux")]
        Command::Disk(disk) => commands::disk::disk(&disk, &output),
        Command::Why(why) => commands::why::why(&why, &output),
        Command::List(list) => commands::runs::list(&list, &output),
        Command::Show(show) => commands::runs::show(&show, &output),
        Command::Diff(diff) => commands::runs::diff(&diff, &output),
        Command::Report(report) => commands::report::report(&report, &output),
        Command::Export(export) => commands::export::export(&export, &output),
        Command::Rerun(rerun) => commands::rerun::rerun(&rerun, &output),
        Command::Facts(facts) => commands::facts::facts(&facts, &output),
        Command::Prepare(prepare) => commands::tables::prepare(&prepare, &output),
        Command::Cleanup(cleanup) => commands::tables::cleanup(&cleanup),
        Command::Lens(lens) => commands::lens::lens(&lens, &output),
        Command::LensChild(child) => commands::lens::child(&child),
        Command::CryptoChild(child) => duel_crypto::child::main(&child.arguments),
        Command::Net(net) => commands::net::net(&net, &output),
        Command::Plan(plan) => plan_file::plan(&plan),
        Command::Man(man) => commands::manual::man(&man, command_line::command()),
        Command::Completions(shell) => commands::completions::completions(&shell, command_line::shown()),
        Command::Ruler(ruler) => commands::ruler::serve(&ruler),
    };
    Outcome::documented(done, output.json).exit_code()
}
