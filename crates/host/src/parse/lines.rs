//! A sample's lines, by the file that they come from.

use super::Context;
use std::collections::BTreeMap;

/// The lines of each file, in order. `grep` has put the path before every line, so no content can pass for another
/// file's.
pub(super) struct Lines<'a> {
    files: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Lines<'a> {
    /// Sorts the text of a sample. Paths are told without the roots: `proc/stat`, `sys/class/...`.
    pub(super) fn of(text: &'a str, context: &Context) -> Self {
        let mut files: BTreeMap<&'a str, Vec<&'a str>> = BTreeMap::new();
        for line in text.lines() {
            if let Some((path, rest)) = split_path(line, context) {
                files.entry(path).or_default().push(rest);
            }
        }
        Self { files }
    }

    /// The lines of the file of this name, such as `/stat` (below the process folder) or `members`.
    pub(super) fn file(&self, name: &str) -> &[&'a str] {
        self.files.get(name).map_or(&[], Vec::as_slice)
    }

    /// The first line of a file.
    pub(super) fn first(&self, name: &str) -> Option<&'a str> {
        self.file(name).first().copied()
    }

    /// All files whose name ends so, with the beginning of the name.
    pub(super) fn ending(&self, end: &str) -> Vec<(&'a str, &[&'a str])> {
        let found = self.files.iter().filter_map(|(path, lines)| Some((path.strip_suffix(end)?, lines.as_slice())));
        found.collect()
    }
}

/// Parts `PATH:LINE`. Process files have no colon in their paths; a cgroup's folder may, so there the path goes on to the
/// name of a file that was asked for.
fn split_path<'a>(line: &'a str, context: &Context) -> Option<(&'a str, &'a str)> {
    if let Some(rest) = line.strip_prefix(context.proc_root.as_str()) {
        return rest.split_once(':');
    }
    if !line.starts_with('/') {
        return line.split_once(':');
    }
    let known = |name: &str| {
        name.ends_with("_count")
            || name.ends_with("_input")
            || name == "scaling_cur_freq"
            || ["cpu.", "cpuacct.", "memory.", "io.", "blkio."].iter().any(|start| name.starts_with(start))
    };
    // Where the last part begins is kept on the way: looked for from each colon, a line of colons would take its length
    // squared.
    let mut name_start = 0;
    let at = line.bytes().enumerate().find_map(|(at, byte)| {
        if byte == b'/' {
            name_start = at + 1;
        }
        (byte == b':' && known(&line[name_start..at])).then_some(at)
    })?;
    Some((&line[..at], &line[at + 1..]))
}

/// The n-th word that blanks part, as a number.
pub(super) fn number(line: &str, n: usize) -> Option<u64> {
    line.split_ascii_whitespace().nth(n)?.parse().ok()
}

/// The number behind a name, in lines of the form `NAME VALUE` or `NAME: VALUE kB`.
pub(super) fn named(lines: &[&str], name: &str) -> Option<u64> {
    lines.iter().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        if rest.starts_with([' ', '\t']) { number(rest, 0) } else { None }
    })
}

/// The last part of a path.
pub(super) fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn context() -> Context {
        Context {
            system: super::super::System::Linux,
            proc_root: "/fake/proc".into(),
            sys_root: "/sys".into(),
            tick_ns: 1,
            page_bytes: 1,
            disks: BTreeSet::new(),
        }
    }

    #[test]
    fn a_line_of_colons_takes_time_in_proportion_to_its_length() {
        let context = context();
        let best = |length: usize| {
            let line = format!("/{}", ":".repeat(length));
            // A thread's CPU time: other work on the machine does not make it more.
            let now = || {
                let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
                now.tv_sec * 1_000_000_000 + now.tv_nsec
            };
            let time = |_| {
                let begin = now();
                assert_eq!(split_path(&line, &context), None);
                now() - begin
            };
            (0..5).map(time).min().unwrap().max(10_000)
        };
        // Ten times as much, and a hundred times where each colon looks through what stands before it.
        let (short, long) = (best(6_000), best(60_000));
        assert!(long < 30 * short, "{short} ns, then {long} ns");
    }

    #[test]
    fn paths_are_parted_from_lines() {
        let context = context();
        let text = "/fake/proc/stat:cpu 1\n/fake/proc/net/dev: eth0: 5\n/sys/fs/cgroup/a:b.slice/cpu.stat:usage_usec 7\n\
            members:1 2\n/proc/forged:x\nno colon\n/sys/x:y\n";
        let lines = Lines::of(text, &context);
        assert_eq!(lines.file("/stat"), ["cpu 1"]);
        assert_eq!(lines.file("/net/dev"), [" eth0: 5"]);
        assert_eq!(lines.ending("/cpu.stat"), [("/sys/fs/cgroup/a:b.slice", &["usage_usec 7"][..])]);
        assert_eq!(lines.first("members"), Some("1 2"));
        assert_eq!(named(&["pgfault 5", "pgfaultx 6"], "pgfaultx"), Some(6));
        assert_eq!(named(&["MemFree:   12 kB"], "MemFree"), Some(12));
        assert_eq!(named(&["a"], "a"), None);
    }
}
