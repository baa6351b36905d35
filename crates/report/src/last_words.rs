//! What machines said last: those that were lost, and those whose server was.

use crate::figures::duration;
use crate::style::{Ink, Style};
use crate::text::{clean, wrap};
use crate::watched::{died, last_heard_ns, last_words};
use duel_model::{HostRecord, KernelLine, Run, SECOND_NS};

/// Lines of a kernel's log that are shown: those that name the end. The archive has what led to it.
const MOST_LINES: usize = 10;

/// A section for each machine that was lost, or whose target stopped answering, with the last lines of its kernel's log.
pub(crate) fn sections(run: &Run, style: Style) -> Vec<Vec<String>> {
    let read = run.plan.targets.iter().zip(&run.hosts);
    read.filter_map(|(target, record)| section(run, &target.name, record.as_ref()?, style)).collect()
}

fn section(run: &Run, name: &str, record: &HostRecord, style: Style) -> Option<Vec<String>> {
    let (shown, heard) = (clean(name), last_heard_ns(run, record));
    let heard = heard.map(|ns| format!(" after {}", duration(ns as f64))).unwrap_or_default();
    let (head, lines): (String, Vec<&KernelLine>) = match &record.lost {
        Some(why) => {
            let lines = last_words(record, MOST_LINES).map(|(line, _)| line).collect();
            (format!("{shown}'s host: lost{heard}: {}", clean(why)), lines)
        }
        // Its machine is well, but its kernel may have ended the server.
        None if died(run, name) => {
            let while_watched = |(line, while_watched)| (while_watched == Some(true)).then_some(line);
            let lines: Vec<&KernelLine> = last_words(record, MOST_LINES).filter_map(while_watched).collect();
            if lines.is_empty() {
                return None;
            }
            (format!("{shown}'s host: not lost, when {shown} stopped answering"), lines)
        }
        None => return None,
    };
    let width = style.columns();
    let mut section = style.paint_lines(Some(Ink::Doubt), wrap(&head, width, "", "  "));
    if lines.is_empty() {
        section.extend(wrap("no line of its kernel's log was read", width, "  ", "  "));
    } else {
        let text = "its last kernel lines, with seconds since it was started:";
        section.extend(wrap(text, width, "  ", "  "));
        section.extend(lines.into_iter().flat_map(|line| wrap(&told(line), width, "    ", "      ")));
    }
    Some(section)
}

/// `[511.200] Out of memory: ...`
fn told(line: &KernelLine) -> String {
    let text = clean(&line.text);
    line.uptime_ns.map_or_else(|| text.clone(), |ns| format!("[{:.3}] {text}", ns as f64 / SECOND_NS as f64))
}
