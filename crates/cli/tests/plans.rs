//! Plan files on the real binary: written, read, overruled, and wrong.

mod common;

use common::{Place, Ruler, Running};

#[test]
fn a_plan_that_was_printed_is_carried_out() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let url = ruler.url("/size/100");
    let printed = place.duel(["plan", "run", &url, "-n", "40", "-c", "2", "-H", "X-Id: \"7\""]).ok();
    assert_eq!(printed.stderr, "", "nothing else is said, and nothing is done");
    assert!(!place.archive().exists());
    let plan = place.file("plan.toml", &printed.stdout);
    let run = place.json(["run", "--plan", &plan]);
    assert_eq!((&run["targets"][0]["address"], &run["targets"][0]["ops"]), (&url.into(), &40.into()));
    // What is typed goes first, here instead of the file's number of requests.
    let run = place.json(["run", "--plan", &plan, "-n", "7"]);
    assert_eq!(run["targets"][0]["ops"], 7);
    // The plan of a plan is the same plan.
    assert_eq!(place.duel(["plan", "run", "--plan", &plan]).ok().stdout, printed.stdout);
}

#[test]
fn errors_point_at_the_line() {
    let place = Place::new();
    for (text, verb, said, shown) in [
        (
            "targets = [\"http://a/\", \"http://b/\"]\n[comparing]\nmargin = \"200%\"\n",
            None,
            "plan.toml:3:10: --margin has to lie between 0 and 100 %",
            "  3 | margin = \"200%\"\n               ^^^^^^",
        ),
        (
            "[load]\nconections = 5\n",
            Some("run"),
            "plan.toml:2:1: there is no option --conections; a similar key exists: connections",
            "  2 | conections = 5\n      ^^^^^^^^^^",
        ),
        ("[load\n", None, "plan.toml:1:6: this is no TOML: ", "  1 | [load\n"),
    ] {
        place.file("plan.toml", text);
        let done = place.duel(verb.into_iter().chain(["--plan", "plan.toml"])).ended(2);
        assert_eq!(done.stdout, "");
        assert!(done.stderr.starts_with(&format!("duel: {said}")), "{}", done.stderr);
        assert!(done.stderr.contains(shown), "{}", done.stderr);
    }
    let sentence = place.duel(["--plan", "nothing.toml"]).refused(2);
    assert_eq!(sentence, "cannot read the plan nothing.toml: No such file or directory");
    // A secret is shown neither in the sentence nor in a line below it.
    place.file("plan.toml", "targets = \"http://a/\"\n[request]\nheader = [\n  \"s3cr3t\",\n]\n");
    let done = place.duel(["run", "--plan", "plan.toml"]).ended(2);
    assert!(done.stderr.contains("plan.toml:4:3: ") && !done.stderr.contains("s3cr3t"), "{}", done.stderr);
}

#[test]
fn secrets_stay_out_of_plans_and_are_asked_for() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let url = ruler.url("/size/10");
    let printed = place.duel(["plan", "run", &url, "-n", "5", "-c", "1", "-H", "Authorization: s3cr3t"]).ok().stdout;
    assert!(!printed.contains("s3cr3t") && printed.contains("Authorization: [not kept]"), "{printed}");
    let plan = place.file("plan.toml", &printed);
    let done = place.duel(["run", "--plan", &plan]).ended(2);
    assert!(done.stderr.contains("the values of Authorization were not kept"), "{}", done.stderr);
    let secrets = place.file("secrets", "Authorization: s3cr3t\n");
    place.duel(["run", "--plan", &plan, "-H", &format!("@{secrets}"), "-q"]).ok();
}

#[test]
fn what_takes_no_plan_says_so() {
    let place = Place::new();
    assert!(place.duel(["plan", "list"]).refused(2).contains("'list' takes no plan"));
    assert!(place.duel(["plan", "http://a/"]).refused(2).contains("a comparison needs two targets"));
    assert!(place.duel(["plan", "--help"]).ok().stdout.contains("duel --plan plan.toml"));
}

#[test]
fn manual_pages_and_completions_are_made_of_the_options() {
    let place = Place::new();
    let page = place.duel(["man"]).ok().stdout;
    assert!(page.contains(".TH") && page.contains("quick\\-ack") && !page.contains("lens\\-child"), "{page}");
    assert!(place.duel(["man", "check"]).ok().stdout.contains("critical"));
    assert!(place.duel(["man", "lens-child"]).refused(2).contains("there is no command 'lens-child'"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.duel(["completions", shell]).ok().stdout;
        assert!(script.contains("quick-ack") && script.contains("check"), "{shell}");
        place.file(&format!("duel.{shell}"), script);
    }
    let mut bash = std::process::Command::new("bash");
    bash.arg("-n").arg(place.path("duel.bash"));
    Running::start(bash).end().ok();
    // Where there is a formatter, it has no complaint.
    for name in ["", "run", "check", "plan", "why"] {
        let page = place.duel(["man"].into_iter().chain((!name.is_empty()).then_some(name))).ok().stdout;
        let file = place.file("page.1", page);
        for (program, args) in [("mandoc", &["-Tlint", "-Werror"][..]), ("groff", &["-man", "-Tutf8", "-ww", "-z"])] {
            let mut command = std::process::Command::new(program);
            command.args(args).arg(&file);
            if std::process::Command::new(program).arg("--version").output().is_ok() {
                let done = Running::start(command).end();
                assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{program} {name}");
            }
        }
    }
}

#[test]
fn a_line_that_may_hold_a_secret_is_not_shown() {
    let place = Place::new();
    for text in [
        "targets = \"http://a/\"\n[load]\nheader = [\"X-Plain: s3cr3t\"]\n[request]\nheader = [\"X-Plain: s3cr3t\"]",
        "targets = \"http://a/\"\n[request]\nheader = [[\"X-Plain: s3cr3t\"]]",
        "targets = \"http://a/\"\n[request]\nbody = [\"s3cr3t\", \"s3cr3t\"]",
        "targets = \"http://a/\"\n[request]\nform = { a = \"s3cr3t\" }",
        "targets = \"http://a/?q=s3cr3t\"\n[load]\ntargets = \"http://a/?q=s3cr3t\"",
        "targets = \"http://a/\"\notlp = [\"http://c/?q=s3cr3t\", \"http://c/?q=s3cr3t\"]",
    ] {
        place.file("plan.toml", text);
        let done = place.duel(["run", "--plan", "plan.toml"]).ended(2);
        assert!(done.stderr.contains("plan.toml:") && !done.stderr.contains("s3cr3t"), "{text}\n{}", done.stderr);
    }
}
