//! What a probe changes in a plan.

use crate::web::settings::STREAMS;
use crate::{AddressRange, Id, LoopKind, NameOverride, Plan, TlsVersion, TwinPlan, WorkloadPlan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What a probe changes in the plan; `None` leaves as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variation {
    /// Connections, which carry one request at a time, or as many as is set beside.
    pub connections: Option<u32>,
    /// Kept alive or one connection per request.
    pub keepalive: Option<bool>,
    /// Cipher suites allowed, by IANA name.
    pub ciphers: Option<Vec<String>>,
    /// Key exchange groups allowed.
    pub groups: Option<Vec<String>>,
    /// Session resumption.
    pub resumption: Option<bool>,
    /// `Accept-Encoding`: `Some(None)` does not send the field.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub accept_encoding: Option<Option<String>>,
    /// Only the first bytes of the resource.
    pub range_bytes: Option<u64>,
    /// Method.
    pub method: Option<String>,
    /// TLS versions allowed.
    #[serde(default)]
    pub versions: Option<Vec<TlsVersion>>,
    /// Acknowledge what arrives at once.
    #[serde(default)]
    pub quick_ack: Option<bool>,
    /// Largest segment that we announce, in bytes.
    #[serde(default)]
    pub segment_bytes: Option<u16>,
    /// Local addresses that connections are made from, in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Vec<AddressRange>>,
    /// Other addresses that targets are reached by than in the comparison, by the targets' numbers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<usize, SocketAddr>,
    /// One op under way at a time, over all connections in turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_at_a_time: bool,
    /// Of requests that differ the first few, again and again, in place of further ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_few: bool,
    /// Declared settings, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<Id, String>,
    /// A target's server replaced by a private twin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin: Option<TwinPlan>,
}

impl Plan {
    /// The plan with these changes. It is a closed loop without pauses: a probe asks what an op costs, not what a schedule
    /// does.
    #[must_use]
    pub fn varied(&self, variation: &Variation) -> Self {
        let Variation {
            connections,
            keepalive,
            ciphers,
            groups,
            resumption,
            accept_encoding,
            range_bytes,
            method,
            versions,
            quick_ack,
            segment_bytes,
            sources,
            peers,
            one_at_a_time,
            settings,
            // Where requests go, and not what they are.
            twin: _,
            // Which of the plan's requests are sent, and not what they are.
            same_few: _,
        } = variation.clone();
        let mut plan = self.clone();
        // Who asks for so many connections wants them at work.
        plan.load.shape.one_at_a_time &= connections.is_none();
        let says_both = connections.is_some() && settings.contains_key(&STREAMS.id());
        for (id, value) in settings {
            if let Some(param) = plan.schema().param(id.name()) {
                plan.workload.set(param, &value);
            }
        }
        // A connection that is closed after its first request carries no more, and one of HTTP/1.1 one at a time: as many
        // requests at a time need as many connections.
        let carries_fewer = keepalive == Some(false) || plan.streams() < self.streams();
        let connections = connections.or(carries_fewer.then(|| self.lanes()));
        plan.load.kind = LoopKind::Closed { think_ns: 0 };
        // Ops of a closed loop are due when they can be sent.
        plan.load.shape.deadline_ns = None;
        if let Some(connections) = connections {
            plan.load.connections = connections;
            plan.load.threads = plan.load.threads.min(connections);
        }
        if one_at_a_time {
            plan.load.shape.one_at_a_time = true;
            // One at a time of each worker would be several.
            plan.load.threads = 1;
        }
        if let WorkloadPlan::Http(http) = &mut plan.workload {
            // So many connections stand for so many requests at a time, where nothing is said of how many each carries.
            if let Some(http2) = &mut http.http2
                && connections.is_some()
                && !says_both
            {
                http2.streams = 1;
            }
            put(&mut http.keepalive, keepalive);
            put(&mut http.tls.ciphers, ciphers);
            put(&mut http.tls.groups, groups);
            put(&mut http.tls.resumption, resumption);
            put(&mut http.tls.versions, versions);
            put(&mut http.accept_encoding, accept_encoding);
            put(&mut http.method, method);
            put(&mut http.quick_ack, quick_ack);
            put(&mut http.reach.sources, sources);
            http.reach.overrides.splice(
                0..0,
                peers
                    .into_iter()
                    .filter_map(|(target, peer)| Some(NameOverride::new(self.targets.get(target)?.machine()?, peer))),
            );
            http.range_bytes = range_bytes.or(http.range_bytes);
            http.segment_bytes = segment_bytes.or(http.segment_bytes);
        }
        plan
    }

    /// Requests that a connection carries at a time.
    fn streams(&self) -> u32 {
        match &self.workload {
            WorkloadPlan::Http(http) => http.streams(),
            WorkloadPlan::Plain(_) => 1,
        }
    }
}

fn put<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// A field that is there: `null` means the inner `None`, only absence the outer one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bound, BusyPoll, ComparePlan, Http2Plan, HttpPlan, LoadPlan, LoadShape, Target};

    #[test]
    fn not_sending_a_field_is_told_from_leaving_it_as_it_is() {
        for accept_encoding in [None, Some(None), Some(Some("gzip".to_owned()))] {
            let variation = Variation { accept_encoding, ..Variation::default() };
            let kept = serde_json::to_string(&variation).unwrap();
            assert_eq!(serde_json::from_str::<Variation>(&kept).unwrap(), variation, "{kept}");
        }
    }

    #[test]
    fn as_many_requests_are_under_way_whatever_a_connection_carries() {
        let plan = shared_connections();
        assert_eq!((plan.load.connections, plan.lanes()), (4, 40));
        let setting = |name: &'static str, value: &str| Variation {
            settings: [(Id::new(name), value.to_owned())].into(),
            ..Variation::default()
        };
        let closing = Variation { keepalive: Some(false), ..Variation::default() };
        for variation in [setting("http2", "off"), setting("streams", "1"), closing] {
            let varied = plan.varied(&variation);
            assert_eq!((varied.load.connections, varied.lanes()), (40, 40), "{variation:?}");
        }
        let alone = plan.varied(&Variation { connections: Some(1), ..setting("http2", "off") });
        assert_eq!((alone.load.connections, alone.lanes()), (1, 1));
        let another = plan.varied(&setting("h2-window", "65535"));
        assert_eq!((another.load.connections, another.lanes()), (4, 40));
        for (connections, streams) in [(4, "2"), (20, "2"), (1, "7")] {
            let varied = plan.varied(&Variation { connections: Some(connections), ..setting("streams", streams) });
            assert_eq!(varied.load.connections, connections);
            assert_eq!(varied.lanes(), connections * streams.parse::<u32>().unwrap(), "as it is said");
        }
    }

    /// Four connections of ten requests each.
    fn shared_connections() -> Plan {
        let http = HttpPlan { http2: Some(Http2Plan { streams: 10 }), ..HttpPlan::default() };
        Plan {
            targets: Vec::new(),
            workload: WorkloadPlan::Http(Box::new(http)),
            load: LoadPlan {
                connections: 4,
                threads: 2,
                kind: LoopKind::Closed { think_ns: 0 },
                bound: Bound::Ops(1),
                connect_timeout_ns: 1,
                op_timeout_ns: 1,
                busy_poll: BusyPoll::Auto,
                shape: LoadShape::default(),
            },
            compare: ComparePlan::default(),
            factors: Vec::new(),
        }
    }

    #[test]
    fn another_address_of_a_target_is_told_as_what_its_name_leads_to() {
        let mut plan = shared_connections();
        let target = |name: &str, address: &str| Target { name: name.into(), address: address.into(), host: None };
        plan.targets = vec![target("A", "http://h.example/"), target("B", "https://H.example:8443/f")];
        let peers = [(1, "192.0.2.7:8443".parse().unwrap())].into();
        let variation = Variation { peers, ..Variation::default() };
        let kept = serde_json::to_string(&variation).unwrap();
        assert_eq!(serde_json::from_str::<Variation>(&kept).unwrap(), variation, "{kept}");
        let WorkloadPlan::Http(http) = plan.varied(&variation).workload else { panic!("no requests") };
        let leads_to = |port| http.reach.overrides.iter().find_map(|rule| rule.addresses_of("h.example", port));
        assert_eq!(leads_to(8443), Some(&["192.0.2.7".parse().unwrap()][..]));
        assert_eq!(leads_to(80), None, "the other target is reached as it was");
        assert!(!serde_json::to_string(&Variation::default()).unwrap().contains("peers"));
    }

    #[test]
    fn addresses_to_connect_from_are_kept_as_they_are_typed_and_runs_from_before_them_are_read() {
        let variation =
            Variation { sources: Some(vec!["127.0.0.2-127.0.0.9".parse().unwrap()]), ..Variation::default() };
        let kept = serde_json::to_string(&variation).unwrap();
        assert!(kept.contains(r#""sources":["127.0.0.2-127.0.0.9"]"#), "{kept}");
        assert_eq!(serde_json::from_str::<Variation>(&kept).unwrap(), variation);
        let before = serde_json::to_string(&Variation::default()).unwrap();
        assert!(!before.contains("sources"), "{before}");
        assert_eq!(serde_json::from_str::<Variation>(&before).unwrap(), Variation::default());
    }
}
