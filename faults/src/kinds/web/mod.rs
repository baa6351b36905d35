//! Web servers: loaded over HTTP, by one client that is equally far from both.

mod tools;

use super::{Kind, Pair};
use crate::arena::Arena;
use crate::case::Setup;
use crate::servers::{PATHS, Place, Up};
use crate::twin::{Content, Server, Tls, Twin, one_of_files};
use crate::world::{Launch, World};
use std::path::Path;
pub(crate) use tools::{H2load, Requests, ToolLoad};

/// The kind.
#[derive(Clone, Copy)]
pub(crate) struct Web;

/// The load that duel is told to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) connections: u32,
    pub(crate) connect_anew: bool,
    pub(crate) resumption: bool,
    /// Header fields that the user types.
    pub(crate) headers: &'static [&'static str],
    /// Requests at a time on each connection of HTTP/2.
    pub(crate) streams: u32,
    /// The client's own window of HTTP/2, where it is not duel's usual one.
    pub(crate) h2_window_bytes: Option<u32>,
    /// Bytes that are sent with each request.
    pub(crate) body_bytes: Option<u32>,
    /// Requests per second that are offered, where they are not sent one after the other.
    pub(crate) per_s: Option<u32>,
    /// Several files are asked for as they are listed, and not at random.
    pub(crate) in_turn: bool,
    /// As if the servers' machines were far away: nobody reads them, and `duel net serve` answers on both.
    pub(crate) is_remote: bool,
}

impl Kind for Web {
    const NAME: &'static str = "web";
    type Twin = Twin;
    type Load = Load;
    type Arena = Arena;

    fn words_of_setup(twin: &Twin, load: &Load) -> Vec<String> {
        let what = match &twin.content {
            Content::Text { bytes } => size(*bytes),
            Content::Files { count, bytes, .. } => format!("{count}x{}", size(*bytes)),
            Content::Path(path) => path.trim_start_matches('/').replace('/', "-"),
        };
        let connections = match (load.connect_anew, load.resumption) {
            (false, _) => "kept",
            (true, false) => "anew",
            (true, true) => "resumed",
        };
        [
            twin.server.name().to_owned(),
            twin.scheme().to_owned(),
            what,
            format!("c{}", load.connections),
            connections.to_owned(),
        ]
        .into_iter()
        .chain(twin.http.http2.then(|| "h2".to_owned()))
        .chain((load.streams > 1).then(|| format!("s{}", load.streams)))
        .chain(load.h2_window_bytes.map(|bytes| format!("win{}", size(bytes.into()))))
        .chain(load.body_bytes.map(|bytes| format!("post{}", size(bytes.into()))))
        .chain(load.per_s.map(|rate| format!("{rate}ps")))
        .chain(load.in_turn.then(|| "listed".to_owned()))
        .chain(load.is_remote.then(|| "remote".to_owned()))
        .collect()
    }

    fn start(world: &World, pair: &Pair<Web>, faulty: Place, duel: &Path) -> anyhow::Result<Arena> {
        let mut arena = Arena::start(world, [&pair.healthy, &pair.faulty], faulty)?;
        if pair.load.is_remote {
            arena.healthy.serve_net(duel)?;
            arena.faulty.serve_net(duel)?;
        }
        Ok(arena)
    }

    fn ensure_both_work(arena: &Arena) -> anyhow::Result<()> {
        let serves = |up| arena.client.curl(up, &Requests::kept_alive(2));
        serves(&arena.healthy)?;
        serves(&arena.faulty)?;
        Ok(())
    }

    fn duel(arena: &Arena, load: &Load, duel: &Path, local: bool) -> Launch {
        let at_random = match arena.healthy.twin().content {
            Content::Files { count, .. } if !load.in_turn => Some(one_of_files(&format!("{{rand:0..{}}}", count - 1))),
            Content::Files { .. } | Content::Text { .. } | Content::Path(_) => None,
        };
        let address = |up: &&Up| {
            let url = match &at_random {
                Some(path) => up.url_of(path),
                // Listed paths go behind it.
                None if load.in_turn => up.url_of(""),
                None => up.url(),
            };
            format!("{}={url}", up.place().target_name())
        };
        let mut words: Vec<String> = arena.in_order().iter().map(address).collect();
        if at_random.is_some() {
            words.push("--template".to_owned());
        }
        if load.in_turn {
            words.extend(["--urls".to_owned(), arena.healthy.root().join(PATHS).display().to_string()]);
        }
        words.extend(["--insecure", "-t", "1", "-c", &load.connections.to_string()].map(str::to_owned));
        if load.connect_anew {
            words.push("--no-keepalive".to_owned());
        }
        if arena.healthy.twin().http.http2 {
            words.extend(["--http2", "--streams", &load.streams.to_string()].map(str::to_owned));
        }
        if let Some(bytes) = load.h2_window_bytes {
            words.extend(["--h2-window".to_owned(), bytes.to_string()]);
        }
        if let Some(bytes) = load.body_bytes {
            words.extend(["--method", "POST", "--body-size", &bytes.to_string()].map(str::to_owned));
        }
        if let Some(per_s) = load.per_s {
            words.extend(["--rate".to_owned(), per_s.to_string()]);
        }
        if load.resumption {
            words.push("--resumption".to_owned());
        }
        words.extend(load.headers.iter().flat_map(|header| ["-H".to_owned(), (*header).to_owned()]));
        if load.is_remote {
            let of = |up: &Up| format!("{}={}", up.place().target_name(), up.net_server_address());
            words.extend(arena.in_order().into_iter().flat_map(|up| ["--net-server".to_owned(), of(up)]));
        } else if local {
            words.extend(arena.machines());
        }
        arena.client.launch(&duel.to_string_lossy()).args(words)
    }
}

impl Setup {
    /// 612 bytes over HTTP and 16 kept connections.
    pub(crate) fn of(server: Server) -> Setup {
        let load = Load {
            connections: 16,
            connect_anew: false,
            resumption: false,
            headers: &[],
            streams: 1,
            h2_window_bytes: None,
            body_bytes: None,
            per_s: None,
            in_turn: false,
            is_remote: false,
        };
        Setup::new(Twin::healthy(server), load)
    }

    pub(crate) fn https(mut self) -> Setup {
        self.twin.tls = Some(Tls::default());
        self
    }

    pub(crate) fn bytes(mut self, bytes: u64) -> Setup {
        self.twin.content = Content::Text { bytes };
        self
    }

    /// So many files of so many bytes, which are in memory.
    pub(crate) fn files(mut self, count: u32, bytes: u64) -> Setup {
        self.twin.content = Content::Files { count, bytes, in_memory: true };
        self
    }

    /// They are asked for as they are listed.
    pub(crate) fn in_turn(mut self) -> Setup {
        self.load.in_turn = true;
        self
    }

    /// Nobody reads the servers' machines, and `duel net serve` answers on both.
    pub(crate) fn remote(mut self) -> Setup {
        self.load.is_remote = true;
        self
    }

    pub(crate) fn path(mut self, path: &str) -> Setup {
        self.twin.content = Content::Path(path.to_owned());
        self
    }

    pub(crate) fn connections(mut self, connections: u32) -> Setup {
        self.load.connections = connections;
        self
    }

    /// Over HTTP/2, with so many requests at a time on each connection.
    pub(crate) fn http2(mut self, streams: u32) -> Setup {
        self.twin.http.http2 = true;
        self.load.streams = streams;
        self
    }

    /// So many bytes are sent with each request.
    pub(crate) fn sending(mut self, bytes: u32) -> Setup {
        self.load.body_bytes = Some(bytes);
        self
    }

    /// So many requests are offered per second, and connections rest in between.
    pub(crate) fn per_second(mut self, requests: u32) -> Setup {
        self.load.per_s = Some(requests);
        self
    }

    /// A new connection for each request.
    pub(crate) fn connecting(mut self) -> Setup {
        self.load.connect_anew = true;
        self
    }

    /// New connections resume TLS sessions.
    pub(crate) fn resuming(mut self) -> Setup {
        self.load.resumption = true;
        self.connecting()
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes}B"),
        1000..1_000_000 => format!("{}k", bytes / 1000),
        _ => format!("{}M", bytes / 1_000_000),
    }
}
