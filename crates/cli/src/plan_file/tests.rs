use super::*;
use crate::command_line::tests::plan_of;
use crate::plan_file::read::PlanFile;
use crate::round_trips::COMMAND_LINES;
use clap::error::ErrorKind;
use proptest::prelude::*;

/// Reads a plan in place of a file.
fn entries(text: &str, verb: Option<&str>) -> Result<Vec<read::Entry>, PlanError> {
    let mut file = PlanFile::parse("p.toml", text.to_owned())?;
    file.keep_known(command_of(verb).unwrap(), verb)?;
    Ok(file.entries)
}

/// The words that a plan stands for, behind those that are typed.
fn words(text: &str, typed: &[&str], verb: Option<&str>) -> Vec<String> {
    let typed: Vec<OsString> = typed.iter().map(OsString::from).collect();
    let matches = indulgent(command_line::readable()).try_get_matches_from(&typed).unwrap();
    let matches = matches.subcommand().map_or(&matches, |(_, matches)| matches);
    let mut entries = entries(text, verb).unwrap();
    entries.retain(|entry| !words::is_overruled(entry, command_of(verb).unwrap(), matches));
    words::joined(&typed, &entries).into_iter().map(|word| word.into_string().unwrap()).collect()
}

fn said(text: &str, verb: Option<&str>) -> String {
    entries(text, verb).unwrap_err().sentence
}

/// Matches of a command line in which nothing has to be there.
fn matched(words: &[OsString], verb: Option<&str>) -> ArgMatches {
    let matches =
        indulgent(command_line::readable()).try_get_matches_from(words).unwrap_or_else(|error| panic!("{error}"));
    match verb {
        None => matches,
        Some(_) => matches.subcommand().unwrap().1.clone(),
    }
}

fn raw(matches: &ArgMatches, arg: &Arg) -> Vec<OsString> {
    matches.get_raw(arg.get_id().as_str()).into_iter().flatten().map(OsString::from).collect()
}

/// A command line without targets, with `name` before its options.
fn line(verb: Option<&str>, options: &[String]) -> Vec<OsString> {
    let words = ["duel"].into_iter().chain(verb).map(OsString::from);
    words.chain(options.iter().map(OsString::from)).collect()
}

/// Every option that a command has, also one that is added tomorrow, comes back from the plan that is written for it.
#[test]
fn every_option_comes_back_from_its_plan() {
    // Values of which each option takes one.
    let samples = ["say \"hi\"\\\n#tab\t=é", "7", "100", "0.5"];
    for verb in COMMANDS {
        let command = command_of(verb).unwrap();
        let all = indulgent(command_line::command());
        let mut tried = 0;
        for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
            let Some(long) = arg.get_long() else {
                panic!("{:?} of {verb:?} has no long name, and so no key in a plan", arg.get_id());
            };
            if ["help", "version", "plan"].contains(&long) {
                continue;
            }
            assert!(is_planned(arg), "--{long} of {verb:?} is of a kind that plans do not have");
            let possible: Vec<String> = arg.get_possible_values().iter().map(|v| v.get_name().to_owned()).collect();
            let options: Vec<Vec<String>> = match arg.get_action() {
                ArgAction::SetTrue => vec![vec![format!("--{long}")]],
                action => {
                    let takes = |value: &str| {
                        let typed = [format!("--{long}={value}")];
                        let error = all.clone().try_get_matches_from(line(verb, &typed)).err();
                        // What wants another option beside it takes the value.
                        error.is_none_or(|error| error.kind() == ErrorKind::MissingRequiredArgument)
                    };
                    let all = samples.iter().map(|sample| (*sample).to_owned()).chain(possible);
                    let taken: Vec<String> = all.filter(|value| takes(value)).collect();
                    assert!(!taken.is_empty(), "--{long}: a sample is needed that it takes");
                    let typed: Vec<String> = taken.iter().map(|value| format!("--{long}={value}")).collect();
                    let mut lines: Vec<Vec<String>> = typed.iter().map(|word| vec![word.clone()]).collect();
                    if matches!(action, ArgAction::Append) {
                        lines.push(typed);
                    }
                    if arg.get_num_args().is_some_and(|count| count.min_values() == 0) {
                        lines.push(vec![format!("--{long}")]);
                    }
                    lines
                }
            };
            for options in options {
                let options = completed(&all, command, verb, options);
                let before = matched(&line(verb, &options), verb);
                let text = write::written(command, verb, &before).unwrap();
                let parsed = entries(&text, verb).unwrap_or_else(|error| panic!("{}\n{text}", error.sentence));
                let after = matched(&words::joined(&line(verb, &[]), &parsed), verb);
                for other in command.get_arguments().filter(|arg| is_planned(arg)) {
                    let (name, id) = (other.get_long(), other.get_id().as_str());
                    assert_eq!(raw(&before, other), raw(&after, other), "{name:?} after {options:?}\n{text}");
                    if matches!(other.get_action(), ArgAction::SetTrue) {
                        assert_eq!(before.get_flag(id), after.get_flag(id), "{name:?} after {options:?}\n{text}");
                    }
                }
            }
            tried += 1;
        }
        assert!(tried > 30, "{verb:?}: {tried}");
    }
}

/// Options with another one beside them, if they want one.
fn completed(all: &Command, command: &Command, verb: Option<&str>, options: Vec<String>) -> Vec<String> {
    let is_well = |options: &[String]| all.clone().try_get_matches_from(line(verb, options)).is_ok();
    if is_well(&options) {
        return options;
    }
    for other in command.get_arguments().filter_map(Arg::get_long) {
        for companion in [format!("--{other}"), format!("--{other}=x"), format!("--{other}=7")] {
            let both = [options.clone(), vec![companion]].concat();
            if is_well(&both) {
                return both;
            }
        }
    }
    panic!("{options:?} want more than one option beside them")
}

#[test]
fn a_plan_means_what_its_command_line_means() {
    // A file keeps how machines are read, which the words of a plan leave out.
    let with_machines =
        "duel a=http://a.example/ b=http://b.example/ --seed 1 --local a --ssh b=me@web --pid a=12 --service b=nginx";
    for typed in COMMAND_LINES.into_iter().chain([with_machines]) {
        let typed: Vec<&str> = typed.split_whitespace().collect();
        let verb = typed.get(1).copied().filter(|word| *word == "run");
        let text = of_words(&typed.iter().map(OsString::from).collect::<Vec<_>>()).unwrap();
        let bare: Vec<&str> = ["duel"].into_iter().chain(verb).collect();
        let again = words(&text, &bare, verb);
        assert_eq!(plan_of(again.iter().map(String::as_str)), plan_of(typed.iter().copied()), "{text}");
    }
}

#[test]
fn what_is_typed_goes_first() {
    let text = "targets = [\"http://a/\", \"http://b/\"]\n[load]\nconnections = 8\nthink = \"1s\"\nduration = 20\n\
                [request]\nno-keepalive = true\nheader = [\"A: 1\"]\nbody = \"x\"\n";
    assert_eq!(
        words(text, &["duel", "-c", "9"], None)[1..],
        [
            "-c",
            "9",
            "--think=1s",
            "--duration=20",
            "--no-keepalive",
            "--header=A: 1",
            "--body=x",
            "--",
            "http://a/",
            "http://b/"
        ]
    );
    // A list is replaced, and so is what excludes what is typed.
    let typed = ["duel", "http://x/", "http://y/", "--rate", "5", "-H", "B: 2", "--body-file", "f"];
    let left = ["--connections=8", "--duration=20", "--no-keepalive"];
    assert_eq!(words(text, &typed, None)[typed.len()..], left);
    // What the file switches on is switched off.
    let typed = ["duel", "--no-keepalive=false", "http://x/", "http://y/"];
    assert!(!words(text, &typed, None)[typed.len()..].contains(&"--no-keepalive".to_owned()));
    let text = "targets = \"http://a/\"\nduration = \"20s\"\n";
    assert_eq!(words(text, &["duel", "run", "-n", "5"], Some("run")), ["duel", "run", "-n", "5", "--", "http://a/"]);
}

#[test]
fn defaults_of_the_web_in_a_plan_from_before_they_were_declared_ask_for_nothing() {
    let text = "targets = \"null:\"\nmethod = \"GET\"\nno-keepalive = false\ntls = \"1.2+1.3\"\ninsecure = false\n";
    assert_eq!(words(text, &["duel", "run"], Some("run")), ["duel", "run", "--", "null:"]);
    let text = "targets = \"null:\"\nmethod = \"PUT\"\n";
    let typed: Vec<OsString> = words(text, &["duel", "run"], Some("run")).into_iter().map(OsString::from).collect();
    let told = super::understood(&typed).unwrap_err();
    assert!(told.contains("--method means nothing to null:"), "{told}");
}

#[test]
fn a_plan_serves_a_comparison_and_a_check() {
    let both = ["duel", "http://a/", "http://b/", "--seed", "1"].map(OsString::from);
    let text = of_words(&both).unwrap() + "\n[check]\ncritical = [\"p99<1s\"]\n";
    assert!(words(&text, &["duel"], None).iter().all(|word| !word.contains("critical")));
    let checked = words(&text, &["duel", "check"], Some(CHECK));
    assert!(
        checked.contains(&"--critical=p99<1s".to_owned()) && checked.contains(&"--seed=1".to_owned()),
        "{checked:?}"
    );
    assert!(said("why = true", Some(CHECK)).contains("why has no meaning for 'duel check'; it is an option of 'duel'"));
}

#[test]
fn errors_tell_their_place() {
    for (text, part) in [
        ("a = ", "p.toml:1:5: this is no TOML: "),
        ("[load]\nconnections = \"8", "p.toml:2:"),
        ("[load]\nconections = 8", "p.toml:2:1: there is no option --conections; a similar key exists: connections"),
        ("[lod]\nconnections = 8", "p.toml:1:2: there is no table [lod] in a plan; there is [comparing]"),
        ("[load]\nrate = true", "p.toml:2:1: rate takes a value, not true or false"),
        ("[load]\nrate = [5]", "p.toml:2:1: rate takes a single value, not a list"),
        ("why = \"yes\"", "p.toml:1:1: why is true or false"),
        ("[load]\nrate = 2026-11-21", "p.toml:2:8: rate is set to a date"),
        ("[load]\nrate = { x = 1 }", "p.toml:2:1: 'rate' cannot be a table"),
        ("[request]\nheader = [[\"a\"]]", "p.toml:2:11: header is set to a list within a list"),
        ("targets = true", "p.toml:1:1: targets are texts"),
        ("[load]\nrate = 5\n[request]\nrate = 6", "p.toml:4:1: rate is set twice"),
        ("help = true", "p.toml:1:1: there is no option --help"),
        ("plan = \"other\"", "p.toml:1:1: there is no option --plan"),
        ("\"\\u001b[2J\" = 1", "p.toml:1:1: there is no option --\u{fffd}[2J"),
    ] {
        let said = said(text, None);
        assert!(said.starts_with(part), "{said}");
    }
    assert!(said("requests = 5", None).contains("it is an option of 'duel run'"));
}

#[test]
fn the_culprit_is_found_among_several() {
    let blamed = |text: &str, verb: Option<&str>| {
        let entries = entries(text, verb).unwrap();
        let typed = line(verb, &[]);
        let why = |left: &[read::Entry]| understood(&words::joined(&typed, left)).err();
        let sentence = why(&entries).unwrap();
        blame::culprit(&entries, &sentence, why).map(|span| text[span].to_owned())
    };
    let two = "targets = [\"http://a/\", \"http://b/\"]\n";
    for (rest, culprit) in [
        ("margin = \"200%\"", "\"200%\""),
        ("connections = 0", "0"),
        ("rate = \"fast\"", "\"fast\""),
        ("rate = 5\nthink = \"1s\"", "\"1s\""),
        ("header = [\"A: 1\", \"secret\", \"B: 2\"]", "\"secret\""),
        ("connections = 0\nmargin = \"200%\"", "\"200%\""),
        ("pid = \"x\"", "\"x\""),
        ("timeout = \"soon\"", "\"soon\""),
        ("header = [\"Authorization: [not kept]\"]", "\"Authorization: [not kept]\""),
    ] {
        assert_eq!(blamed(&format!("{two}{rest}"), None).as_deref(), Some(culprit), "{rest}");
    }
    assert_eq!(blamed("targets = [\"http://a/\", \"b\"]", None).as_deref(), Some("\"b\""));
    let checked = format!("{two}[check]\ncritical = [\"p99<1s\", \"p99\"]");
    assert_eq!(blamed(&checked, Some(CHECK)).as_deref(), Some("\"p99\""));
    assert_eq!(blamed("targets = \"http://a/\"\nrequests = 5\nduration = 3", Some("run")).as_deref(), Some("3"));
    // Nothing in it is wrong, something is missing.
    assert_eq!(blamed("connections = 5", Some("run")), None);
}

/// Each attempt reads the whole plan again: a long one is not read a thousand times.
#[test]
fn the_culprit_in_a_long_plan_is_found_by_few_attempts() {
    let fields: Vec<String> = (0..20_000).map(|index| format!("\"A{index}: b\"")).collect();
    let text = format!("targets = [\"http://a/\", \"http://b/\"]\nheader = [{}]\nmargin = \"200%\"", fields.join(", "));
    let entries = entries(&text, None).unwrap();
    let read = std::cell::Cell::new(0);
    let why = |left: &[read::Entry]| {
        let count = |entry: &read::Entry| match &entry.given {
            read::Given::Switch(_) => 1,
            read::Given::Values { values, .. } => values.len(),
        };
        read.set(read.get() + left.iter().map(count).sum::<usize>());
        left.iter().any(|entry| entry.key == "margin").then(|| "--margin has to lie between 0 and 100 %".to_owned())
    };
    let sentence = why(&entries).unwrap();
    let span = blame::culprit(&entries, &sentence, why);
    assert_eq!(span.map(|span| text[span].to_owned()).as_deref(), Some("\"200%\""));
    assert!(read.get() < 200_000, "{} values were read", read.get());
}

#[test]
fn secrets_are_not_written() {
    let typed =
        ["duel", "http://a/", "http://b/", "-H", "Authorization: Bearer s3cr3t", "-H", "@secrets", "-H", "A: b"];
    let text = of_words(&typed.map(OsString::from)).unwrap();
    assert!(!text.contains("s3cr3t"), "{text}");
    assert!(text.contains("header = [\"Authorization: [not kept]\", \"@secrets\", \"A: b\"]"), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_comes_back(texts in proptest::collection::vec("\\PC*|[\\x01-\\x1f\"\\\\#\\]=]{0,9}", 1..4)) {
        let options: Vec<String> = texts.iter().map(|text| format!("--connect-to={text}")).collect();
        let before = matched(&line(None, &options), None);
        let text = write::written(command_of(None).unwrap(), None, &before).unwrap();
        // What may be an address with a password is not written.
        prop_assume!([duel_model::Plan::REDACTED, duel_model::Plan::LEFT_OUT].iter().all(|mark| !text.contains(mark)));
        let after = matched(&words::joined(&line(None, &[]), &entries(&text, None).unwrap()), None);
        let of = |matches: &ArgMatches| matches.get_many::<String>("connect_to").unwrap().cloned().collect::<Vec<_>>();
        prop_assert_eq!(of(&before), of(&after));
    }

    #[test]
    fn no_file_makes_it_panic(text in "\\PC*|[a-z=\\[\\]\"'#.\\n 0-9]{0,60}") {
        if let Ok(entries) = entries(&text, None) {
            let _ = understood(&words::joined(&line(None, &[]), &entries));
        }
    }
}
