//! Management controllers that lie. All are behind TLS with a certificate that nobody vouches for.

use super::act::Act::{Close, Drip, Fill, Forever, Hear, Made, Reset, Say, Secure, Tell};
use super::guise::Guise;
use super::{Expected, Family, Lie, Speaks};

/// An entry of this family: what it is called and does, what comes of it, and its acts behind the handshake.
macro_rules! lie {
    ($name:literal, $does:literal, $expected:ident, [$($act:expr),* $(,)?]) => {
        Lie {
            name: concat!("redfish/", $name),
            family: Family::Redfish,
            does: $does,
            speaks: Speaks::Https,
            asks: &[],
            acts: &[Secure(Guise::Plain), $($act),*],
            expected: Expected::$expected,
        }
    };
}

const JSON: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";

pub(super) const LIES: &[Lie] = &[
    lie!("silent", "no answer", Doubt, [Hear]),
    lie!("closes", "the end in place of an answer", Doubt, [Hear, Close]),
    lie!("resets", "a reset in place of an answer", Doubt, [Hear, Reset]),
    lie!("garbage", "escape sequences in place of HTTP", Doubt, [Hear, Say(b"\x1b[2J\x1b]0;owned\x07\r\n\r\n"), Close]),
    lie!(
        "status-with-escapes",
        "an error whose reason has escape sequences",
        Doubt,
        [Forever(&[Hear, Say(b"HTTP/1.1 500 \x1b[2J\x1b]0;owned\x07\r\nContent-Length: 0\r\n\r\n")])]
    ),
    lie!(
        "wants-a-password",
        "401 to everything",
        Doubt,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"\x1b[2J\"\r\nContent-Length: 0\r\n\r\n")
        ])]
    ),
    lie!(
        "redirects-to-others",
        "a redirect to another host",
        Doubt,
        [Forever(&[
            Hear,
            Say(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:1/redfish/v1/Chassis\r\n\
     Content-Length: 0\r\n\r\n")
        ])]
    ),
    lie!(
        "redirects-for-ever",
        "a redirect to ever new paths of its own",
        Doubt,
        [Forever(&[
            Hear,
            Tell(
                "HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:{port}/redfish/v1/{n}\r\n\
     Content-Length: 0\r\n\r\n"
            )
        ])]
    ),
    lie!(
        "json-endless",
        "JSON without end",
        Doubt,
        [Hear, Say(JSON), Say(b"{\"Members\": ["), Forever(&[Say(b"{},")])]
    ),
    lie!(
        "json-of-one-endless-text",
        "a text without end",
        Doubt,
        [Hear, Say(JSON), Say(b"{\"Name\": \""), Forever(&[Fill(b'x', 65_536)])]
    ),
    lie!(
        "json-deep",
        "a hundred thousand brackets in each other",
        Doubt,
        [Hear, Say(JSON), Fill(b'[', 100_000), Fill(b']', 100_000), Close]
    ),
    lie!(
        "json-of-another-kind",
        "JSON that tells of nothing",
        Doubt,
        [Forever(&[Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull")])]
    ),
    lie!(
        "json-of-garbage",
        "bytes that are no JSON",
        Doubt,
        [Forever(&[Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n\x1b[2J\xff\xfe\0")])]
    ),
    lie!(
        "json-with-a-lying-length",
        "a length of 2^63",
        Doubt,
        [Hear, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n{}")]
    ),
    lie!("json-dripped", "a byte of JSON each 20 ms", Doubt, [Hear, Say(JSON), Forever(&[Drip(b" ", 20)])]),
    lie!(
        "head-endless",
        "fields without end",
        Doubt,
        [Hear, Say(b"HTTP/1.1 200 OK\r\n"), Forever(&[Say(b"X-Field: and one more\r\n")])]
    ),
    lie!(
        "members-of-others",
        "members that are other hosts, files and paths outside",
        Doubt,
        [Forever(&[Hear, Made(members_of_others)])]
    ),
    lie!(
        "members-without-number",
        "fifty thousand members, each of which has as many",
        Doubt,
        [Forever(&[Hear, Made(many_members)])]
    ),
    lie!(
        "members-in-a-circle",
        "a member that is its own chassis, thermal, power and fan",
        Either,
        [Forever(&[Hear, Made(circle)])]
    ),
    lie!(
        "readings-that-lie",
        "readings beyond all numbers, and names with escape sequences",
        Either,
        [Forever(&[Hear, Made(readings)])]
    ),
];

/// A whole answer.
fn json(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

fn members_of_others() -> Vec<u8> {
    let places = [
        "https://127.0.0.2:1/redfish/v1/x",
        "//127.0.0.2/redfish/v1/x",
        "/redfish/v1/../../etc/passwd",
        "file:///etc/passwd",
        "/redfish/v1/a\\r\\nHost: evil",
    ];
    let members: Vec<String> = places.iter().map(|place| format!("{{\"@odata.id\": \"{place}\"}}")).collect();
    json(&format!("{{\"Members\": [{}]}}", members.join(",")))
}

/// Some 3 MB.
fn many_members() -> Vec<u8> {
    let members: Vec<String> =
        (0..50_000).map(|number| format!("{{\"@odata.id\": \"/redfish/v1/Chassis/{number}\"}}")).collect();
    json(&format!("{{\"Members\": [{}]}}", members.join(",")))
}

fn circle() -> Vec<u8> {
    let to_itself = "{\"@odata.id\": \"/redfish/v1/Chassis\"}";
    let links: Vec<String> =
        ["Thermal", "Power", "ThermalSubsystem", "PowerSubsystem", "Fans", "PowerSupplies", "Metrics"]
            .iter()
            .map(|name| format!("\"{name}\": {to_itself}"))
            .collect();
    json(&format!("{{\"Members\": [{to_itself}], {}}}", links.join(",")))
}

fn readings() -> Vec<u8> {
    json(concat!(
        "{\"Members\": [{\"@odata.id\": \"/redfish/v1/Chassis/1\"}],",
        "\"Thermal\": {\"@odata.id\": \"/redfish/v1/Chassis/1/Thermal\"},",
        "\"Power\": {\"@odata.id\": \"/redfish/v1/Chassis/1/Power\"},",
        "\"Temperatures\": [{\"Name\": \"\\u001b[2J\\u009b31m\\r\\nx\", \"ReadingCelsius\": \
     1e308, \"Status\": {\"State\": \"Enabled\"}},",
        "{\"Name\": \"b\", \"ReadingCelsius\": -1e308}, {\"Name\": \"c\", \"ReadingCelsius\": \
     \"hot\"}],",
        "\"Fans\": [{\"Name\": \"\\u0007fan\", \"Reading\": 18446744073709551615, \
     \"ReadingUnits\": \"\\u001b[31m\"}],",
        "\"PowerControl\": [{\"PowerConsumedWatts\": 1e300}], \"PowerSupplies\": [{\"Name\": \
     \"\\u202e\", \"LineInputVoltage\": -1}]}",
    ))
}
