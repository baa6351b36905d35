//! What is to be measured: the meaning of what was typed, complete, with every default made explicit.

use crate::{
    BusyPoll, Factor, Facts, Id, KindPlan, LoadShape, MICROSECOND_NS, Nanos, Param, ReachPlan, RequestsPlan,
    RestartPlan, SECOND_NS, Schema, Streamed,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

/// A system under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The name that the user gave, or one derived from the address; unique within a plan.
    pub name: String,
    /// The address as a URL, without user information (see [`Plan::redacted`] for other secrets).
    pub address: String,
    /// How its machine is read while it is under load; `None`: it is measured from outside only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostPlan>,
}

impl Target {
    /// The machine in the address, without a port and brackets; empty for a local socket, `None` where the address names none.
    pub fn machine(&self) -> Option<&str> {
        let (_, rest) = self.address.split_once("://")?;
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        Some(match host_and_port.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host_and_port.split(':').next().unwrap_or_default(),
        })
    }

    /// Whether the address names this machine, whatever it is called elsewhere.
    pub fn is_on_loopback(&self) -> bool {
        let is_loopback = |name: &str| name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        self.machine().is_some_and(|name| name.eq_ignore_ascii_case("localhost") || is_loopback(name))
    }
}

/// How the machine of a target is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostPlan {
    /// How a shell on it is reached.
    pub access: HostAccess,
    /// Which of its processes is the server.
    pub server: ServerPlan,
    /// Which process the id in `server` meant, noted when a run reads the machine; `None`: not known, or no id was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessIdentity>,
    /// Its management controller, which tells fans, temperatures and power supplies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redfish: Option<RedfishPlan>,
}

/// What tells a process from another one of the same machine: ids are given again, by a restarted machine in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The machine's boot: Linux's boot id.
    pub boot: String,
    /// When the process was started, as the machine tells it: on Linux in clock ticks since the boot.
    pub started: String,
}

impl ProcessIdentity {
    /// `None` where one of the two is not known: half of it tells nothing.
    pub fn new(boot: &str, started: &str) -> Option<Self> {
        let both = !boot.is_empty() && !started.is_empty();
        both.then(|| Self { boot: boot.to_owned(), started: started.to_owned() })
    }

    /// Of the server's main process, as the facts of its machine tell it.
    pub fn of_server(facts: &Facts) -> Option<Self> {
        Self::new(facts.text("os.boot_id")?, facts.text("process.started")?)
    }
}

/// How the management controller of a machine is asked (DMTF's Redfish, DSP0266). The password is not part of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedfishPlan {
    /// `https://HOST` or `https://HOST:PORT`, without a user.
    pub address: String,
    /// Who asks; `None`: nobody in particular.
    pub user: Option<String>,
    /// The file whose first line is the password, read when the run starts; `None`: the environment has it.
    pub password_file: Option<PathBuf>,
    /// Verify the controller's certificate.
    pub verify: bool,
}

/// How a shell on a machine is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostAccess {
    /// It is this machine.
    Local,
    /// By the system's ssh, to this destination.
    Ssh(String),
}

/// Which process of a machine is the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerPlan {
    /// None is named: only the machine is looked at, and whoever listens on a Unix socket of the target's address.
    Unknown,
    /// Whoever listens on this TCP port.
    Port(u16),
    /// This process and its children.
    Pid(u32),
    /// The main process of this service.
    Service(String),
}

/// A plan: everything that has to be known to run an experiment, and to run it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The targets; the first is the baseline of all pairs.
    pub targets: Vec<Target>,
    /// What one op is.
    pub workload: WorkloadPlan,
    /// How ops are offered.
    pub load: LoadPlan,
    /// How targets are compared.
    pub compare: ComparePlan,
    /// What is varied. The rest of the plan is then that of the first treatment, but for as many threads as the treatment
    /// with the most connections may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<Factor>,
}

/// The kind of operation and its parameters, the same for every target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "KeptWorkload", into = "KeptWorkload")]
pub enum WorkloadPlan {
    /// Ops of a kind that its schema and its settings are all of.
    Plain(KindPlan),
    /// HTTP/1.1 requests, over TLS where the target's scheme says so.
    Http(Box<HttpPlan>),
}

impl WorkloadPlan {
    /// Ops that do nothing: they measure the generator itself.
    pub const NULL: Self = Self::Plain(KindPlan::of(&crate::null::SCHEMA));

    /// What its kind of work declares of itself.
    pub fn schema(&self) -> &'static Schema {
        match self {
            Self::Plain(kind) => kind.schema,
            Self::Http(_) => &crate::web::SCHEMA,
        }
    }

    /// The value of a setting, in the spelling that is kept.
    pub fn setting(&self, param: &Param) -> Cow<'_, str> {
        match self {
            Self::Plain(kind) => kind.get(param).into(),
            Self::Http(http) => http.setting(param),
        }
    }

    /// Sets a setting to what [`Param::read`] has made of a text.
    pub fn set(&mut self, param: &Param, value: &str) {
        match self {
            Self::Plain(kind) => drop(kind.settings.insert(param.id(), value.to_owned())),
            Self::Http(http) => http.set(param, value),
        }
    }

    /// Each setting that is not as by default, with its value.
    pub fn changed(&self) -> impl Iterator<Item = (&'static Param, Cow<'_, str>)> {
        let params = self.schema().params.iter();
        params.map(|param| (param, self.setting(param))).filter(|(param, value)| *value != param.default)
    }
}

/// A workload as it is kept. Those that do nothing, and the web's, were kept before there were others.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum KeptWorkload {
    Null,
    Declared(crate::kinds::Kept),
    Http(Box<HttpPlan>),
}

impl From<WorkloadPlan> for KeptWorkload {
    fn from(workload: WorkloadPlan) -> Self {
        match workload {
            WorkloadPlan::Plain(kind) if *kind.schema == crate::null::SCHEMA => Self::Null,
            WorkloadPlan::Plain(kind) => Self::Declared(kind.kept()),
            WorkloadPlan::Http(http) => Self::Http(http),
        }
    }
}

impl TryFrom<KeptWorkload> for WorkloadPlan {
    type Error = String;

    fn try_from(kept: KeptWorkload) -> Result<Self, String> {
        Ok(match kept {
            KeptWorkload::Null => Self::NULL,
            KeptWorkload::Declared(kept) => Self::Plain(kept.try_into()?),
            KeptWorkload::Http(http) => Self::Http(Box::new(http.checked()?)),
        })
    }
}

/// How ops are offered to one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPlan {
    /// Connections (lanes) in total, over all workers; at least 1.
    pub connections: u32,
    /// Worker threads; at most one per connection.
    pub threads: u32,
    /// Closed or open loop.
    pub kind: LoopKind,
    /// When a single target's run ends (a comparison ends by [`ComparePlan`]).
    pub bound: Bound,
    /// Longest time that connecting (TCP and TLS) may take.
    pub connect_timeout_ns: Nanos,
    /// Longest time that a whole op may take, counted from its start.
    pub op_timeout_ns: Nanos,
    /// How the workers wait for answers.
    #[serde(default = "BusyPoll::before_it_was_kept")]
    pub busy_poll: BusyPoll,
    /// What goes beyond load that stays as it is.
    #[serde(default, skip_serializing_if = "LoadShape::is_plain")]
    pub shape: LoadShape,
}

impl Default for LoadPlan {
    /// One connection in a closed loop, with what a command line that sets no more means. How many connections and threads there
    /// are then depends on the kind of work, and on the machine.
    fn default() -> Self {
        Self {
            connections: 1,
            threads: 1,
            kind: LoopKind::Closed { think_ns: 0 },
            bound: Bound::Duration(10 * SECOND_NS),
            connect_timeout_ns: 10 * SECOND_NS,
            op_timeout_ns: 30 * SECOND_NS,
            busy_poll: BusyPoll::default(),
            shape: LoadShape::default(),
        }
    }
}

/// What makes the next op due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "loop", rename_all = "kebab-case")]
pub enum LoopKind {
    /// The next op on a connection is due when its previous one ended, plus a think time.
    Closed {
        /// Pause between the end of an op and the next one on the same connection.
        think_ns: Nanos,
    },
    /// Ops are due by a schedule that does not wait for the server; when all connections are busy, the op waits and
    /// its due time stands.
    Open {
        /// Ops per second over all workers.
        rate_per_s: f64,
        /// How the due times are spaced.
        arrival: Arrival,
    },
}

/// Spacing of due times in an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrival {
    /// Equal gaps.
    Constant,
    /// Exponential gaps: independent arrivals, as from many users.
    Poisson,
}

/// When a run on one target ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// After this much time.
    Duration(Nanos),
    /// After this many ops.
    Ops(u64),
}

/// How targets are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparePlan {
    /// Seed of the order of slots, of Poisson arrivals and of the bootstrap.
    pub seed: u64,
    /// Practical margin: a ratio within `1/(1+margin)` to `1+margin` makes no difference in practice.
    pub margin: f64,
    /// Confidence of the intervals, such as 0.95.
    pub confidence: f64,
    /// Most load time over all targets, warm-up included.
    pub max_load_ns: Nanos,
    /// Length of a slot; `None`: chosen from the latency seen in warm-up.
    pub slot_ns: Option<Nanos>,
    /// Fewest pairs of slots for a verdict.
    pub min_pairs: u32,
    /// Stop as soon as the interval is narrow enough.
    pub stop_early: bool,
    /// How targets are started anew in between; `None`: they stay as they run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<RestartPlan>,
}

impl Default for ComparePlan {
    fn default() -> Self {
        Self {
            seed: 1,
            margin: 0.02,
            confidence: 0.95,
            max_load_ns: 30 * SECOND_NS,
            slot_ns: None,
            min_pairs: 6,
            stop_early: true,
            restart: None,
        }
    }
}

/// An HTTP request and how it is carried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpPlan {
    /// Method, such as `GET`.
    pub method: String,
    /// Further header fields in the order given; they replace defaults of the same name.
    pub headers: Vec<(String, String)>,
    /// The request's body.
    pub body: Body,
    /// Keep connections alive between requests; `false`: one connection per request, closed by us after asking for it
    /// with `Connection: close`.
    pub keepalive: bool,
    /// Value of `Accept-Encoding`; `None`: the field is not sent.
    pub accept_encoding: Option<String>,
    /// `Host` field, where it differs from the address.
    pub host: Option<String>,
    /// Only these first bytes of the resource (`Range: bytes=0-N`); used by the size sweep.
    pub range_bytes: Option<u64>,
    /// Most redirects that are followed, before measuring or as [`HttpPlan::follows_each`] says; 0: a redirect is an
    /// ordinary response.
    pub max_redirects: u32,
    /// Connect elsewhere than the address says.
    pub connect_to: Vec<ConnectTo>,
    /// Connect to this Unix socket, whatever the address says.
    pub unix_socket: Option<PathBuf>,
    /// TLS parameters, used where the target's scheme is https.
    pub tls: TlsPlan,
    /// Acknowledge what arrives at once instead of after up to 40 ms; a flip of diagnosis, where the system can.
    #[serde(default)]
    pub quick_ack: bool,
    /// Announce that we take segments of this size at most, in bytes; `None`: what the network interface takes.
    #[serde(default)]
    pub segment_bytes: Option<u16>,
    /// Each request follows its redirects itself, as a part of its op, instead of once for all before measuring.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows_each: bool,
    /// A complete response is ok whatever its status; otherwise one from 400 on has failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepts_any_status: bool,
    /// Proxy that requests go through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxyPlan>,
    /// What ops ask for, where that is more than one fixed request.
    #[serde(default, skip_serializing_if = "RequestsPlan::is_default")]
    pub requests: RequestsPlan,
    /// From where and to which addresses connections are made.
    #[serde(default, skip_serializing_if = "ReachPlan::is_default")]
    pub reach: ReachPlan,
    /// Speak HTTP/2 and nothing else; `None`: HTTP/1.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http2: Option<Http2Plan>,
    /// Values of the settings that have no field here, where they are not as by default; see [`crate::web::settings`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<Id, String>,
}

impl HttpPlan {
    /// Requests that a connection carries at a time.
    pub fn streams(&self) -> u32 {
        self.http2.as_ref().map_or(1, |http2| http2.streams.max(1))
    }

    /// Whether the plan's own request may change something on the server. What a file of requests asks for is in the file.
    pub fn may_write(&self) -> bool {
        !is_safe_method(&self.method) || self.requests.form.is_some()
    }
}

/// Whether a request of this method asks for nothing to be changed (RFC 9110, 9.2.1). Of a method that is not known nobody
/// can tell.
pub fn is_safe_method(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
}

/// How HTTP/2 is spoken: over TLS by offering it alone, in the open by beginning with it (prior knowledge).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Http2Plan {
    /// Requests that a connection carries at a time; at least 1.
    pub streams: u32,
}

/// An HTTP proxy: plain requests are sent to it whole, for others it is asked for a tunnel (`CONNECT`). Credentials for it
/// are a header field of the plan, `Proxy-Authorization`, which goes to nobody else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyPlan {
    /// Its name or address, IPv6 without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl std::fmt::Display for ProxyPlan {
    /// As it is typed: `HOST:PORT`, IPv6 addresses in brackets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl Default for HttpPlan {
    fn default() -> Self {
        Self {
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Body::None,
            keepalive: true,
            accept_encoding: Some("gzip".to_owned()),
            host: None,
            range_bytes: None,
            max_redirects: 0,
            connect_to: Vec::new(),
            unix_socket: None,
            tls: TlsPlan::default(),
            quick_ack: false,
            segment_bytes: None,
            follows_each: false,
            accepts_any_status: false,
            proxy: None,
            requests: RequestsPlan::default(),
            reach: ReachPlan::default(),
            http2: None,
            settings: BTreeMap::new(),
        }
    }
}

/// A request body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// None is sent.
    None,
    /// This text.
    Text(String),
    /// The content of this file, read when the run starts.
    File(PathBuf),
    /// So many bytes of text without meaning, always the same, which hardly compress.
    Generated(u64),
}

/// `HOST:PORT:ADDR:PORT`: requests to the first pair connect to the second (as curl's option of that name).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectTo {
    /// Host that it applies to; empty: any.
    pub host: String,
    /// Port that it applies to; `None`: any.
    pub port: Option<u16>,
    /// Name or address to connect to; empty: unchanged.
    pub to_host: String,
    /// Port to connect to; `None`: unchanged.
    pub to_port: Option<u16>,
}

impl std::fmt::Display for ConnectTo {
    /// As it is typed: `HOST:PORT:ADDR:PORT`, IPv6 addresses in brackets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let host = |host: &str| if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let port = |port: Option<u16>| port.map(|port| port.to_string()).unwrap_or_default();
        write!(f, "{}:{}:{}:{}", host(&self.host), port(self.port), host(&self.to_host), port(self.to_port))
    }
}

/// TLS parameters. Empty lists stand for [`TlsPlan::DEFAULT_GROUPS`] and all that the library supports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsPlan {
    /// Verify the server's certificate chain, name and signature.
    pub verify: bool,
    /// PEM file of certificate authorities instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// PEM file of the client's certificate chain.
    pub client_cert_file: Option<PathBuf>,
    /// PEM file of the client's private key.
    pub client_key_file: Option<PathBuf>,
    /// Allowed versions.
    pub versions: Vec<TlsVersion>,
    /// Allowed cipher suites by IANA name, in order of preference.
    pub ciphers: Vec<String>,
    /// Key exchange groups in order of preference, such as `x25519`, `secp256r1`, `secp384r1`, `x25519mlkem768`.
    pub groups: Vec<String>,
    /// Resume sessions on new connections.
    pub resumption: bool,
    /// Protocols offered by ALPN.
    pub alpn: Vec<String>,
    /// Server name for SNI and verification, where it differs from the address.
    pub server_name: Option<String>,
}

impl TlsPlan {
    /// The groups an ordinary OpenSSL 3 client offers a key share for, first the one it sends.
    ///
    /// A post-quantum hybrid costs both sides extra CPU time and is not offered unless asked for, because servers that
    /// lack it would be compared under another handshake than servers that have it.
    pub const DEFAULT_GROUPS: [&'static str; 3] = ["x25519", "secp256r1", "secp384r1"];
}

impl Default for TlsPlan {
    fn default() -> Self {
        Self {
            verify: true,
            ca_file: None,
            client_cert_file: None,
            client_key_file: None,
            versions: vec![TlsVersion::V1_2, TlsVersion::V1_3],
            ciphers: Vec::new(),
            groups: Self::DEFAULT_GROUPS.map(str::to_owned).to_vec(),
            resumption: false,
            alpn: vec!["http/1.1".to_owned()],
            server_name: None,
        }
    }
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    #[serde(rename = "1.2")]
    V1_2,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "1.3")]
    V1_3,
}

impl TlsVersion {
    /// The version that is typed so.
    pub fn of_name(typed: &str) -> Option<Self> {
        [Self::V1_2, Self::V1_3].into_iter().find(|version| version.name() == typed)
    }

    /// The version as it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
        }
    }
}

impl Plan {
    /// Ops that can be under way on a target at a time: one for each stream of each connection; at least 1.
    pub fn lanes(&self) -> u32 {
        let streams = match &self.workload {
            WorkloadPlan::Plain(kind) => kind.schema.depth.and_then(|param| kind.get(param).parse().ok()).unwrap_or(1),
            WorkloadPlan::Http(http) => http.streams(),
        };
        self.load.connections.saturating_mul(streams).max(1)
    }

    /// Ops that are under way on a target at a time in a closed loop without pauses: one for each lane, unless lanes take turns.
    pub fn ops_at_a_time(&self) -> u32 {
        if self.load.shape.one_at_a_time { 1 } else { self.lanes() }
    }

    /// What its kind of work declares of itself.
    pub fn schema(&self) -> &'static Schema {
        self.workload.schema()
    }

    /// Whether ops are parts of streams that run ahead of them. Nobody asks for a part, so nobody waits for it: the time of such an
    /// op is the pace of its stream, and it has no response time. Where parts are due by a schedule or after a pause, or are
    /// counted, each is sent for itself and answered, and its time is one.
    pub fn is_streamed(&self) -> bool {
        let load = &self.load;
        let runs_ahead = load.kind == LoopKind::Closed { think_ns: 0 }
            && load.shape.stages.is_empty()
            && matches!(load.bound, Bound::Duration(_));
        let is_set = |of: (&'static Param, &str)| self.workload.setting(of.0).as_ref() == of.1;
        let is_part =
            |of: Streamed| of.values.contains(&self.workload.setting(of.by).as_ref()) && !of.unless.is_some_and(is_set);
        runs_ahead && self.schema().streamed.is_some_and(is_part)
    }

    /// The shortest round trip that these facts tell of the plan's streams; `None` where its ops are no parts of streams, or none was
    /// seen.
    pub fn stream_trip_ns(&self, facts: &Facts) -> Option<Nanos> {
        let streamed = self.schema().streamed.filter(|_| self.is_streamed())?;
        facts.count(streamed.round_trip_us).map(|us| us.saturating_mul(MICROSECOND_NS))
    }

    /// What a lane is called.
    pub fn lane_noun(&self) -> &'static str {
        let schema = self.schema();
        if self.lanes() > self.load.connections.max(1) { schema.shared_lane.one } else { schema.lane.one }
    }

    /// How many ops can be under way at a time on a target, with what they run on: `20 connections`.
    pub fn all_lanes(&self) -> String {
        let (schema, lanes) = (self.schema(), self.lanes());
        let noun = if lanes > self.load.connections.max(1) { &schema.shared_lane } else { &schema.lane };
        format!("{lanes} {}", if lanes == 1 { noun.one } else { noun.many })
    }

    /// What stands in place of a secret that is neither shown nor kept.
    pub const REDACTED: &'static str = "[not kept]";
    /// What stands in place of a secret in a text that is kept and leaves it out where it is shown to others.
    pub const LEFT_OUT: &'static str = "[left out]";

    /// The plan as it may be archived: values of header fields that carry secrets are left out, and those of commands that start
    /// targets anew. More is left out of what is shown: see [`Plan::shown`].
    pub fn redacted(&self) -> Self {
        let mut plan = self.clone();
        plan.compare.restart.iter_mut().for_each(RestartPlan::redact);
        if let WorkloadPlan::Http(http) = &mut plan.workload {
            for (name, value) in &mut http.headers {
                if crate::is_secret_field(name, value) {
                    *value = Self::REDACTED.to_owned();
                }
            }
        }
        plan
    }

    /// The targets whose commands for starting them anew were not kept whole, which a repetition has to ask for.
    pub fn missing_commands(&self) -> Vec<&str> {
        self.compare.restart.iter().flat_map(RestartPlan::incomplete).collect()
    }

    /// The header fields whose values were not kept, which a repetition has to ask for.
    pub fn missing_secrets(&self) -> Vec<&str> {
        match &self.workload {
            WorkloadPlan::Http(http) => http
                .headers
                .iter()
                .filter(|(_, value)| value == Self::REDACTED)
                .map(|(name, _)| name.as_str())
                .collect(),
            WorkloadPlan::Plain(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_kept() {
        let plan = Plan {
            targets: vec![],
            workload: WorkloadPlan::Http(Box::new(HttpPlan {
                headers: vec![
                    ("Authorization".into(), "Bearer abc".into()),
                    ("X-Api-Key".into(), "abc".into()),
                    ("Accept".into(), "*/*".into()),
                ],
                ..HttpPlan::default()
            })),
            load: LoadPlan::default(),
            compare: ComparePlan::default(),
            factors: vec![],
        };
        let kept = serde_json::to_string(&plan.redacted()).unwrap();
        assert!(!kept.contains("abc"), "{kept}");
        assert_eq!(plan.redacted().missing_secrets(), ["Authorization", "X-Api-Key"]);
        let again: Plan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        assert_eq!(again, plan);
    }
}
