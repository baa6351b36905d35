//! Forms as bodies, built once.

use duel_load::WorkloadError;
use duel_model::{FormPlan, FormValue, sanitize_line};
use std::collections::HashSet;
use std::path::Path;

/// The body of a form and its `Content-Type`; files are read now.
pub(crate) fn encode(form: &FormPlan) -> Result<(Vec<u8>, String), WorkloadError> {
    if form.is_multipart { multipart(form) } else { urlencoded(form) }
}

/// As `application/x-www-form-urlencoded` (WHATWG URL, 5.2).
fn urlencoded(form: &FormPlan) -> Result<(Vec<u8>, String), WorkloadError> {
    let mut body = String::new();
    for field in &form.fields {
        if !body.is_empty() {
            body.push('&');
        }
        let value = value(&field.value)?;
        body.extend(url::form_urlencoded::byte_serialize(field.name.as_bytes()));
        body.push('=');
        body.extend(url::form_urlencoded::byte_serialize(&value));
    }
    Ok((body.into_bytes(), "application/x-www-form-urlencoded".to_owned()))
}

/// As `multipart/form-data` (RFC 7578).
fn multipart(form: &FormPlan) -> Result<(Vec<u8>, String), WorkloadError> {
    let values = form.fields.iter().map(|field| value(&field.value)).collect::<Result<Vec<_>, _>>()?;
    let boundary = boundary(&values);
    let mut body = Vec::with_capacity(values.iter().map(|value| value.len() + 200).sum());
    for (field, value) in form.fields.iter().zip(&values) {
        body.extend_from_slice(
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quoted(&field.name)).as_bytes(),
        );
        if let FormValue::Upload(path) = &field.value {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            body.extend_from_slice(
                format!("; filename=\"{}\"\r\nContent-Type: application/octet-stream", quoted(&name)).as_bytes(),
            );
        }
        body.extend_from_slice(b"\r\n\r\n");
        body.extend_from_slice(value);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Ok((body, format!("multipart/form-data; boundary={boundary}")))
}

/// What separates the parts: nothing that occurs in one of them. It is the same in each run, as the body is to be.
///
/// Values are gone through once, however many candidates they hold: a file that lists them all would take hours else.
fn boundary(values: &[Vec<u8>]) -> String {
    const START: &[u8] = b"----duel-form-";
    const DIGITS: usize = 16;
    let start = memchr::memmem::Finder::new(START);
    let mut taken = HashSet::new();
    for value in values {
        let mut rest = value.as_slice();
        while let Some(at) = start.find(rest) {
            // One may begin with the dash that another one ends with.
            rest = &rest[at + 1..];
            let digits = rest.get(START.len() - 1..START.len() - 1 + DIGITS);
            taken.extend(digits.and_then(|digits| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()));
        }
    }
    // Each candidate that occurs takes as many bytes of a value: one of so many is free.
    let free = (0u64..).find(|number| !taken.contains(number)).unwrap_or_default();
    format!("----duel-form-{free:0DIGITS$x}")
}

/// A name within quotes, as browsers write it (WHATWG HTML, "multipart/form-data encoding algorithm").
fn quoted(name: &str) -> String {
    name.replace('\r', "%0D").replace('\n', "%0A").replace('"', "%22")
}

fn value(value: &FormValue) -> Result<Vec<u8>, WorkloadError> {
    match value {
        FormValue::Text(text) => Ok(text.clone().into_bytes()),
        FormValue::Content(path) | FormValue::Upload(path) => file(path),
    }
}

fn file(path: &Path) -> Result<Vec<u8>, WorkloadError> {
    crate::requests::body::read_body(path, Vec::new())
        .map_err(|error| WorkloadError(format!("a form's field: {}", sanitize_line(&error.0))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_corpus::growth;
    use duel_model::FormField;

    fn field(name: &str, text: &str) -> FormField {
        FormField { name: name.to_owned(), value: FormValue::Text(text.to_owned()) }
    }

    #[test]
    fn fields_in_an_address_s_encoding() {
        let form = FormPlan { is_multipart: false, fields: vec![field("a b", "1&2"), field("c", "é\n")] };
        let (body, kind) = encode(&form).unwrap();
        assert_eq!(
            (body.as_slice(), kind.as_str()),
            (&b"a+b=1%262&c=%C3%A9%0A"[..], "application/x-www-form-urlencoded")
        );
    }

    #[test]
    fn a_boundary_that_occurs_is_found_however_many_do() {
        let lines =
            |count: usize| (0..count).map(|n| format!("----duel-form-{n:016x}")).collect::<String>().into_bytes();
        assert_eq!(
            boundary(&[lines(3), b"----duel-form-----duel-form-0000000000000003".to_vec()]),
            "----duel-form-0000000000000004"
        );
        growth::is_linear(|bytes| {
            // Many: to look for one of them is quick.
            let values = [lines(bytes / 3)];
            move || assert!(!boundary(&values).is_empty())
        });
    }

    #[test]
    fn parts_and_files() {
        let file = std::env::temp_dir().join(format!("duel-form-{}\".bin", std::process::id()));
        std::fs::write(&file, b"\0\xff----duel-form-0000000000000000").unwrap();
        let upload = FormField { name: "f".into(), value: FormValue::Upload(file.clone()) };
        let (body, kind) = encode(&FormPlan { is_multipart: true, fields: vec![field("a\"", "1"), upload] }).unwrap();
        std::fs::remove_file(&file).unwrap();
        let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
        assert_eq!(boundary, "----duel-form-0000000000000001");
        let text = String::from_utf8_lossy(&body);
        assert!(
            text.starts_with(&format!("--{boundary}\r\nContent-Disposition: form-data; name=\"a%22\"\r\n\r\n1\r\n--"))
        );
        assert!(
            text.contains("name=\"f\"; filename=\"duel-form-") && text.contains("%22.bin\"\r\nContent-Type: "),
            "{text}"
        );
        assert!(text.ends_with(&format!("0000\r\n--{boundary}--\r\n")), "{text}");
    }

    #[test]
    fn a_file_that_is_not_there_is_told() {
        let missing = FormField { name: "f".into(), value: FormValue::Content("/nonexistent/x".into()) };
        let error = encode(&FormPlan { is_multipart: false, fields: vec![missing] }).unwrap_err();
        assert!(error.0.contains("/nonexistent/x"), "{error}");
    }
}
