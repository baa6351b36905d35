//! Options that say what is asked for, where that is more than one fixed request, and what they mean.

use crate::load::LoadFlags;
use crate::outcome::Usage;
use clap::{Args, ValueEnum};
use duel_http::RequestsSeen;
use duel_model::web::settings::METHOD;
use duel_model::{
    AuthPlan, FormField, FormPlan, FormValue, HttpPlan, Plan, RequestFormat, RequestOrder, RequestSource, RequestsPlan,
    SecretSource, WorkloadPlan, is_secret_name, sanitize_line,
};
use std::path::{Path, PathBuf};

/// Where a password is looked for without `--password-file`.
const PASSWORD_VARIABLE: &str = "DUEL_PASSWORD";

/// What is asked for.
#[derive(Args, Clone)]
#[command(next_help_heading = "Several requests")]
pub(crate) struct RequestsFlags {
    /// Requests for the addresses in FILE, one on each line, after a weight where that is not 1; # begins a comment. Paths are
    /// put behind the target's own path. Whole addresses have to be of one host: their path is taken, and the target's host
    #[arg(long, value_name = "FILE", group = "request_source")]
    pub(crate) urls: Option<PathBuf>,
    /// Requests with methods, header fields and bodies: vegeta's targets, or an editor's .http file. All are sent to the
    /// target, as with --urls
    #[arg(long, value_name = "FILE", group = "request_source")]
    pub(crate) request_file: Option<PathBuf>,
    /// How the request file is written [default: from its name: http for .http and .rest, vegeta for .json, .jsonl and .ndjson]
    #[arg(long, value_enum, value_name = "FORMAT", requires = "request_file")]
    pub(crate) request_format: Option<FormatFlag>,
    /// The requests of a browser's recording (HAR); those to other hosts than its first are left out
    #[arg(long, value_name = "FILE", group = "request_source")]
    pub(crate) har: Option<PathBuf>,
    /// Replace names in braces, as in /item/{uuid}, in addresses, header values and bodies. n counts a target's requests from
    /// 0, which is the first contact's; uuid is one for each request, rand:1..1000 a number. {{ is a brace; braces around what
    /// is no name stay, as in JSON
    #[arg(long)]
    pub(crate) template: bool,
    /// Columns of a CSV file are variables, too: each request takes the next row. Its first line names them
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) data: Option<PathBuf>,
    /// Basic authentication as NAME; the password is in $DUEL_PASSWORD or in a file
    #[arg(long, value_name = "NAME", group = "auth")]
    pub(crate) user: Option<String>,
    /// The first line of FILE is the user's password
    #[arg(long, value_name = "FILE", requires = "user")]
    pub(crate) password_file: Option<PathBuf>,
    /// The first line of FILE is a bearer token
    #[arg(long, value_name = "FILE", group = "auth")]
    pub(crate) bearer_file: Option<PathBuf>,
    /// Sign each request for AWS (version 4) with the keys in $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY, $AWS_SESSION_TOKEN
    #[arg(long, value_name = "REGION:SERVICE", group = "auth")]
    pub(crate) aws_sigv4: Option<String>,
    /// Post a form in parts (multipart), a field for each; NAME=@FILE uploads a file, NAME=<FILE takes its content as the value
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = ["field", "body", "body_file"])]
    pub(crate) form: Vec<String>,
    /// Post a form as browsers do (urlencoded), a field for each; NAME=<FILE takes the value from a file
    #[arg(long, value_name = "NAME=VALUE", conflicts_with_all = ["body", "body_file"])]
    pub(crate) field: Vec<String>,
    /// Each request follows up to N redirects itself, as a part of its time
    #[arg(long, allow_negative_numbers = true, value_name = "N", conflicts_with = "follow")]
    pub(crate) follow_each: Option<u32>,
}

/// How a request file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatFlag {
    /// vegeta's targets in either of its formats: JSON lines, or lines of METHOD URL with fields and @FILE behind them
    Vegeta,
    /// Requests as editors have them, ### between them
    Http,
}

/// What the options here mean.
pub(crate) fn plan(load: &LoadFlags) -> Result<RequestsPlan, Usage> {
    let flags = &load.requests;
    Ok(RequestsPlan {
        source: source(flags)?,
        is_template: flags.template || flags.data.is_some(),
        data_file: flags.data.clone(),
        auth: auth(flags)?,
        form: form(flags)?,
        ..RequestsPlan::default()
    })
}

/// Refuses what makes no sense together, and gives what is chosen at random the seed of the run.
pub(crate) fn settle(load: &LoadFlags, requests: &mut RequestsPlan, seed: u64) -> Result<(), Usage> {
    refuse_what_contradicts(load, requests)?;
    if requests.order == RequestOrder::Random || requests.is_template {
        requests.seed = seed;
    }
    Ok(())
}

/// What who sends requests that may change something ought to know.
const SENT_BEFORE: &str = "before the load each target is sent one request, to see that it answers; -n and the figures leave \
    it out, and what is sent may change something there";

/// Says what is wrong with the files that requests are made of, before anything is sent; answers what is worth a word.
pub(crate) fn check(plan: &Plan) -> Result<Vec<String>, Usage> {
    let WorkloadPlan::Http(http) = &plan.workload else { return Ok(Vec::new()) };
    let seen = match plan.targets.first().filter(|_| !http.requests.is_default()) {
        Some(target) => duel_http::check_requests(http, &target.address).map_err(|error| Usage(error.to_string()))?,
        None => RequestsSeen { note: None, may_write: http.may_write() },
    };
    let notes = seen.note.into_iter().chain(seen.may_write.then(|| SENT_BEFORE.to_owned()));
    Ok(notes.chain(unreplaced(plan, http)).collect())
}

/// A variable in an address of a plan without variables. Braces alone may be meant as they are.
fn unreplaced(plan: &Plan, http: &HttpPlan) -> Option<String> {
    if http.requests.is_template {
        return None;
    }
    let addresses = || plan.targets.iter().map(|target| target.address.as_str());
    let variable =
        ["{n}", "{uuid}", "{rand:"].into_iter().find(|variable| addresses().any(|a| a.contains(variable)))?;
    let shown = if variable == "{rand:" { "{rand:...}" } else { variable };
    Some(format!("{shown} in the address is sent as it stands; with --template each request gets a value in its place"))
}

fn source(flags: &RequestsFlags) -> Result<Option<RequestSource>, Usage> {
    let of = |file: &Path, format| Some(RequestSource { file: file.to_owned(), format });
    Ok(match (&flags.urls, &flags.request_file, &flags.har) {
        (Some(file), _, _) => of(file, RequestFormat::Urls),
        (_, Some(file), _) => of(file, request_format(file, flags.request_format)?),
        (_, _, Some(file)) => of(file, RequestFormat::Har),
        _ => None,
    })
}

fn request_format(file: &Path, typed: Option<FormatFlag>) -> Result<RequestFormat, Usage> {
    let end = file.extension().and_then(|end| end.to_str()).unwrap_or_default().to_ascii_lowercase();
    match (typed, end.as_str()) {
        (Some(FormatFlag::Vegeta), _) | (None, "json" | "jsonl" | "ndjson") => Ok(RequestFormat::Vegeta),
        (Some(FormatFlag::Http), _) | (None, "http" | "rest") => Ok(RequestFormat::Http),
        (None, _) => Err(Usage(format!(
            "how {} is written does not follow from its name; say so with --request-format vegeta (its JSON \
             lines or its text) or http (an editor's, with ### between requests)",
            sanitize_line(&file.to_string_lossy())
        ))),
    }
}

fn auth(flags: &RequestsFlags) -> Result<Option<AuthPlan>, Usage> {
    if let Some(user) = &flags.user {
        if user.contains(':') {
            return Err(Usage(
                "--user takes a name alone; a password on the command line could be read by everybody on this machine: \
                 put it into $DUEL_PASSWORD or --password-file FILE"
                    .into(),
            ));
        }
        let password = match &flags.password_file {
            Some(file) => SecretSource::File(file.clone()),
            None => SecretSource::Environment(PASSWORD_VARIABLE.to_owned()),
        };
        return Ok(Some(AuthPlan::Basic { user: user.clone(), password }));
    }
    if let Some(file) = &flags.bearer_file {
        return Ok(Some(AuthPlan::Bearer { token: SecretSource::File(file.clone()) }));
    }
    let Some(typed) = &flags.aws_sigv4 else { return Ok(None) };
    match typed.split_once(':') {
        Some((region, service)) if !region.is_empty() && !service.is_empty() && !service.contains(':') => {
            Ok(Some(AuthPlan::AwsSigV4 { region: region.to_owned(), service: service.to_owned() }))
        }
        _ => Err(Usage(format!(
            "--aws-sigv4 takes a region and a service, such as eu-central-1:s3; got '{}'",
            sanitize_line(typed)
        ))),
    }
}

fn form(flags: &RequestsFlags) -> Result<Option<FormPlan>, Usage> {
    let (option, typed) = if flags.form.is_empty() { ("--field", &flags.field) } else { ("--form", &flags.form) };
    if typed.is_empty() {
        return Ok(None);
    }
    let fields = typed.iter().map(|typed| form_field(option, typed)).collect::<Result<_, _>>()?;
    Ok(Some(FormPlan { is_multipart: option == "--form", fields }))
}

fn form_field(option: &str, typed: &str) -> Result<FormField, Usage> {
    let Some((name, value)) = typed.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        // Not the whole text: it may be a secret in the wrong place.
        return Err(Usage(format!("{option} takes NAME=VALUE; one that was given has no name or no '='")));
    };
    let value = match (value.strip_prefix('@'), value.strip_prefix('<')) {
        (Some(file), _) if option == "--form" => FormValue::Upload(file.into()),
        (_, Some(file)) => FormValue::Content(file.into()),
        _ if is_secret_name(name) => {
            return Err(Usage(format!(
                "the value of '{0}' would be kept with the run and shown; give it in a file: {option} '{0}=<FILE'",
                sanitize_line(name)
            )));
        }
        _ => FormValue::Text(value.to_owned()),
    };
    Ok(FormField { name: name.to_owned(), value })
}

fn refuse_what_contradicts(load: &LoadFlags, requests: &RequestsPlan) -> Result<(), Usage> {
    let flags = &load.requests;
    let given = |name: &str| {
        load.request
            .headers
            .iter()
            .any(|typed| typed.split_once(':').is_some_and(|(given, _)| given.trim().eq_ignore_ascii_case(name)))
    };
    let has_methods = requests.source.as_ref().is_some_and(|source| source.format != RequestFormat::Urls);
    let has_method = load.settings.typed(METHOD.name).is_some_and(|typed| typed != METHOD.default);
    let has_body = load.request.body.is_some() || load.request.body_file.is_some();
    let is_signed = flags.aws_sigv4.is_some();
    let refused = if has_methods && (has_method || has_body || requests.form.is_some()) {
        "a file of requests has their methods and bodies in it; -m, --body and forms go with --urls"
    } else if requests.source.is_none() && requests.order == RequestOrder::Random {
        "--order goes with a list of requests: --urls, --request-file or --har"
    } else if (load.request.follow > 0 || flags.follow_each.is_some()) && requests.differ() {
        "redirects are not followed with lists of requests or with variables; list the addresses that they lead to"
    } else if (load.request.follow > 0 || flags.follow_each.is_some()) && is_signed {
        "redirects are not followed with --aws-sigv4: a signature is good for one address only"
    } else if requests.is_template && requests.form.is_some() {
        "variables are not replaced in forms; write the form as --body, with its Content-Type by -H"
    } else if requests.auth.is_some() && given("Authorization") {
        "an Authorization field is given with -H as well; leave one of them out"
    } else if requests.cookies && given("Cookie") {
        "a Cookie field is given with -H; with --cookies connections have their own"
    } else if flags.follow_each == Some(0) {
        "--follow-each 0: redirects are not followed without the option"
    } else {
        return Ok(());
    };
    Err(Usage(refused.to_owned()))
}

#[cfg(test)]
mod tests {
    use crate::command_line::tests::plan_of;
    use duel_model::WorkloadPlan;

    #[test]
    fn variables_that_are_not_replaced_are_told() {
        let told = |words: &[&str]| super::check(&plan_of([&["duel", "run"][..], words].concat())).unwrap();
        for address in ["http://h/{n}", "http://h/?id={uuid}", "http://h/{rand:1..9}"] {
            let notes = told(&[address]);
            assert!(notes.len() == 1 && notes[0].contains("--template"), "{address}: {notes:?}");
            assert_eq!(told(&[address, "--template"]), [""; 0], "{address}");
        }
        assert_eq!(told(&["http://h/{name}"]), [""; 0]);
    }

    #[test]
    fn who_sends_what_may_change_something_is_told_of_the_first_contact() {
        let told =
            |words: &[&str]| super::check(&plan_of([&["duel", "run", "http://h/"][..], words].concat())).unwrap();
        for words in [&["-m", "POST"][..], &["-m", "DELETE", "--template"], &["--field", "a=b"]] {
            let notes = told(words);
            assert!(notes.len() == 1 && notes[0].contains("before the load"), "{words:?}: {notes:?}");
        }
        assert_eq!(told(&["-m", "HEAD", "--template"]), [""; 0]);
    }

    #[test]
    fn what_is_not_asked_for_leaves_the_plan_as_it_was() {
        let plan = plan_of(["duel", "run", "http://h/", "--seed", "9"]);
        let WorkloadPlan::Http(http) = plan.workload else { panic!("no http") };
        assert!(http.requests.is_default());
        let plan = plan_of(["duel", "run", "http://h/", "--seed", "9", "--template"]);
        let WorkloadPlan::Http(http) = plan.workload else { panic!("no http") };
        assert_eq!(http.requests.seed, 9);
    }
}
