//! Options of the one request that is sent, and what they mean.

use crate::load::LoadFlags;
use crate::load::requests;
use crate::outcome::Usage;
use clap::Args;
use duel_model::web::settings::BODY_SIZE;
use duel_model::{Body, HttpPlan, sanitize_line, web};
use std::io::Read;
use std::path::{Path, PathBuf};

/// What is asked for, the same for every target.
#[derive(Args, Clone)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestFlags {
    /// Further header field, repeatable; @FILE reads fields from a file, which keeps secrets out of the process list
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// Request body
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["body_file", BODY_SIZE.name])]
    pub(crate) body: Option<String>,
    /// Request body from a file
    #[arg(long, value_name = "FILE", conflicts_with = BODY_SIZE.name)]
    pub(crate) body_file: Option<PathBuf>,
    /// Follow up to N redirects before measuring, then measure where they lead
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 0)]
    pub(crate) follow: u32,
}

/// What the options of a load say about HTTP; `seed` is that of the run.
pub(crate) fn http(load: &LoadFlags, seed: u64) -> Result<HttpPlan, Usage> {
    let flags = &load.request;
    let body = match (&flags.body, &flags.body_file) {
        (Some(text), _) => Body::Text(text.clone()),
        (None, Some(path)) => Body::File(checked_body_file(path)?.to_path_buf()),
        (None, None) => Body::None,
    };
    let mut plan = HttpPlan {
        headers: headers(&flags.headers)?,
        body,
        max_redirects: load.requests.follow_each.unwrap_or(flags.follow),
        follows_each: load.requests.follow_each.is_some(),
        requests: requests::plan(load)?,
        ..HttpPlan::default()
    };
    load.connection.put_into(&mut plan)?;
    load.settings.set(&web::SCHEMA, |param, value| plan.set(param, value))?;
    load.tls.put_into(&mut plan)?;
    requests::settle(load, &mut plan.requests, seed)?;
    if plan.streams() > 1 && !plan.keepalive {
        return Err(Usage(
            "--streams: a connection that is closed after its first request carries one at a time; leave --streams or \
             --no-keepalive out"
                .into(),
        ));
    }
    Ok(plan)
}

/// The header fields given, those of files included.
pub(crate) fn headers(typed: &[String]) -> Result<Vec<(String, String)>, Usage> {
    let mut headers = Vec::new();
    for typed in typed {
        if let Some(path) = typed.strip_prefix('@') {
            let text = header_file(Path::new(path))
                .map_err(|error| Usage(format!("cannot read header fields from {}: {error}", sanitize_line(path))))?;
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                headers.push(header(line)?);
            }
        } else {
            headers.push(header(typed)?);
        }
    }
    Ok(headers)
}

/// The text of a file of header fields; one that is longer than any server takes is another file, or has no end.
fn header_file(path: &Path) -> std::io::Result<String> {
    const MOST_BYTES: u64 = 1 << 20;
    let mut text = String::new();
    std::fs::File::open(path)?.take(MOST_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(std::io::Error::other("it is longer than 1 MiB, which no server takes; name another file"));
    }
    Ok(text)
}

fn header(typed: &str) -> Result<(String, String), Usage> {
    let (name, value) = typed.split_once(':').ok_or_else(|| {
        // Not the whole text: it may be a secret in the wrong place.
        Usage("a header field has the form 'Name: value'; one that was given has no colon".into())
    })?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn checked_body_file(path: &Path) -> Result<&Path, Usage> {
    let shown = sanitize_line(&path.to_string_lossy());
    match std::fs::metadata(path) {
        Err(error) => Err(Usage(format!("cannot read --body-file {shown}: {error}"))),
        Ok(data) if data.is_dir() => Err(Usage(format!("--body-file {shown} is a folder"))),
        Ok(data) if data.is_file() && data.len() == 0 => {
            Err(Usage(format!("--body-file {shown} is empty; leave the option out to send no body")))
        }
        Ok(_) => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_header_fields_without_end_is_given_up() {
        assert!(headers(&["@/dev/zero".into()]).unwrap_err().0.contains("longer than 1 MiB"));
    }

    #[test]
    fn a_method_is_one_word() {
        for typed in ["GE T", "GET,PO ST", "G\u{e9}T", "GET/"] {
            let told = crate::command_line::tests::refused(["duel", "run", "http://h/", "-m", typed]);
            assert!(told.starts_with("--method takes a word such as POST"), "{typed}: {told}");
        }
        let plan = crate::command_line::tests::plan_of(["duel", "run", "http://h/", "-m", "M-SEARCH"]);
        assert!(matches!(plan.workload, duel_model::WorkloadPlan::Http(http) if http.method == "M-SEARCH"));
    }

    #[test]
    fn a_header_without_a_colon_is_refused_without_being_shown() {
        let error = headers(&["Bearer s3cr3t".into()]).unwrap_err();
        assert!(!error.0.contains("s3cr3t"));
        assert_eq!(headers(&["A: b: c".into()]).unwrap(), [("A".to_owned(), "b: c".to_owned())]);
    }
}
