//! How to repeat a measurement by hand.

use crate::case::Case;
use duel_model::{Body, TlsPlan, Variation, sanitize_line, shell_word};
use std::path::PathBuf;

/// The command that repeats the plan with this variation for two of its targets.
///
/// `None` where a command could not be shown whole: an address with control characters or beyond what one line holds; or a twin in a server's place.
pub(crate) fn command(case: &Case<'_>, targets: [usize; 2], variation: &Variation) -> Option<String> {
    let http = case.http()?;
    // No option makes a twin by itself.
    if variation.twin.is_some() {
        return None;
    }
    let plan = case.plan.redacted();
    let mut options = vec!["-c".to_owned(), variation.connections.unwrap_or(plan.load.connections).to_string()];
    let mut option = |name: &str, value: Option<String>| {
        options.push(name.to_owned());
        options.extend(value);
    };
    if http.http2.is_some() {
        option("--http2", None);
    }
    if http.streams() > 1 && variation.connections.is_none() {
        option("--streams", Some(http.streams().to_string()));
    }
    match variation.keepalive.unwrap_or(http.keepalive) {
        false => option("--no-keepalive", None),
        true if variation.keepalive.is_some() => option("--keepalive", Some("on".to_owned())),
        true => {}
    }
    if variation.resumption.unwrap_or(http.tls.resumption) {
        option("--resumption", None);
    }
    match variation.accept_encoding.as_ref().unwrap_or(&http.accept_encoding) {
        None => option("--encoding", Some("identity".to_owned())),
        Some(encoding) if encoding == "gzip" => {}
        Some(encoding) => option("--encoding", Some(encoding.clone())),
    }
    let ciphers = variation.ciphers.as_ref().unwrap_or(&http.tls.ciphers);
    if !ciphers.is_empty() {
        option("--ciphers", Some(ciphers.join(",")));
    }
    let groups = variation.groups.as_ref().unwrap_or(&http.tls.groups);
    if !groups.is_empty() && *groups != TlsPlan::DEFAULT_GROUPS {
        option("--groups", Some(groups.join(",")));
    }
    let versions = variation.versions.as_ref().unwrap_or(&http.tls.versions);
    if *versions != TlsPlan::default().versions {
        let versions: Vec<&str> = versions.iter().map(|version| version.name()).collect();
        option("--tls", Some(versions.join(",")));
    }
    if http.tls.alpn != TlsPlan::default().alpn {
        option("--alpn", Some(http.tls.alpn.join(",")));
    }
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.to_string_lossy().into_owned());
    for (name, value) in [
        ("--ca", path(&http.tls.ca_file)),
        ("--client-cert", path(&http.tls.client_cert_file)),
        ("--client-key", path(&http.tls.client_key_file)),
        ("--server-name", http.tls.server_name.clone()),
        ("--host", http.host.clone()),
        ("--unix-socket", path(&http.unix_socket)),
    ] {
        if value.is_some() {
            option(name, value);
        }
    }
    if variation.quick_ack.unwrap_or(http.quick_ack) {
        option("--quick-ack", None);
    }
    if let Some(bytes) = variation.segment_bytes.or(http.segment_bytes) {
        option("--segment-bytes", Some(bytes.to_string()));
    }
    for rule in &http.connect_to {
        option("--connect-to", Some(rule.to_string()));
    }
    if let Some(proxy) = &http.proxy {
        option("--proxy", Some(proxy.to_string()));
    }
    for (name, value) in http.reach.options() {
        option(name, value);
    }
    match &http.body {
        Body::None => {}
        Body::Text(text) => option("--body", Some(text.clone())),
        Body::File(path) => option("--body-file", Some(path.to_string_lossy().into_owned())),
        Body::Generated(bytes) => option("--body-size", Some(bytes.to_string())),
    }
    for (name, value) in http.requests.options()? {
        option(name, value);
    }
    if !http.tls.verify {
        option("--insecure", None);
    }
    let method = variation.method.as_ref().unwrap_or(&http.method);
    if method != "GET" {
        option("--method", Some(method.clone()));
    }
    if let duel_model::WorkloadPlan::Http(redacted) = &plan.workload {
        for (name, value) in &redacted.headers {
            option("-H", Some(format!("{name}: {value}")));
        }
    }
    if let Some(bytes) = variation.range_bytes.or(http.range_bytes) {
        option("-H", Some(format!("Range: bytes=0-{}", bytes.saturating_sub(1))));
    }

    let mut words = Vec::new();
    for index in targets {
        let target = plan.targets.get(index)?;
        words.push(format!("{}={}", target.name, target.address));
    }
    let mut command = vec!["duel".to_owned()];
    if words.iter().any(|word| word.starts_with('-')) {
        command.extend(options);
        command.push("--".to_owned());
        command.extend(words);
    } else {
        command.extend(words);
        command.extend(options);
    }
    let whole = command.iter().all(|word| sanitize_line(word) == *word);
    whole.then(|| command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_shell_reads_back_what_was_meant(word in "[ -~äß€]{0,12}") {
            proptest::prop_assert_eq!(shell_reads(&shell_word(&word)), vec![word]);
        }
    }

    /// Word splitting and quote removal for the quoting that we use; anything special outside quotes is a failure.
    fn shell_reads(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
        let mut rest = line.chars();
        while let Some(c) = rest.next() {
            match c {
                '\'' => {
                    quoted = !quoted;
                    word.get_or_insert_default();
                }
                c if quoted => word.get_or_insert_default().push(c),
                '\\' => word.get_or_insert_default().push(rest.next().unwrap()),
                ' ' => words.extend(word.take()),
                c => {
                    assert!(!"|&;<>()$`\"*?[#~!{}\n".contains(c), "{c} is bare in {line}");
                    word.get_or_insert_default().push(c);
                }
            }
        }
        assert!(!quoted, "unclosed: {line}");
        words.extend(word);
        words
    }
}
