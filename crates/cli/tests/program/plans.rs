//! Plan files on the real binary: written, read, overruled, and wrong.

use crate::common::{Place, Ruler, Running};

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
fn manual_pages_are_made_of_the_options() {
    let place = Place::new();
    let page = place.duel(["man"]).ok().stdout;
    assert!(page.contains(".TH") && page.contains("quick\\-ack") && !page.contains("lens\\-child"), "{page}");
    assert!(place.duel(["man", "check"]).ok().stdout.contains("critical"));
    assert!(place.duel(["man", "lens-child"]).refused(2).contains("there is no command 'lens-child'"));
    let synopsis = |name: &str| {
        let page = place.duel(["man", name]).ok().stdout;
        page.split_once(".SH SYNOPSIS\n").unwrap().1.lines().next().unwrap().to_owned()
    };
    assert_eq!(synopsis("plan"), "\\fBduel plan\\fR [run|check] [OPTIONS] [NAME=]URL...");
    assert_eq!(synopsis("hey"), "\\fBduel hey\\fR [options...] <url>");
    // Where there is a formatter, it has no complaint.
    for name in ["", "run", "check", "plan", "why", "hey"] {
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

/// hey's flags, as its help tells them.
fn flags_of_hey(place: &Place) -> Vec<String> {
    let help = place.duel(["hey", "-help"]).ok().stdout;
    let told = help.lines().filter(|line| line.starts_with("  -"));
    let names = told.flat_map(|line| line.split_whitespace().take_while(|word| word.starts_with('-')));
    let names: Vec<String> = names.map(|name| name.trim_end_matches(',').to_owned()).collect();
    assert!(names.len() == 26 && names.iter().any(|name| name == "-allow-insecure"), "{names:?}");
    names
}

#[test]
fn the_page_of_hey_tells_its_own_flags() {
    let place = Place::new();
    let page = place.duel(["man", "hey"]).ok().stdout;
    for flag in flags_of_hey(&place) {
        let shown = format!(".TP\n\\fB{}\\fR", flag.replace('-', "\\-"));
        assert!(page.contains(&shown), "{flag}: {page}");
    }
    for global in ["json", "quiet", "no\\-archive"] {
        assert!(!page.contains(&format!("\\-{global}")), "{global} is none of its flags: {page}");
    }
}

#[test]
fn completions_are_made_of_the_options() {
    let place = Place::new();
    let flags = flags_of_hey(&place);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.duel(["completions", shell]).ok().stdout;
        assert!(script.contains("quick-ack") && script.contains("check"), "{shell}");
        for hidden in ["lens-child", "ruler", "name-suspects"] {
            assert!(!script.contains(hidden), "{shell}: {hidden}");
        }
        for flag in &flags {
            let offered = match shell {
                "zsh" => format!("\n'{flag}"),
                "fish" => format!(" hey\" -o {} ", &flag[1..]),
                "elvish" => format!("cand {flag} "),
                "powershell" => format!("::new('{flag}', '{flag}"),
                _ => format!(" {flag} "),
            };
            // zsh is told with a star which flags may be repeated.
            let offered = if flag == "-H" { offered.replace("\n'", "\n'*") } else { offered };
            assert!(script.contains(&offered), "{shell}: {offered:?}");
        }
        // Behind a bare colon zsh would look for the command VALUE.
        assert!(shell != "zsh" || script.contains(":NAME\\: VALUE:") && !script.contains(":NAME: VALUE:"));
        let file = place.file(&format!("duel.{shell}"), script);
        if std::process::Command::new(shell).arg("--version").output().is_ok() && shell != "elvish" {
            let mut command = std::process::Command::new(shell);
            command.arg("-n").arg(file);
            assert_eq!(Running::start(command).end().ok().stderr, "", "{shell}");
        }
    }
}

#[test]
fn bash_completes_what_hey_takes() {
    let place = Place::new();
    place.file("duel.bash", place.duel(["completions", "bash"]).ok().stdout);
    let completed = |words: &str| -> Vec<String> {
        let ask = format!(
            "source duel.bash; compopt() {{ :; }}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
             _duel duel \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; printf '%s ' \"${{COMPREPLY[@]}}\""
        );
        let mut bash = std::process::Command::new("bash");
        bash.args(["--norc", "-c", &ask]).current_dir(place.root());
        Running::start(bash).end().ok().stdout.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(completed("duel hey -disable-k"), ["-disable-keepalive"]);
    assert_eq!(completed("duel hey -style ''"), ["current", "2017"]);
    let mut offered = completed("duel hey -");
    assert_eq!(offered.pop().unwrap(), "-help");
    assert_eq!(offered, flags_of_hey(&place));
    assert_eq!(completed("duel le"), ["lens"]);
    assert_eq!(completed("duel run --qui"), ["--quick-ack", "--quiet"]);
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
