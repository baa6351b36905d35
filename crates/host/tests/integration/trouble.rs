//! Hosts that are not as they should be: said plainly, bounded, and the rest goes on.

use crate::common::{self, quiet, with_shell};
use duel_host::{HostAccess, HostError, HostWatch, Options, Server};
use duel_model::HostSpan;
use std::fs;
use std::time::Duration;

fn open(options: &Options) -> Result<HostWatch, HostError> {
    HostWatch::open_with(&HostAccess::Local, &Server::Unknown, options)
}

#[test]
fn a_shell_that_is_not_there() {
    let error = open(&with_shell(&["/no/such/shell"])).unwrap_err().to_string();
    assert!(error.contains("/no/such/shell") && error.contains("on this machine"), "{error}");
}

#[test]
fn a_shell_that_ends_at_once_says_why() {
    let error =
        open(&with_shell(&["/bin/sh", "-c", "printf 'sorry \\033[2J no shell for you\\n' >&2; exit 1"])).unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, HostError::Ended { .. }) && text.contains("no shell for you") && !text.contains('\x1b'),
        "{text}"
    );
}

#[test]
fn a_shell_that_hangs_is_given_up() {
    let options = Options {
        facts_timeout: Duration::from_millis(300),
        ..with_shell(&["/bin/sh", "-c", "echo welcome; exec sleep 1000"])
    };
    let error = open(&options).unwrap_err();
    assert!(matches!(error, HostError::Silent { .. }) && error.to_string().contains("welcome"), "{error}");
}

#[test]
fn endless_output_is_bounded() {
    let options = Options {
        facts_timeout: Duration::from_millis(500),
        ..with_shell(&["/bin/sh", "-c", "exec yes forged - frames 0"])
    };
    let error = open(&options).unwrap_err().to_string();
    assert!(error.contains("forged - frames") && error.len() < 2000, "{error}");
}

#[test]
fn a_login_message_disturbs_nothing() {
    let watch = open(&with_shell(&["/bin/sh", "-c", "echo 'Welcome! duel-123 + system'; exec /bin/sh -s"])).unwrap();
    assert!(watch.facts().text("os.kernel").is_some());
    assert!(watch.sample().unwrap().counters.contains_key("cpu.busy_ns") || !cfg!(target_os = "linux"));
}

#[test]
fn megabytes_in_one_line_and_escapes_disturb_nothing() {
    let hostile = "head -c 3000000 /dev/zero | tr '\\0' x; printf '\\n\\033]0;owned\\007\\033[2J\\n$(false) `false`\\n'; \
        printf 'duel-0000 + system\\nPlan9\\nduel-0000 - system 0\\n'; exec /bin/sh -s";
    let watch = open(&with_shell(&["/bin/sh", "-c", hostile])).unwrap();
    assert!(watch.facts().text("os.kernel").is_some());
    let sample = watch.sample().unwrap();
    let record = watch.finish();
    let shown = format!("{:?} {:?} {:?} {sample:?}", record.facts, record.doubts, record.last_words);
    assert!(!shown.contains("Plan9") && !shown.contains("owned") && !shown.contains("\\u{1b}"), "{shown}");
}

#[test]
fn a_host_that_dies_under_load_leaves_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let command = format!("echo $$ >{}; exec /bin/sh -s", file.display());
    let watch = open(&with_shell(&["/bin/sh", "-c", &command])).unwrap();
    watch.sample().unwrap();
    let pid = rustix::process::Pid::from_raw(fs::read_to_string(&file).unwrap().trim().parse().unwrap()).unwrap();
    let words = format!("duel test {} is about to die", std::process::id());
    let said = say_by_the_kernel(&words, pid.as_raw_nonzero().get() as u32);
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let error = watch.sample().unwrap_err();
    assert!(matches!(error, HostError::Ended { .. }), "{error}");
    assert_eq!(watch.sample().unwrap_err(), error, "it is said again");
    let record = watch.finish();
    assert_eq!(record.samples.len(), 1);
    assert!(record.lost.unwrap().contains("ended"));
    common::wait_until("what it had started is gone too", || rustix::process::test_kill_process_group(pid).is_err());
    assert!(record.doubts.iter().any(|doubt| doubt.contains("not read to the end")), "{:?}", record.doubts);
    let last_words = record.last_words;
    assert!(!said || last_words.iter().any(|line| line.text.contains(&words)), "{last_words:?}");
}

/// Writes a line into the kernel's log, and waits until whoever follows it for this shell has passed it on. False, and said,
/// where that is not permitted.
fn say_by_the_kernel(words: &str, shell: u32) -> bool {
    let written_bytes = || {
        let command = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let follower =
            common::children_of(shell).into_iter().find(|pid| command(pid).starts_with(b"cat\0/dev/kmsg"))?;
        let io = fs::read_to_string(format!("/proc/{follower}/io")).ok()?;
        io.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse::<u64>().ok())
    };
    // First it passes on what was there before.
    let mut seen = None;
    common::wait_until("the follower has caught up", || {
        written_bytes() == std::mem::replace(&mut seen, written_bytes())
    });
    let Some(before) = seen else {
        println!("passed over: nobody follows the kernel's log here, so there are no last words");
        return false;
    };
    // Without its end a line may be continued, and nobody is shown it until then.
    if let Err(error) = fs::write("/dev/kmsg", format!("{words}\n")) {
        println!("passed over: no line can be written to /dev/kmsg: {error}");
        return false;
    }
    common::wait_until("the line comes", || written_bytes().is_some_and(|bytes| bytes >= before + words.len() as u64));
    true
}

#[test]
fn a_host_that_stops_answering_is_given_up_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let command = format!("echo $$ >{}; exec /bin/sh -s", file.display());
    let options = Options { sample_timeout: Duration::from_millis(300), ..with_shell(&["/bin/sh", "-c", &command]) };
    let watch = open(&options).unwrap();
    let pid = rustix::process::Pid::from_raw(fs::read_to_string(&file).unwrap().trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let error = watch.sample().unwrap_err();
    assert!(matches!(error, HostError::Silent { .. }), "{error}");
    assert_eq!(watch.sample().unwrap_err(), error);
    assert!(watch.finish().lost.is_some());
    common::wait_until("the hung shell is gone", || rustix::process::test_kill_process(pid).is_err());
}

#[test]
#[cfg(target_os = "linux")]
fn a_host_without_proc_is_all_unknown_and_never_zero() {
    let options = Options { proc_root: "/no/such/proc".into(), sys_root: "/no/such/sys".into(), ..quiet() };
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Port(80), &options).unwrap();
    let facts = watch.facts();
    assert!(facts.text("os.kernel").is_some(), "uname needs no files");
    for key in
        ["cpu.model", "cpu.cpus", "memory.total_bytes", "tcp.tcp_rmem", "mount", "disk", "cgroup.version", "process"]
    {
        assert!(facts.0.get(key).is_some_and(|known| known.text().is_none()), "{key}: {:?}", facts.0.get(key));
    }
    let why = format!("{:?}", facts.0["process"]);
    assert!(why.contains("table of TCP sockets cannot be read"), "{why}");
    let (from, to) = (watch.sample().unwrap(), watch.sample().unwrap());
    assert!(from.counters.is_empty() && from.gauges.is_empty() && from.uptime_ns.is_none(), "{from:?}");
    assert_eq!(HostSpan::between(&from, &to).per_second("cpu.busy_ns"), None);
}

#[test]
#[cfg(target_os = "linux")]
fn half_of_the_counters_are_half_of_the_counters() {
    let folder = tempfile::tempdir().unwrap();
    let proc = folder.path().join("proc");
    fs::create_dir_all(proc.join("net")).unwrap();
    fs::write(proc.join("uptime"), "100.00 1.00\n").unwrap();
    fs::write(proc.join("stat"), "cpu  10 0 20 300 0 0 0 0 0 0\ncpu0 10 0\nbtime x\n").unwrap();
    fs::write(proc.join("net/snmp"), "Tcp: RetransSegs\nTcp: 7\n").unwrap();
    fs::write(proc.join("vmstat"), [0xff_u8, 0xfe, b'\n', 0, 0x1b, b'[']).unwrap();
    let options = Options { proc_root: proc.to_str().unwrap().to_owned(), sys_root: "/no/such/sys".into(), ..quiet() };
    let watch = open(&options).unwrap();
    let from = watch.sample().unwrap();
    assert_eq!((from.counters["tcp.retransmitted_segments"], from.counters.get("tcp.listen_overflows")), (7, None));
    assert!(from.counters.contains_key("cpu.busy_ns") && !from.counters.contains_key("cpu.0.user_ns"));

    // The clock jumps, and a counter goes backwards.
    fs::write(proc.join("uptime"), "5000.00 1.00\n").unwrap();
    fs::write(proc.join("net/snmp"), "Tcp: RetransSegs\nTcp: 3\n").unwrap();
    fs::write(proc.join("stat"), "cpu  11 0 20 300 0 0 0 0 0 0\n").unwrap();
    let to = watch.sample().unwrap();
    let span = HostSpan::between(&from, &to);
    assert_eq!((span.elapsed_ns(), span.per_second("cpu.user_ns")), (None, None));
    assert!(span.per_op("cpu.user_ns", 10).unwrap() > 0.0);
    assert_eq!(span.growth("tcp.retransmitted_segments"), None);
    let record = watch.finish();
    assert!(
        record
            .doubts
            .iter()
            .any(|doubt| doubt.contains("this machine's clocks disagreed about how long a stretch took (once)")),
        "{:?}",
        record.doubts
    );
}

#[test]
fn roots_that_could_leave_their_quotes_are_refused() {
    for root in ["proc", "/a'b", "/a b", "/a:b", "/proc/", "/$(x)"] {
        let options = Options { proc_root: root.to_owned(), ..quiet() };
        assert!(open(&options).is_err(), "{root}");
    }
}

#[test]
fn a_process_that_is_not_there_is_said() {
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::Pid(u32::MAX), &quiet()).unwrap();
    let why = format!("{:?}", watch.facts().0["process"]);
    assert!(why.contains("there is no process"), "{why}");
    let watch = HostWatch::open_with(&HostAccess::Local, &Server::service("no-such-thing").unwrap(), &quiet()).unwrap();
    let why = format!("{:?}", watch.facts().0["process"]);
    assert!(why.contains("no running main process"), "{why}");
}
