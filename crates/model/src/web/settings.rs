//! The web's settings that are plain values: each is one entry of the list, and whatever reads, shows, keeps or varies
//! settings goes over the list.
//!
//! A value is kept by the name of its setting, in [`HttpPlan::settings`]. Settings that were kept before there was this list
//! have fields of [`HttpPlan`] instead, so that archives and the JSON document read as ever: `at` says which it is, and how
//! it is read and set.

use crate::{AddressChoice, Body, Http2Plan, HttpPlan, Param, ProxyProtocol, RequestOrder, Sort, TlsVersion};
use std::borrow::Cow;
use std::path::Path;

/// What only the web says of a setting.
pub(crate) struct Setting {
    /// Under which heading the help lists it.
    pub(crate) heading: &'static str,
    /// The switch without which it means nothing.
    pub(crate) needs: Option<&'static Param>,
    /// The setting beside which it cannot be typed.
    pub(crate) excludes: Option<&'static Param>,
    /// How it is typed, where that is not its name.
    pub(crate) option: Option<&'static str>,
    /// The letter that it is typed by, too.
    pub(crate) letter: Option<char>,
    /// What it is switched off by, too.
    pub(crate) off: Option<SwitchedOff>,
    /// How it is told of any run, and not only where it is set.
    pub(crate) told: Option<fn(&str) -> String>,
    field: Option<Field>,
}

/// An option that switches a setting off.
#[derive(Debug, Clone, Copy)]
pub struct SwitchedOff {
    /// What it is called.
    pub option: &'static str,
    /// What it does, in one sentence.
    pub help: &'static str,
}

/// The field of a plan that has a setting's value: where it is kept, and how it is read and set. What is set has passed
/// [`Param::read`].
struct Field {
    path: &'static str,
    get: fn(&HttpPlan) -> String,
    set: fn(&mut HttpPlan, &str),
}

impl Setting {
    pub(crate) fn kept_at(&self) -> Option<&'static str> {
        self.field.as_ref().map(|field| field.path)
    }
}

macro_rules! settings {
    (@some) => { None };
    (@some $some:expr) => { Some($some) };
    (@field) => { None };
    (@field $path:literal, $get:expr, $set:expr) => { Some(Field { path: $path, get: $get, set: $set }) };
    ($(
        $(#[$meta:meta])*
        $name:ident in $heading:literal $(, with $needs:ident)? $(, without $excluded:ident)? $(, at $path:literal, $get:expr, $set:expr)?
            $(, option $option:literal)? $(, letter $letter:literal)? $(, off $off:literal: $off_help:literal)?
            $(, told $told:expr)?;
        $param:expr;
    )+) => {
        $($(#[$meta])* pub const $name: Param = $param;)+
        /// All of them, in the order in which they are shown.
        pub(super) const PARAMS: &[Param] = &[$($name),+];
        static SETTINGS: &[Setting] = &[$(Setting {
            heading: $heading,
            needs: settings!(@some $(&$needs)?),
            excludes: settings!(@some $(&$excluded)?),
            option: settings!(@some $($option)?),
            letter: settings!(@some $($letter)?),
            off: settings!(@some $(SwitchedOff { option: $off, help: $off_help })?),
            told: settings!(@some $($told)?),
            field: settings!(@field $($path, $get, $set)?),
        }),+];
    };
}

settings! {
    /// HTTP/2 instead of HTTP/1.1.
    HTTP2 in "Connection", at "http2", |http| switch(http.http2.is_some()), set_http2;
        Param::switch(
            "http2",
            "HTTP/2 and nothing else: offered alone over TLS (ALPN h2), spoken from the first byte over http:// (prior knowledge)",
        );
    /// Requests that a connection carries at a time.
    STREAMS in "Connection", with HTTP2, at "http2.streams", |http| http.streams().to_string(), set_streams;
        Param {
            name: "streams",
            value_name: "N",
            help: "With --http2: how many requests each connection carries at a time. Of networks: the same as -c",
            sort: Sort::Count { least: 1, most: 10_000, zero: "" },
            default: "1",
        };
    /// What an HTTP/2 server may send before it needs our leave.
    H2_WINDOW in "Connection", with HTTP2;
        Param {
            name: "h2-window",
            value_name: "BYTES",
            help: "With --http2: how many bytes of responses a server may send ahead of our leave, on each stream \
                   (SETTINGS_INITIAL_WINDOW_SIZE) and on the connection, where HTTP/2 knows nothing below 65535. It gets leave anew \
                   whenever half of them have come",
            sort: Sort::Bytes { least: 1, most: (1 << 31) - 1, zero: "" },
            // As much as h2load gives; to use up half of it within a round trip of 100 ms a server would have to send 40 Gbit/s.
            default: "1073741824",
        };
    /// Acknowledgements that do not wait.
    QUICK_ACK in "Connection",
        at "quick_ack", |http| switch(http.quick_ack), |http, value| http.quick_ack = value == "on";
        Param::switch("quick-ack", "Acknowledge what arrives at once, not after up to 40 ms (Linux)");
    /// The largest TCP segment that we announce.
    SEGMENT_BYTES in "Connection",
        at "segment_bytes", |http| http.segment_bytes.unwrap_or(0).to_string(),
        |http, value| http.segment_bytes = value.parse().ok().filter(|&bytes| bytes > 0);
        Param {
            name: "segment-bytes",
            value_name: "BYTES",
            help: "Announce that we take TCP segments of at most this size; 0: of what the network interface takes",
            sort: Sort::Bytes { least: 88, most: 32_767, zero: "as the interface has it" },
            default: "0",
        };
    /// Which addresses of a name are connected to.
    ADDRESSES in "Connection",
        at "reach.addresses", |http| http.reach.addresses.name().to_owned(),
        |http, value| http.reach.addresses = AddressChoice::of_name(value).unwrap_or_default();
        Param {
            name: "addresses",
            value_name: "WHICH",
            help: "Which of the addresses that a name leads to: answering, the first that accepts a connection, tried in the \
                   resolver's order before load begins; race, the one that happy eyeballs end up with (RFC 8305): attempts begin \
                   250 ms apart, the first connection wins; first, the resolver's first, even if it is dead; all that accept a \
                   connection, in turn from connection to connection",
            sort: Sort::Choice(&["answering", "race", "first", "all"]),
            default: "answering",
        };
    /// The Unix socket that is connected to.
    UNIX_SOCKET in "Connection", without ADDRESSES,
        at "unix_socket", |http| text(http.unix_socket.as_deref()), |http, value| http.unix_socket = some(value);
        Param {
            name: "unix-socket",
            value_name: "PATH",
            help: "Connect to this Unix socket",
            sort: Sort::Sent("talk to whoever listens on the Unix socket"),
            default: "",
        };
    /// The header that connections begin with.
    PROXY_PROTOCOL in "Connection",
        at "reach.proxy_protocol", |http| http.reach.proxy_protocol.map_or("none", ProxyProtocol::name).to_owned(),
        |http, value| http.reach.proxy_protocol = ProxyProtocol::of_name(value);
        Param {
            name: "proxy-protocol",
            value_name: "VERSION",
            help: "Begin each connection with a header of the PROXY protocol that tells its own addresses: none, v1 (a line of text) \
                   or v2 (binary)",
            sort: Sort::Choice(&["none", "v1", "v2"]),
            default: "none",
        };
    /// In which order listed requests are sent.
    ORDER in "Several requests",
        at "requests.order", |http| if http.requests.order == RequestOrder::Random { "random" } else { "in-turn" }.to_owned(),
        |http, value| http.requests.order = if value == "random" { RequestOrder::Random } else { RequestOrder::InTurn };
        Param {
            name: "order",
            value_name: "ORDER",
            help: "In which order listed requests are sent: in-turn, round and round, or random, by chance and weight",
            sort: Sort::Choice(&["in-turn", "random"]),
            default: "in-turn",
        };
    /// Connections keep cookies.
    COOKIES in "Several requests",
        at "requests.cookies", |http| switch(http.requests.cookies), |http, value| http.requests.cookies = value == "on";
        Param::switch("cookies", "Each connection keeps the cookies that it was given, and loses them when it ends");
    /// Bodies of responses are decompressed.
    DECOMPRESS in "Several requests",
        at "requests.decompress", |http| switch(http.requests.decompress), |http, value| http.requests.decompress = value == "on";
        Param::switch(
            "decompress",
            "Decompress responses (br, deflate, gzip; zstd where it was built in) and count them in both sizes; one that cannot \
             be has failed",
        );
    /// The method of requests that have none of their own.
    METHOD in "Request", at "method", |http| http.method.clone(), |http, value| http.method = value.to_owned(), letter 'm';
        Param {
            name: "method",
            value_name: "METHOD",
            help: "Method; a list makes a factor: GET,HEAD",
            sort: Sort::Token("POST"),
            default: "GET",
        };
    /// Bytes of a request body that is made up.
    BODY_SIZE in "Request",
        at "body.generated", |http| if let Body::Generated(bytes) = http.body { bytes.to_string() } else { "0".to_owned() },
        |http, value| http.body = value.parse().ok().filter(|&bytes| bytes > 0).map_or(Body::None, Body::Generated);
        Param {
            name: "body-size",
            value_name: "SIZE",
            help: "Request body of generated text that hardly compresses; a list makes a factor: 0,1k,64k",
            sort: Sort::Bytes { least: 1, most: 1 << 30, zero: "none" },
            default: "0",
        };
    /// The codings of responses that are accepted.
    ENCODING in "Request",
        at "accept_encoding", |http| ranked(codings(http), "identity"),
        |http, value| http.accept_encoding = (value != "identity").then(|| value.replace('+', ", "));
        Param {
            name: "encoding",
            value_name: "LIST",
            help: "Accept-Encoding; identity sends none, and in a list makes a factor: identity,gzip",
            sort: Sort::Ranked { known: &[], none: "identity", by_commas: true },
            default: "gzip",
        };
    /// The host that is asked for.
    HOST in "Request", at "host", |http| http.host.clone().unwrap_or_default(), |http, value| http.host = some(value);
        Param {
            name: "host",
            value_name: "NAME",
            help: "Host field, where it differs from the address",
            sort: Sort::Text,
            default: "",
        };
    /// Connections are kept.
    KEEPALIVE in "Request", at "keepalive", |http| switch(http.keepalive), |http, value| http.keepalive = value == "on",
        off "no-keepalive": "A new connection for each request", told |value| format!("keep-alive {value}");
        Param {
            name: "keepalive",
            value_name: "ON|OFF",
            help: "Whether connections are kept alive: on, off, or both as a factor: on,off",
            sort: Sort::Choice(&["on", "off"]),
            default: "on",
        };
    /// Certificates are not verified.
    INSECURE in "TLS", at "tls.verify", |http| switch(!http.tls.verify), |http, value| http.tls.verify = value != "on",
        letter 'k', told |value| format!("TLS verify {}", if value == "on" { "off" } else { "on" });
        Param::switch("insecure", "Do not verify certificates");
    /// The versions of TLS that are allowed.
    TLS in "TLS",
        at "tls.versions", |http| ranked(http.tls.versions.iter().map(|version| version.name()), TLS.default),
        |http, value| http.tls.versions = value.split('+').filter_map(TlsVersion::of_name).collect(),
        told |value| format!("TLS {}", value.replace('+', " "));
        Param {
            name: "tls",
            value_name: "LIST",
            help: "Versions allowed; a list makes a factor: 1.2,1.3",
            sort: Sort::Ranked { known: &["1.2", "1.3"], none: "", by_commas: false },
            default: "1.2+1.3",
        };
    /// The groups of the key exchange.
    GROUP in "TLS",
        at "tls.groups", |http| ranked(&http.tls.groups, GROUP.default), |http, value| http.tls.groups = names(value),
        option "groups", told |value| format!("groups {}", value.replace('+', " "));
        Param {
            name: "group",
            value_name: "LIST",
            help: "Key exchange groups in order of preference",
            sort: Sort::Ranked { known: &[], none: "", by_commas: true },
            default: "x25519+secp256r1+secp384r1",
        };
    /// The cipher suites that are allowed.
    CIPHER in "TLS",
        at "tls.ciphers", |http| ranked(&http.tls.ciphers, CIPHER.default),
        |http, value| http.tls.ciphers = if value == CIPHER.default { Vec::new() } else { names(value) },
        option "ciphers", told |value| match value.replace('+', " ").as_str() {
            "all" => "all ciphers".to_owned(),
            names => format!("ciphers {names}"),
        };
        Param {
            name: "cipher",
            value_name: "LIST",
            help: "Cipher suites allowed, by IANA name, in order of preference; all: those of the library",
            sort: Sort::Ranked { known: &[], none: "all", by_commas: true },
            default: "all",
        };
    /// Sessions are resumed.
    RESUMPTION in "TLS",
        at "tls.resumption", |http| switch(http.tls.resumption), |http, value| http.tls.resumption = value == "on",
        told |value| format!("resumption {value}");
        Param::switch("resumption", "Resume sessions on new connections");
    /// Who vouches for servers.
    CA in "TLS", at "tls.ca_file", |http| text(http.tls.ca_file.as_deref()), |http, value| http.tls.ca_file = some(value);
        Param {
            name: "ca",
            value_name: "FILE",
            help: "PEM file of certificate authorities instead of the system's",
            sort: Sort::Sent("trust the authorities in the file"),
            default: "",
        };
    /// Who we are.
    CLIENT_CERT in "TLS",
        at "tls.client_cert_file", |http| text(http.tls.client_cert_file.as_deref()),
        |http, value| http.tls.client_cert_file = some(value);
        Param {
            name: "client-cert",
            value_name: "FILE",
            help: "PEM file of the client's certificate chain",
            sort: Sort::Sent("show the client certificate in the file"),
            default: "",
        };
    /// What proves it.
    CLIENT_KEY in "TLS",
        at "tls.client_key_file", |http| text(http.tls.client_key_file.as_deref()),
        |http, value| http.tls.client_key_file = some(value);
        Param {
            name: "client-key",
            value_name: "FILE",
            help: "PEM file of the client's key",
            sort: Sort::Sent("sign with the private key in the file"),
            default: "",
        };
    /// The protocols that are offered inside of TLS.
    ALPN in "TLS",
        at "tls.alpn", |http| ranked(&http.tls.alpn, "none"),
        |http, value| http.tls.alpn = if value == "none" { Vec::new() } else { names(value) };
        Param {
            name: "alpn",
            value_name: "LIST",
            help: "Protocols offered by ALPN, in order of preference; none: it is left out",
            sort: Sort::Ranked { known: &[], none: "none", by_commas: true },
            default: "http/1.1",
        };
    /// Whom servers are to be.
    SERVER_NAME in "TLS",
        at "tls.server_name", |http| http.tls.server_name.clone().unwrap_or_default(),
        |http, value| http.tls.server_name = some(value);
        Param {
            name: "server-name",
            value_name: "NAME",
            help: "Name for SNI and verification, where it differs from the address",
            sort: Sort::Text,
            default: "",
        };
}

/// What is said of the setting of this name.
pub(crate) fn of_name(name: &str) -> Option<&'static Setting> {
    PARAMS.iter().zip(SETTINGS).find(|(param, _)| param.name == name).map(|(_, setting)| setting)
}

impl HttpPlan {
    /// The value of a setting.
    pub fn setting(&self, param: &Param) -> Cow<'_, str> {
        match of_name(param.name).and_then(|setting| setting.field.as_ref()) {
            Some(field) => (field.get)(self).into(),
            None => self.settings.get(&param.id()).map_or(param.default, String::as_str).into(),
        }
    }

    /// The value of a setting that is a whole number; of bytes, for one.
    pub fn number(&self, param: &Param) -> u64 {
        self.setting(param).parse().unwrap_or(0)
    }

    /// Sets a setting to what [`Param::read`] has made of a text.
    pub fn set(&mut self, param: &Param, value: &str) {
        match of_name(param.name).and_then(|setting| setting.field.as_ref()) {
            Some(field) => (field.set)(self, value),
            None if value == param.default => drop(self.settings.remove(&param.id())),
            None => drop(self.settings.insert(param.id(), value.to_owned())),
        }
    }

    /// The plan as it was kept, if no setting has a value that no option could have given it.
    pub(crate) fn checked(mut self) -> Result<Self, String> {
        for (id, value) in std::mem::take(&mut self.settings) {
            let param = super::SCHEMA.checked(id, &value)?;
            self.set(param, &value);
        }
        Ok(self)
    }
}

/// Names in order of preference as they are kept; none stand for what is usual.
fn ranked(names: impl IntoIterator<Item = impl AsRef<str>>, usual: &str) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
    if names.is_empty() { usual.to_owned() } else { names.join("+") }
}

fn names(kept: &str) -> Vec<String> {
    kept.split('+').map(str::to_owned).collect()
}

/// What `Accept-Encoding` lists.
fn codings(http: &HttpPlan) -> impl Iterator<Item = &str> {
    let codings = http.accept_encoding.iter().flat_map(|list| list.split(','));
    codings.map(str::trim).filter(|coding| !coding.is_empty())
}

/// A path that is kept, which is a text: a plan is kept as JSON.
fn text(path: Option<&Path>) -> String {
    path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
}

fn some<T: for<'a> From<&'a str>>(value: &str) -> Option<T> {
    (!value.is_empty()).then(|| value.into())
}

fn switch(is_on: bool) -> String {
    if is_on { "on" } else { "off" }.to_owned()
}

fn set_http2(http: &mut HttpPlan, value: &str) {
    match value {
        "on" => drop(http.http2.get_or_insert(Http2Plan { streams: 1 })),
        _ => http.http2 = None,
    }
}

fn set_streams(http: &mut HttpPlan, value: &str) {
    if let (Some(http2), Ok(streams)) = (&mut http.http2, value.parse()) {
        http2.streams = streams;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_read_back_as_it_was_set_and_the_default_is_what_a_plan_has_anyhow() {
        for param in PARAMS {
            let mut http = HttpPlan::default();
            assert_eq!(http.setting(param), param.default, "{}", param.name);
            assert_eq!(param.read(param.default).as_deref(), Ok(param.default), "in the spelling that is kept");
            if let Some(needs) = of_name(param.name).unwrap().needs {
                http.set(needs, "on");
            }
            let before = http.clone();
            let others: Vec<String> = match param.sort {
                Sort::Switch => vec!["on".into()],
                Sort::Token(example) => vec![example.into()],
                Sort::Text | Sort::Sent(_) => vec!["a".into()],
                Sort::Ranked { known: [first, ..], .. } => vec![first.to_string()],
                Sort::Ranked { .. } => vec!["b+a".into(), "a".into()],
                Sort::Choice(choices) => choices.iter().filter(|c| **c != param.default).map(|c| (*c).into()).collect(),
                Sort::Count { least, most, .. } | Sort::Bytes { least, most, .. } => {
                    [least + 1, most].map(|number| number.to_string()).to_vec()
                }
                _ => panic!("{} has values that are not tried", param.name),
            };
            for value in others {
                http.set(param, &value);
                assert_eq!(http.setting(param), value.as_str(), "{}", param.name);
                let kept = serde_json::to_string(&http).unwrap();
                assert_eq!(serde_json::from_str::<HttpPlan>(&kept).unwrap(), http, "{kept}");
            }
            http.set(param, param.default);
            assert_eq!(http, before, "{}", param.name);
        }
    }

    #[test]
    fn a_kept_value_that_no_option_could_have_set_is_refused() {
        let read = |settings: &str| {
            let mut plan = serde_json::to_value(HttpPlan::default()).unwrap();
            plan["settings"] = serde_json::from_str(settings).unwrap();
            serde_json::from_value::<HttpPlan>(plan).unwrap().checked()
        };
        assert_eq!(read(r#"{"h2-window":"65536"}"#).unwrap().number(&H2_WINDOW), 65_536);
        for settings in [r#"{"h2-window":"0"}"#, r#"{"h2-window":"64k"}"#, r#"{"colour":"red"}"#] {
            assert!(read(settings).is_err(), "{settings}");
        }
    }
}
