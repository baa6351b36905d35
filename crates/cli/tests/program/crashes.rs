//! The archive of the real program: when it is killed, when the disk is full, and where other machines may write too.

use crate::common::{Place, Running, skipped};
use duel_ruler::{Config, Ruler};
use rustix::process::Signal;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// `DUEL_CRASHES=full cargo test -p duel --test program crashes -- --nocapture` kills it 50 times.
fn kills() -> u32 {
    if std::env::var("DUEL_CRASHES").as_deref() == Ok("full") { 50 } else { 4 }
}

#[test]
fn whenever_it_is_killed_the_archive_opens_and_finished_runs_are_as_they_were() {
    let (place, ruler) = (Place::new(), Ruler::start(Config::default()).unwrap());
    let url = ruler.url("/delay/500");
    let first = place.json(["run", &url, "-n", "50", "-c", "2"]);
    let id = first["run"].as_str().unwrap().to_owned();
    let before = place.duel(["show", &id, "--json"]).ok().stdout;
    let (mut interrupted, start) = (0, Instant::now());
    for round in 0..u64::from(kills()) {
        let mut command = place.command();
        command.args([&url, &url, "-d", "600s", "-c", "2", "--slot", "50ms", "--no-early-stop", "-q"]);
        let running = Running::start(command);
        // From its first moments on: 0 to 2 s, spread by a step that has no common period with anything.
        std::thread::sleep(Duration::from_millis(round * 617 % 2000));
        running.signal(Signal::KILL);
        assert_eq!(running.end().code, None);
        assert_eq!(place.duel(["show", &id, "--json"]).ok().stdout, before, "round {round}");
        place.duel(["list"]).ok();
        // The killed one as far as it went, if there is anything of it.
        let last = place.duel(["show", "last", "--json"]).ok().json();
        if last["status"] == "interrupted" {
            assert_eq!(last["interruption"], "unfinished", "{last}");
            interrupted += 1;
        }
        let archive = rusqlite::Connection::open(place.archive()).unwrap();
        let sound: String = archive.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok");
    }
    assert!(interrupted > 0, "none of them was killed in its run");
    println!("{} kills, {interrupted} of them in a run: {:?}", kills(), start.elapsed());
}

/// What a shell says that has a mount of its own; `None` where that is not to be had. In `script`, `$D` is duel, `$U` an
/// address and `$F` a folder.
pub(crate) fn in_own_mount(place: &Place, url: &str, script: &str) -> Option<(String, String)> {
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-c", script])
        .env_clear()
        .envs([
            ("PATH", std::env::var("PATH").unwrap()),
            ("LC_ALL", "C.UTF-8".into()),
            ("D", crate::common::DUEL.into()),
        ])
        .envs([("U", url), ("F", place.root().to_str().unwrap()), ("HOME", place.root().to_str().unwrap())])
        .stdin(Stdio::null())
        .output();
    let output = match output {
        Ok(output) if output.status.code() != Some(77) => output,
        Ok(output) => {
            skipped(&format!("no mount here: {}", String::from_utf8_lossy(&output.stderr)));
            return None;
        }
        Err(error) => {
            skipped(&format!("no unshare here: {error}"));
            return None;
        }
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((text(&output.stdout), text(&output.stderr)))
}

#[test]
fn a_disk_that_becomes_full_is_told_and_what_was_finished_is_there() {
    let (place, ruler) = (Place::new(), Ruler::start(Config::default()).unwrap());
    let script = "mkdir $F/disk && mount -t tmpfs -o size=6m tmpfs $F/disk || exit 77
        export DUEL_ARCHIVE=$F/disk/runs.sqlite
        $D run $U -n 50 -c 2 -q --json >$F/first || exit 1
        head -c 6000000 /dev/zero >$F/disk/hog
        free=$((200 * 1024)); truncate -s -$free $F/disk/hog
        $D $U $U -d 6s -c 2 --slot 20ms --no-early-stop -q >$F/shown; echo full ended $?
        $D list -q; echo list ended $?
        rm $F/disk/hog
        $D show last~1 --json >$F/again; echo show ended $?
        $D show last >/dev/null; echo last ended $?
        $D run $U -n 50 -c 2 -q >/dev/null; echo next ended $?";
    let Some((said, errors)) = in_own_mount(&place, &ruler.url("/delay/500"), script) else { return };
    assert!(said.contains("full ended 1\n"), "{said}{errors}");
    assert!(errors.contains("the disk is full; free some space, or name a file elsewhere"), "{errors}");
    for line in ["list ended 0", "show ended 0", "last ended 0", "next ended 0"] {
        assert!(said.contains(line), "{line}: {said}{errors}");
    }
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert_eq!(read("first"), read("again"), "the run that was finished before is whole");
    assert!(!read("shown").is_empty(), "what was measured is shown all the same");
}

#[test]
fn where_other_machines_may_write_too_the_user_is_told_once_which_journal_the_archive_has() {
    let (place, ruler) = (Place::new(), Ruler::start(Config::default()).unwrap());
    // A home on FUSE, as on NFS.
    let script = "mkdir $F/behind $F/seen && bindfs $F/behind $F/seen || exit 77
        export DUEL_ARCHIVE=$F/seen/runs.sqlite
        for n in 1 2; do $D run $U -n 50 -c 2 >/dev/null || exit 1; done
        $D show last >/dev/null; echo show ended $?; ls $F/seen";
    let Some((said, errors)) = in_own_mount(&place, &ruler.url("/delay/500"), script) else { return };
    assert_eq!(errors.matches("is on FUSE: it gets a rollback journal there").count(), 1, "{errors}");
    assert_eq!(said, "show ended 0\nruns.sqlite\n", "neither a log nor shared memory: {errors}");
}
