//! What the terminal can do, and printing that does not mind a closed pipe.

use crate::output::OutputFlags;
use crate::streams::Output;
use duel_report::Style;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Widest layout: beyond it lines get hard to follow.
const MOST_COLUMNS: usize = 100;

/// How results are to be laid out on standard output.
pub(crate) fn result_style() -> Style {
    style(io::stdout().is_terminal(), columns(rustix::stdio::stdout()))
}

/// How progress is to be laid out on standard error.
pub(crate) fn progress_style() -> Style {
    style(io::stderr().is_terminal(), columns(rustix::stdio::stderr()))
}

/// Whether a result was printed, or was to be.
static HAS_PRINTED: AtomicBool = AtomicBool::new(false);

/// Prints results. Where they cannot be written (the disk is full, or standard output is closed) that is an error. A reader that
/// has gone away (`duel list | head -1`) is none: it has what it wanted, as other programs' silent end by SIGPIPE has it, and the
/// exit code goes on telling of the run.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    print_bytes(text.as_bytes())
}

/// As [`print()`], for what need not be text.
pub(crate) fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    HAS_PRINTED.store(true, Ordering::Relaxed);
    match Output.write_all(bytes) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(anyhow::Error::new(error).context("cannot write the result to standard output")),
        Ok(()) => Ok(()),
    }
}

/// Whether a result was printed: then a document that tells of a failure would be a second one.
pub(crate) fn has_printed() -> bool {
    HAS_PRINTED.load(Ordering::Relaxed)
}

/// Prints what clap has laid out, in colour on terminals that have any.
pub(crate) fn print_styled(text: &clap::builder::StyledStr) -> anyhow::Result<()> {
    if result_style().color { print(&text.ansi().to_string()) } else { print(&text.to_string()) }
}

/// Tells something beside the results, on standard error. Where that is closed, nobody wants to know.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// What shows how far something has come, on one line that is written anew each time; an empty one takes it away. `None` where
/// there is no terminal, or nobody wants to see it.
pub(crate) fn overwriting(output: &OutputFlags) -> Option<fn(&str)> {
    (io::stderr().is_terminal() && !output.quiet).then_some(|line| redraw(&duel_model::sanitize_line(line)))
}

/// Puts a line in the place of the one before, on a standard error that is a terminal.
pub(crate) fn redraw(line: &str) {
    let _ = write!(io::stderr(), "\r\x1b[K{line}");
}

fn style(is_terminal: bool, columns: Option<usize>) -> Style {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    // Without a locale most terminals of today still show UTF-8; a locale that names another set is believed.
    let unicode = locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    Style {
        width: if is_terminal { columns.unwrap_or(80).min(MOST_COLUMNS) } else { 80 },
        color: is_terminal && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
        unicode,
    }
}

fn columns(stream: rustix::fd::BorrowedFd<'_>) -> Option<usize> {
    rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0)
}
