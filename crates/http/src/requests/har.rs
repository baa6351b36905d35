//! Browsers' recordings (HTTP Archive 1.2): the requests are taken, the responses are not.

use super::{Entry, EntryBody, Flaw};
use serde::Deserialize;

#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Exchange>,
}

#[derive(Deserialize)]
struct Exchange {
    request: Request,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    #[serde(default)]
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PostData {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    params: Vec<Pair>,
}

/// What belongs to the connection that was recorded, or is made anew from the plan for ours.
const NOT_TAKEN: [&str; 10] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "upgrade",
    "accept-encoding",
    "user-agent",
];

/// Reads a recording. Requests are counted from 1.
pub(super) fn read(text: &str, most: usize) -> Result<Vec<Entry>, Flaw> {
    let archive: Archive = serde_json::from_str(text).map_err(|error| Flaw::new(0, no_recording(&error)))?;
    if archive.log.entries.len() > most {
        return Err(Flaw::too_many(most + 1, most));
    }
    Ok(archive
        .log
        .entries
        .into_iter()
        .enumerate()
        .map(|(index, exchange)| entry(index + 1, exchange.request))
        .collect())
}

/// Where a text stops being a recording. The parser's own words name our types.
fn no_recording(error: &serde_json::Error) -> String {
    let what = if error.is_data() {
        "something else stands where log.entries[].request with method and url belongs"
    } else {
        "it is no JSON, or ends too early"
    };
    format!("this is no recording (HAR): {what} (line {}, column {})", error.line(), error.column())
}

fn entry(number: usize, request: Request) -> Entry {
    let is_taken = |name: &str| !name.starts_with(':') && !NOT_TAKEN.iter().any(|left| name.eq_ignore_ascii_case(left));
    let headers = request.headers.into_iter().filter(|field| is_taken(&field.name));
    let body = request.post_data.map(|data| match data.text.filter(|text| !text.is_empty()) {
        Some(text) => text.into_bytes(),
        None if data.params.is_empty() => Vec::new(),
        None => {
            let pairs = data.params.iter().map(|pair| (&pair.name, &pair.value));
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish().into_bytes()
        }
    });
    Entry {
        line: number,
        weight: 1,
        method: Some(request.method),
        address: request.url,
        headers: headers.map(|field| (field.name, field.value)).collect(),
        body: EntryBody::Bytes(body.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_taken_without_what_belongs_to_the_connection() {
        let text = r#"{"log":{"version":"1.2","entries":[
            {"request":{"method":"GET","url":"https://h/a?b","headers":[{"name":":authority","value":"h"},
              {"name":"Host","value":"h"},{"name":"accept","value":"*/*"}]},"response":{"content":{"text":"x"}}},
            {"request":{"method":"POST","url":"https://h/c","postData":{"mimeType":"x","params":[{"name":"a b","value":"&"}]}}},
            {"request":{"method":"POST","url":"https://h/c","postData":{"text":"{}"}}}]}}"#;
        let entries = read(text, 9).unwrap();
        assert_eq!(entries[0].headers, [("accept".to_owned(), "*/*".to_owned())]);
        assert_eq!(entries[1].body, EntryBody::Bytes(b"a+b=%26".to_vec()));
        assert_eq!((entries[2].line, &entries[2].body), (3, &EntryBody::Bytes(b"{}".to_vec())));
    }

    #[test]
    fn what_is_no_recording_is_told() {
        for text in ["", "{}", r#"{"log":{}}"#, r#"{"log":{"entries":[{"request":{"url":"/"}}]}}"#] {
            assert!(read(text, 9).unwrap_err().what.contains("no recording"), "{text}");
        }
        let flaw = read(r#"{"log":1}"#, 9).unwrap_err();
        assert!(flaw.what.contains("column 8") && !flaw.what.contains("struct"), "{}", flaw.what);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[{}\\[\\]\":,a-z\n]{0,60}") {
            let _ = read(&text, 9);
        }
    }
}
