//! What a server is to be, with everything around it, before it exists. A fault is a change of this, and of nothing else.

pub(crate) use crate::handler::Handler;
use crate::relay::LinkPlan;
use crate::world::{Limits, Throttle, VolumePlan};

/// A server to be. Its twin is a clone, to which the fault is done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Twin {
    pub(crate) server: Server,
    pub(crate) tls: Option<Tls>,
    pub(crate) content: Content,
    pub(crate) http: Http,
    pub(crate) process: Process,
    pub(crate) network: Network,
    /// What stands between the client and the server, in the server's namespace.
    pub(crate) front: Option<Front>,
    pub(crate) address: Address,
}

/// The path of one of several files.
pub(crate) fn one_of_files(number: &str) -> String {
    format!("/f-{number}.html")
}

/// Which program serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    Nginx,
    Apache,
    /// HAProxy, which does TLS, before an nginx on the loopback interface of its namespace.
    HaproxyNginx,
    /// HAProxy before the ruler, for answers that take a time of their own.
    HaproxyRuler,
    /// The project's own server with known truth.
    Ruler,
    /// The bench's own server: see [`crate::own`].
    Own,
    /// A file from memory by Node.js.
    Node,
    Lighttpd,
    /// nginx, which does TLS, before PHP-FPM, whose script answers with a file.
    NginxPhp,
    /// A file from memory by the server that comes with Java, with a fixed pool of threads.
    Java,
}

impl Server {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Server::Nginx => "nginx",
            Server::Apache => "apache",
            Server::HaproxyNginx => "haproxy+nginx",
            Server::HaproxyRuler => "haproxy+ruler",
            Server::Ruler => "ruler",
            Server::Own => "own",
            Server::Node => "node",
            Server::Lighttpd => "lighttpd",
            Server::NginxPhp => "nginx+php",
            Server::Java => "java",
        }
    }

    /// Whether it speaks HTTP/2 where it is told to.
    pub(crate) fn knows_http2(self) -> bool {
        match self {
            Server::Nginx
            | Server::NginxPhp
            | Server::Apache
            | Server::HaproxyNginx
            | Server::HaproxyRuler
            | Server::Lighttpd => true,
            Server::Ruler | Server::Own | Server::Node | Server::Java => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tls {
    pub(crate) key: Key,
    pub(crate) versions: Versions,
    /// Suites of TLS 1.3 in OpenSSL's names; `None` leaves the library's.
    pub(crate) suites13: Option<&'static str>,
    /// Suites of TLS 1.2 in OpenSSL's names.
    pub(crate) suites12: Option<&'static str>,
    /// Key exchange groups in OpenSSL's names.
    pub(crate) groups: Option<&'static str>,
    /// Whether sessions can be resumed.
    pub(crate) resumption: bool,
    /// How long the certificate chain is made by adding certificates that nobody needs.
    pub(crate) chain_bytes: usize,
    /// Largest TLS record; `None` leaves the server's.
    pub(crate) record_bytes: Option<u32>,
}

impl Default for Tls {
    fn default() -> Tls {
        Tls {
            key: Key::P256,
            versions: Versions::Both,
            suites13: None,
            suites12: None,
            groups: None,
            resumption: true,
            chain_bytes: 0,
            record_bytes: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    P256,
    Rsa2048,
    Rsa3072,
    Rsa4096,
}

/// Names of cipher suites.
pub(crate) struct Ciphers;

impl Ciphers {
    pub(crate) const CHACHA20: &'static str = "TLS_CHACHA20_POLY1305_SHA256";
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Versions {
    Both,
    Tls12,
}

/// What is served.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    /// A file of words that compress about as well as prose.
    Text { bytes: u64 },
    /// So many such files, of which each request asks for one (nginx, Apache, lighttpd); in memory when the server is ready, or not.
    Files { count: u32, bytes: u64, in_memory: bool },
    /// A path of the ruler or of the bench's own server.
    Path(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Http {
    /// Processes that serve (nginx, Apache, lighttpd).
    pub(crate) workers: u32,
    /// Requests served at a time, the others wait (HAProxy's backend, the bench's own server, PHP-FPM's processes, Java's threads).
    pub(crate) at_a_time: Option<u32>,
    /// Whether nginx asks PHP-FPM over a Unix socket.
    pub(crate) asks_by_path: bool,
    pub(crate) keepalive: bool,
    pub(crate) backlog: u32,
    pub(crate) gzip_level: Option<u8>,
    pub(crate) sendfile: bool,
    /// Size of the buffers through which a file is copied where `sendfile` is off.
    pub(crate) copy_bytes: Option<u32>,
    /// Bytes per second and connection.
    pub(crate) limit_rate: Option<u64>,
    /// Requests per second that one client address is let do, and others wait (nginx).
    pub(crate) per_address_per_s: Option<u32>,
    /// Requests of the client's usual address that are served at a time, of others all (HAProxy's backend).
    pub(crate) usual_client_at_a_time: Option<u32>,
    /// Whether a front's cache takes in each answer under a key that never comes again (nginx).
    pub(crate) caches_in_vain: bool,
    /// Bytes of header fields that nobody needs.
    pub(crate) padding_bytes: u32,
    pub(crate) log: Log,
    /// What the file that is served lies on, from where it is read past the page cache for each request (nginx); `None`: where all else
    /// lies.
    pub(crate) disk: Option<VolumePlan>,
    /// How much the server's control group may do on that.
    pub(crate) disk_throttle: Throttle,
    /// HTTP/2 is offered beside HTTP/1.1 (nginx, Apache, HAProxy, lighttpd; over TLS), and duel and the tools speak it.
    pub(crate) http2: bool,
    /// Bytes of a frame of HTTP/2, where they are not nginx's usual ones.
    pub(crate) frame_bytes: Option<u32>,
    /// Requests that are taken at a time on a connection of HTTP/2, where they are not the usual ones (nginx, Apache, HAProxy).
    pub(crate) most_streams: Option<u32>,
    /// Bytes of a request that are taken ahead over HTTP/2, where they are not the usual ones (HAProxy).
    pub(crate) stream_window_bytes: Option<u32>,
    /// `TCP_NODELAY`, where the server lets one choose.
    pub(crate) nodelay: bool,
    /// One lock for all connections (the bench's own server).
    pub(crate) shared_lock: bool,
    /// What is done for each request besides serving it (the bench's own server, Node, PHP, Java).
    pub(crate) handler: Handler,
}

impl Default for Http {
    fn default() -> Http {
        Http {
            workers: 1,
            at_a_time: None,
            asks_by_path: false,
            keepalive: true,
            backlog: 4096,
            gzip_level: None,
            sendfile: true,
            copy_bytes: None,
            limit_rate: None,
            per_address_per_s: None,
            usual_client_at_a_time: None,
            caches_in_vain: false,
            padding_bytes: 0,
            log: Log::Off,
            disk: None,
            disk_throttle: Throttle::default(),
            http2: false,
            frame_bytes: None,
            most_streams: None,
            stream_window_bytes: None,
            nodelay: true,
            shared_lock: false,
            handler: Handler::Plain,
        }
    }
}

/// The access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    Off,
    /// To `/dev/null`.
    Nowhere,
    /// Unbuffered, on a file system of its own, mounted `sync` or not.
    OnDisk {
        synchronous: bool,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Process {
    pub(crate) env: Vec<(String, String)>,
    /// CPUs by affinity, which no control group can hide.
    pub(crate) cpus: &'static str,
    pub(crate) limits: Limits,
    /// Its nice value.
    pub(crate) nice: i8,
    /// So many long filters of system calls, each of which lets everything pass.
    pub(crate) filters: u32,
    pub(crate) companion: Option<Companion>,
}

impl Default for Process {
    /// On CPU 0, and nothing is special.
    fn default() -> Process {
        Process { env: Vec::new(), cpus: "0", limits: Limits::default(), nice: 0, filters: 0, companion: None }
    }
}

/// Who else is at the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Companion {
    /// So many processes that never rest, in the server's control group.
    Spinners(u32),
    /// `strace -f` on all of the server's processes.
    Tracer,
    /// A process that sleeps.
    Sleeper,
    /// Stops all of the server's processes for `stopped_ms`, then lets them run for `running_ms`, again and again.
    Pauser { stopped_ms: u32, running_ms: u32 },
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Network {
    pub(crate) path: Path,
    /// Of the server's interface.
    pub(crate) mtu: Option<u32>,
    /// One packet per segment: the server's interface takes no larger ones.
    pub(crate) no_offload: bool,
    /// Of the server's route to the client, in segments.
    pub(crate) initcwnd: Option<u32>,
    pub(crate) sysctls: Vec<(&'static str, String)>,
    /// nftables rules in the server's namespace.
    pub(crate) firewall: Option<String>,
    /// Packets that get lost on the way.
    pub(crate) losses: Vec<Loss>,
    /// A token bucket filter on the server's interface, in bits per second.
    pub(crate) shaper_bit_per_s: Option<u64>,
    /// Addresses that the client has besides its usual one.
    pub(crate) further_clients: u8,
}

/// Packets that get lost at random, before their receiver hears of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) way: Way,
    /// What they carry: a fault of datagrams is none of the connections beside them.
    pub(crate) packets: Packets,
    pub(crate) per_mille: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToServer,
    ToClient,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packets {
    Tcp,
    Udp,
}

/// How packets go between client and server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Path {
    /// A veth pair: tens of microseconds.
    #[default]
    Veth,
    /// Two TUN interfaces with our packet relay between them.
    Relay { to_server: LinkPlan, to_client: LinkPlan },
}

impl Path {
    /// A relay that only delays, by half of the round trip each way.
    pub(crate) fn round_trip_us(rtt_us: u64) -> Path {
        let link = LinkPlan { delay_us: rtt_us / 2, ..LinkPlan::default() };
        Path::Relay { to_server: link, to_client: link }
    }
}

/// A proxy between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// HAProxy, speaking what the server speaks without it.
    Haproxy { keeps: bool },
    /// A second nginx. Like HAProxy, it keeps its connections to the server, or makes one for each request.
    Nginx { keeps: bool },
    /// Our stream relay: passes bytes on, knows nothing of HTTP.
    Stream { rate_per_connection: Option<u64>, rate_total: Option<u64>, delay_us: u64 },
    /// HAProxy before so many servers, which it takes in turn. They are one and the same; to the last of them a relay of our own passes
    /// bytes on, at once or as slowly as is said.
    Balancer { by: Balanced, servers: u32, last: LastServer },
}

/// What a balancer hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balanced {
    Connections,
    Requests,
}

/// How slow the last server of a balancer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastServer {
    /// How much longer each request takes there.
    pub(crate) longer_us: u64,
    /// Bytes per second and connection.
    pub(crate) rate: Option<u64>,
}

/// How the client finds the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Literal,
    /// By name; the client's resolver answers after `delay_ms`, with an IPv6 address first where `ipv6` is set.
    Name {
        delay_ms: u64,
        ipv6: bool,
    },
}

impl Twin {
    /// One worker on CPU 0, all as it should be.
    pub(crate) fn healthy(server: Server) -> Twin {
        Twin {
            server,
            tls: None,
            content: Content::Text { bytes: 612 },
            http: Http::default(),
            process: Process::default(),
            network: Network::default(),
            front: None,
            address: Address::Literal,
        }
    }

    /// TLS's parameters, where the twin speaks it.
    ///
    /// # Panics
    ///
    /// Where it does not: a fault of TLS was put on a set-up without.
    #[expect(clippy::expect_used, reason = "a mistake in the catalogue of cases, which a test goes through")]
    pub(crate) fn tls_mut(&mut self) -> &mut Tls {
        self.tls.as_mut().expect("a fault of TLS needs a set-up with TLS")
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// The port that the client connects to.
    pub(crate) fn port(&self) -> u16 {
        if self.tls.is_some() { 443 } else { 80 }
    }

    /// Bytes of a body, where the twin serves a file; else 0.
    pub(crate) fn path_bytes(&self) -> u64 {
        match self.content {
            Content::Text { bytes } | Content::Files { bytes, .. } => bytes,
            Content::Path(_) => 0,
        }
    }

    /// The path that is asked for.
    pub(crate) fn path(&self) -> String {
        match &self.content {
            Content::Text { bytes } if matches!(self.server, Server::Ruler | Server::HaproxyRuler) => {
                format!("/size/{bytes}")
            }
            Content::Text { bytes } if self.server == Server::Own => format!("/page/{bytes}"),
            Content::Text { .. } => "/f.html".to_owned(),
            Content::Files { .. } => one_of_files("0"),
            Content::Path(path) => path.clone(),
        }
    }
}
