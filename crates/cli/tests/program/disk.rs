//! `duel` on file systems, files and devices that the test makes itself.

use crate::common::{DUEL, Done, Place, Running, skipped, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// A script with mounts and loop devices of its own: what it mounts is unmounted with it, however it ends, and so its loop
/// devices go, for `mount -o loop` ties them to the mount. `$D` is duel and `$F` a folder. `None`: this machine has none of that.
pub(crate) fn with_mounts(place: &Place, script: &str) -> Option<Done> {
    let output = Command::new("unshare")
        .args(["-m", "--propagation", "private", "sh", "-c", script])
        .env_clear()
        .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap()))
        .envs([("D", DUEL), ("F", place.root().to_str().unwrap()), ("HOME", place.root().to_str().unwrap())])
        .envs([("DUEL_ARCHIVE", place.archive().to_str().unwrap()), ("LC_ALL", "C.UTF-8")])
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.code() != Some(77) => Some(Done {
            shown: script.to_owned(),
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }),
        Ok(output) => {
            skipped(&format!("no loop device here: {}", String::from_utf8_lossy(&output.stderr)));
            None
        }
        Err(error) => {
            skipped(&format!("no mounts here: {error}"));
            None
        }
    }
}

/// Lines of a script that mount a new file system.
pub(crate) fn mounted(name: &str, file_system: &str, mib: u32, options: &str) -> String {
    format!(
        "truncate -s {mib}M $F/{name}.img && mkfs.{file_system} -q $F/{name}.img >/dev/null 2>&1 && mkdir $F/{name} &&
         mount -o loop{options} $F/{name}.img $F/{name} || exit 77\n"
    )
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn work_files(folder: &Path) -> usize {
    names(folder).iter().filter(|name| name.starts_with("duel-work-")).count()
}

#[test]
fn a_folder_is_loaded_and_left_as_it_was() {
    let place = Place::new();
    let folder = place.root().join("f");
    fs::create_dir(&folder).unwrap();
    let path = folder.to_str().unwrap();
    let words = ["run", path, "--op", "randread", "--block", "4k", "--depth", "4", "--size", "1M", "-n", "500"];
    let document = place.json(words);
    let target = &document["targets"][0];
    assert_eq!((&target["ops"], &target["failed"]), (&500.into(), &serde_json::json!({})), "{document}");
    assert_eq!(document["workload"], "disk");
    assert!(names(&folder).is_empty());
    let shown = place.duel(["show", "last"]).ok().stdout;
    for told in ["ops ok", "Disks", "file system", "engine", "op randread"] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    assert!(!shown.contains("destroy"), "what was not given says nothing: {shown}");
}

#[test]
fn a_file_is_read_and_written_only_where_that_was_said() {
    let place = Place::new();
    let file = place.file("mine", vec![7; 1 << 20]);
    let document = place.json(["run", &file, "--op", "read", "--block", "64k", "-n", "16", "-t", "1"]);
    assert_eq!(document["targets"][0]["ops"], 16);
    let refused = place.duel(["run", &file, "--op", "write", "-n", "5", "-q"]).refused(1);
    assert!(refused.contains("only read") && refused.contains("--destroy"), "{refused}");
    assert_eq!(fs::read(&file).unwrap(), vec![7; 1 << 20]);
    place.json(["run", &file, "--op", "write", "-n", "5", "--destroy", &file]);
    assert_ne!(fs::read(&file).unwrap(), vec![7; 1 << 20]);
}

#[test]
fn an_interrupted_run_leaves_nothing_and_one_that_was_killed_is_told_of() {
    let place = Place::new();
    let folder = place.root().join("f");
    fs::create_dir(&folder).unwrap();
    let path = folder.to_str().unwrap();
    let start = || {
        let mut command = place.command();
        command.args(["run", path, "--size", "4M", "-d", "600s", "-q"]);
        Running::start(command)
    };
    let running = start();
    wait_until("a work file", || work_files(&folder) == 1);
    running.signal(Signal::INT);
    let done = running.end();
    assert_eq!((done.code, work_files(&folder)), (Some(130), 0), "{}", done.stderr);

    let running = start();
    wait_until("a work file", || work_files(&folder) == 1);
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(work_files(&folder), 1);
    // A run of its own beside it: that one's file is not taken for one that was left behind.
    let beside = start();
    wait_until("another work file", || work_files(&folder) == 2);
    let next = place.duel(["run", path, "--size", "1M", "-n", "5", "-q"]).ok();
    assert!(
        next.stderr.contains("there is a work file in") && next.stderr.contains("duel disk clean"),
        "{}",
        next.stderr
    );
    assert_eq!(work_files(&folder), 2, "nothing is removed unasked");
    let cleaned = place.duel(["disk", "clean", path]).ok();
    assert!(cleaned.stdout.starts_with("removed ") && cleaned.stdout.lines().count() == 1, "{}", cleaned.stdout);
    assert_eq!(work_files(&folder), 1);
    beside.signal(Signal::INT);
    assert_eq!(beside.end().code, Some(130));
    assert!(names(&folder).is_empty());
}

#[test]
fn whole_files_are_worked_on_and_a_folder_of_them_that_a_kill_left_is_told_of() {
    let place = Place::new();
    let folders = ["a", "b"].map(|name| place.root().join(name));
    let [a, b] = folders.each_ref().map(|folder| {
        fs::create_dir(folder).unwrap();
        folder.to_str().unwrap()
    });
    for op in ["create", "stat", "readfile", "unlink"] {
        let words = [a, b, "--op", op, "--files", "60", "--file-size", "700", "--folders", "3", "-t", "2", "-d", "1s"];
        let document = place.json(words);
        for target in document["targets"].as_array().unwrap() {
            assert_eq!(target["failed"], serde_json::json!({}), "{op}: {target}");
            assert!(target["ops"].as_u64() > Some(100), "{op}: {target}");
        }
    }
    let refused = place.duel(["run", a, "--op", "stat", "--direct", "-n", "5", "-q"]).refused(2);
    assert!(refused.contains("--direct is for ops on one file"), "{refused}");
    let file = place.file("mine", vec![7; 4096]);
    let refused = place.duel(["run", &file, "--op", "unlink", "-n", "5", "-q"]).refused(1);
    assert!(refused.contains("need a folder") && Path::new(&file).exists(), "{refused}");

    let mut command = place.command();
    command.args(["run", a, "--op", "unlink", "--files", "500", "-d", "600s", "-q"]);
    let running = Running::start(command);
    wait_until("files in their folders", || {
        names(&folders[0]).first().is_some_and(|name| folders[0].join(name).join("d00009").exists())
    });
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(work_files(&folders[0]), 1);
    let next = place.duel(["disk", "files", a, "--size", "64k", "--files", "20", "--json"]).ok();
    assert!(next.stderr.contains("duel disk clean"), "{}", next.stderr);
    let document = next.json();
    assert_eq!(document["one_file"].as_array().unwrap().len(), 6, "{document}");
    assert_eq!(document["many_files"].as_array().unwrap().len(), 2 * 2 * 4, "{document}");
    assert!(place.duel(["disk", "clean", a]).ok().stdout.starts_with("removed "));
    assert!(names(&folders[0]).is_empty() && names(&folders[1]).is_empty());
}

#[test]
fn file_systems_are_compared_with_a_factor() {
    let place = Place::new();
    let script = mounted("a", "ext4", 64, "")
        + &mounted("b", "xfs", 320, "")
        + "$D $F/a $F/b --op randwrite --block 4k,16k --size 8M -d 3s -q --json; echo $? >$F/code
           ls $F/a $F/b >$F/left";
    let Some(done) = with_mounts(&place, &script) else { return };
    assert_eq!(fs::read_to_string(place.path("code")).unwrap(), "0\n", "{}", done.stderr);
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    for (target, file_system) in [(0, "ext4"), (1, "xfs")] {
        let told = document["targets"][target].to_string();
        assert!(told.contains(file_system), "{told}");
    }
    assert!(!fs::read_to_string(place.path("left")).unwrap().contains("duel-work"));
}

/// Two file systems of which one device reads nothing ahead, and the comparison that is to find it.
fn without_read_ahead(ops: &str) -> String {
    mounted("fast", "ext4", 64, "")
        + &mounted("slow", "ext4", 64, "")
        + "L=$(losetup -n -O NAME -j $F/slow.img); blockdev --setra 0 $L || exit 77\n"
        // Where devices can be throttled, their speed and not the machine's is what is compared.
        + "C=/sys/fs/cgroup/blkio/duel-$$
           if mkdir $C 2>/dev/null; then
               trap 'echo $$ >/sys/fs/cgroup/blkio/cgroup.procs; rmdir $C' EXIT
               for i in fast slow; do
                   L=$(losetup -n -O NAME -j $F/$i.img)
                   echo \"$(cat /sys/class/block/${L#/dev/}/dev) 400\" >$C/blkio.throttle.read_iops_device
               done
               echo $$ >$C/cgroup.procs
           fi\n"
        // Time for four probes: caps of the device are asked for before its reading ahead.
        + &format!("$D fast=$F/fast slow=$F/slow {ops} --size 16M --cold --why --why-budget 20s -d 5s -q --json")
}

#[test]
fn read_ahead_that_is_off_is_found_and_not_accused_of_what_it_does_not_do() {
    // A machine that gives us hardly any time makes `unknown` the right answer, so it is asked anew.
    let found = (0..6).find_map(|_| {
        let place = Place::new();
        let done = with_mounts(&place, &without_read_ahead("--op read --block 4k"))?;
        let document = done.json();
        let causes: Vec<&Value> =
            document["findings"].as_array().unwrap().iter().map(|found| &found["cause"]).collect();
        let known = ["disk.readahead-off", "unknown", "none"];
        assert!(causes.iter().all(|cause| known.iter().any(|name| *cause == name)), "{causes:?}");
        let is_it = |found: &&Value| found["cause"] == "disk.readahead-off" && found["target"] == "slow";
        document["findings"].as_array().unwrap().iter().find(is_it).cloned().or_else(|| {
            println!("not found: {}", document["findings"]);
            None
        })
    });
    let place = Place::new();
    let Some(done) = with_mounts(&place, &without_read_ahead("--op randread --block 4k")) else { return };
    assert!(!done.json()["findings"].to_string().contains("disk.readahead-off"), "{}", done.stdout);
    assert!(found.is_some(), "it was not found in any comparison");
}

#[test]
fn the_allocation_unit_is_found_by_writing_a_byte() {
    let place = Place::new();
    let script =
        "truncate -s 64M $F/x.img && mkfs.ext4 -q -O bigalloc -C 65536 $F/x.img >/dev/null 2>&1 && mkdir $F/x &&
        mount -o loop $F/x.img $F/x || exit 77
        $D run $F/x --size 1M -n 5 -q --json";
    let Some(done) = with_mounts(&place, script) else { return };
    let facts = done.json()["targets"][0].to_string();
    assert!(facts.contains("\"disk.allocation_bytes\":65536"), "{facts}");
}

#[test]
fn what_is_wrong_with_a_mount_is_told_in_a_sentence() {
    let place = Place::new();
    let script = mounted("full", "ext4", 16, "")
        + &mounted("ro", "ext4", 16, "")
        + "mount -o remount,ro $F/ro || exit 77
           $D run $F/full --size 1G -n 5 -q 2>&1; echo $?
           $D run $F/ro --size 1M -n 5 -q 2>&1; echo $?
           L=$(losetup -n -O NAME -j $F/ro.img); $D run $L --op write --destroy $L -n 5 -q 2>&1; echo $?
           ls -A $F/full $F/ro";
    let Some(done) = with_mounts(&place, &script) else { return };
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert!(lines[0].contains("no space in") && lines[0].contains("--size"), "{}", done.stdout);
    assert!(lines[2].contains("mounted read-only"), "{}", done.stdout);
    assert!(lines[4].contains("is mounted") && lines[4].contains("not overwritten"), "{}", done.stdout);
    assert_eq!((lines[1], lines[3], lines[5]), ("1", "1", "1"), "{}", done.stdout);
    assert!(!done.stdout.contains("duel-work-1") && done.stdout.matches("lost+found").count() == 2, "{}", done.stdout);
}

#[test]
fn a_user_without_permission_is_told_so() {
    let place = Place::new();
    let folder = place.root().join("theirs");
    fs::create_dir(&folder).unwrap();
    let set = std::os::unix::fs::PermissionsExt::from_mode;
    fs::set_permissions(&folder, set(0o500)).unwrap();
    let mut command = place.command_within(&["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.args(["run", folder.to_str().unwrap(), "--size", "1M", "-n", "5", "-q", "--no-archive"]);
    let done = Running::start(command).end();
    if rustix::process::getuid().is_root() {
        assert!(done.stderr.contains("no permission"), "{}", done.stderr);
        assert_eq!(done.code, Some(1));
    }
}

/// A loop device of the test's own, detached when it is dropped.
struct Loop(String);

impl Loop {
    fn over(place: &Place, mib: u32) -> Option<Self> {
        let image = place.file("device.img", "");
        fs::File::options().write(true).open(&image).unwrap().set_len(u64::from(mib) << 20).unwrap();
        let made = Command::new("losetup").args(["--show", "-f", &image]).output();
        match made {
            Ok(made) if made.status.success() => Some(Self(String::from_utf8(made.stdout).unwrap().trim().to_owned())),
            other => {
                skipped(&format!("no loop device here: {other:?}"));
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

/// What duel prints on a terminal where this is typed.
fn on_terminal(words: &str, typed: &str) -> String {
    let mut script = Command::new("script");
    let words = format!("{DUEL} {words}; echo \"exit $?\"");
    script.args(["-qec", &words, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = script.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn an_image_is_written_onto_a_device_after_asking_twice_and_read_back() {
    let place = Place::new();
    let Some(device) = Loop::over(&place, 8) else { return };
    let name = device.0.as_str();
    fs::write(name, vec![1; 8 << 20]).unwrap();
    // Data, a hole, and an end within a sector.
    let image = place.file("image", vec![7; 200_000]);
    let file = fs::File::options().write(true).open(&image).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[9; 1234], 3 << 20).unwrap();
    let bytes = fs::metadata(&image).unwrap().len() as usize;

    let unasked = place.duel(["disk", "write-image", &image, name]).refused(1);
    assert!(unasked.contains("--destroy"), "{unasked}");
    let without_terminal = place.duel(["disk", "write-image", &image, name, "--destroy", name]).refused(1);
    assert!(without_terminal.contains("typed once more"), "{without_terminal}");
    let words = format!("disk write-image {image} {name} --destroy {name}");
    let said = on_terminal(&words, "no\n");
    assert!(said.contains("was not typed; nothing was written") && said.contains("exit 1"), "{said}");
    assert!(fs::read(name).unwrap() == vec![1; 8 << 20], "nothing was written");

    // Where nothing is written into holes, what is there instead of zeros is told.
    let said = on_terminal(&format!("{words} --holes skip"), &format!("{name}\n"));
    assert!(said.contains("IT IS NOT THE IMAGE") && said.contains("exit 1"), "{said}");
    assert!(said.contains("bytes 262144 to ") && said.contains("--holes zero"), "{said}");
    let said = on_terminal(&words, &format!("{name}\n"));
    assert!(said.contains("it is the image") && said.contains("exit 0"), "{said}");
    let now = fs::read(name).unwrap();
    assert!(now[..bytes] == fs::read(&image).unwrap() && now[bytes..] == vec![1; (8 << 20) - bytes]);

    let large = place.file("large", "");
    fs::File::options().write(true).open(&large).unwrap().set_len(9 << 20).unwrap();
    let refused = place.duel(["disk", "write-image", &large, name, "--destroy", name]).refused(1);
    assert!(refused.contains("does not fit"), "{refused}");
    let script = format!(
        "mkfs.ext4 -q {name} && mkdir $F/m && mount {name} $F/m || exit 77
         $D disk write-image {image} {name} --destroy {name} 2>&1; echo $?
         $D disk write-image {image} $F/m/copy --holes skip; cmp {image} $F/m/copy && echo same"
    );
    let Some(done) = with_mounts(&place, &script) else { return };
    assert!(done.stdout.contains("is mounted") && done.stdout.contains("\n1\n"), "{}", done.stdout);
    assert!(done.stdout.contains("space used: ") && done.stdout.ends_with("same\n"), "{}", done.stdout);
}

#[test]
fn a_device_is_read_at_once_and_overwritten_only_after_its_name_was_typed_again() {
    let place = Place::new();
    let Some(device) = Loop::over(&place, 32) else { return };
    let name = device.0.as_str();
    Command::new("mkfs.ext4").args(["-q", name]).status().unwrap();
    let before = fs::read(name).unwrap();
    let document = place.json(["run", name, "--op", "randread", "--direct", "-n", "50"]);
    assert_eq!(document["targets"][0]["ops"], 50);
    let unasked = place.duel(["run", name, "--op", "write", "-n", "5", "-q"]).refused(1);
    assert!(unasked.contains("only read") && unasked.contains("--destroy"), "{unasked}");
    let without_terminal = place.duel(["run", name, "--op", "write", "--destroy", name, "-n", "5", "-q"]).refused(1);
    assert!(without_terminal.contains("typed once more"), "{without_terminal}");
    assert!(fs::read(name).unwrap() == before, "nothing was written");

    let words = format!("run {name} --op write --block 64k --destroy {name} -n 5 -q --no-archive");
    let on_terminal = |typed: &str| on_terminal(&words, typed);
    let said = on_terminal("/dev/other\n");
    assert!(said.contains("ext4") && said.contains("was not typed; nothing was written"), "{said}");
    assert!(fs::read(name).unwrap() == before, "nothing was written");
    let said = on_terminal(&format!("{name}\n"));
    assert!(said.contains("ALL OF IT WILL BE LOST") && said.contains("5 ops ok"), "{said}");
    assert!(fs::read(name).unwrap() != before);
}

#[test]
fn tables_of_a_file_have_all_rows() {
    let place = Place::new();
    let file = place.file("mine", vec![7; 32 << 20]);
    let done = place.duel(["disk", "tables", &file, "--json"]);
    if done.stderr.contains("no direct I/O") || done.stderr.contains("in memory") {
        return skipped(&done.stderr);
    }
    let document = done.ok().json();
    let names = |rows: &str| -> Vec<String> {
        document[rows].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("transfers"), ["outside", "middle", "inside"]);
    assert_eq!(names("seeks").len(), 7);
    assert!(document["seeks"].as_array().unwrap().iter().all(|row| row["mean_ms"].as_f64() > Some(0.0)));
    let text = place.duel(["disk", "tables", &file]).ok().stdout;
    assert!(text.contains("full stroke") && text.contains("Transfer rates"), "{text}");
}
