//! Network work as a kind: which targets it has, and how one is made ready.

use crate::address::{Address, SCHEME};
use crate::client::connection::unconnected;
use crate::client::{Factory, Telling};
use crate::link::Link;
use crate::protocol::{CONGESTION_BYTES, HELLO_BYTES, Hello, MOST_BLOCK, Op, Welcome, foreign};
use crate::schema::{
    BITRATE, BLOCK, CONGESTION, CONGESTION_CONTROL, DATAGRAM, LINE, LINE_RATE, MSS, MTU, NODELAY, OP, PEER,
    PEER_CONGESTION, RESPONSE, SCHEMA, SEGMENT, WINDOW,
};
use crate::socket::{self, Options};
use crate::wire::Headers;
use duel_load::{Network, PlainKind, Prepared, TcpInfo, WorkloadError, monotonic_ns};
use duel_model::{Facts, KindPlan, Nanos, Param, Plan, Schema, sanitize_line};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The kind.
#[derive(Debug, Clone, Copy)]
pub struct Net;

/// A block of bulk, unless it is told: what iperf3 writes at a time.
const USUAL_BLOCK: u32 = 128 << 10;
/// Shortest segment that TCP takes on Linux.
const LEAST_SEGMENT: u16 = 88;

impl PlainKind for Net {
    fn schema(&self) -> &'static Schema {
        &SCHEMA
    }

    fn claims(&self, address: &str) -> bool {
        address.starts_with(SCHEME)
    }

    fn server_port(&self, address: &str) -> Option<u16> {
        // In another namespace the same port of the same address may be somebody else's.
        Address::parse(address).ok().filter(|address| address.netns.is_none()).map(|address| address.port)
    }

    fn check(&self, kind: &KindPlan, address: &str) -> Result<(), WorkloadError> {
        Address::parse(address)?;
        let (hello, options) = asked(kind)?;
        if matches!(hello.op, Op::Bulk | Op::BulkReverse) && hello.block < crate::protocol::LEAST_BLOCK {
            return Err(WorkloadError(format!(
                "--block {}: a block has {} to {MOST_BLOCK} bytes",
                hello.block,
                crate::protocol::LEAST_BLOCK
            )));
        }
        if options.segment > 0 && options.segment < LEAST_SEGMENT {
            return Err(WorkloadError(format!(
                "--mss {}: TCP segments have at least {LEAST_SEGMENT} bytes",
                options.segment
            )));
        }
        Ok(())
    }

    fn prepare(&self, plan: &Plan, kind: &KindPlan, address: &str) -> Result<Prepared, WorkloadError> {
        self.check(kind, address)?;
        let address = Address::parse(address)?;
        let (mut hello, options) = asked(kind)?;
        // Blocks that are due one by one, or counted, are handed over one by one.
        let runs_ahead = plan.is_streamed();
        if hello.op == Op::Udp && !runs_ahead {
            return Err(WorkloadError(
                "datagrams are sent at a rate of bits for a time: use --bitrate and -d, not --rate, --think, --stages, --ahead=off or -n".into(),
            ));
        }
        hello.each_at_once = !runs_ahead;
        let netns = address.netns.as_deref().map(Network::named).transpose()?;
        let timeout_ns = plan.load.connect_timeout_ns.min(plan.load.op_timeout_ns);
        let found = Network::within(netns.as_ref(), || {
            let (to, stream) = address.connect(|to| connect(to, &options, timeout_ns))?;
            contact(to, stream, &hello, timeout_ns, netns.is_none())
        })?;
        let Found { to, local, link, mut facts } = found;
        facts.note("path.namespace", address.netns.as_deref().map(sanitize_line));
        let told = number(kind, &LINE);
        let mbps = if told > 0.0 { Some(told) } else { link.as_ref().and_then(|link| link.mbps) };
        facts.note(LINE_RATE, mbps.map(|mbps| mbps.round() as u64).filter(|&mbps| mbps > 0));
        let telling = Telling::new(&hello, Some(local), link.as_ref(), facts.clone());
        let factory = Factory { to, netns, hello, options, runs_ahead, mbps: number(kind, &BITRATE), telling };
        Ok(Prepared { facts, opens: Arc::new(factory) })
    }
}

/// What the settings ask for.
fn asked(kind: &KindPlan) -> Result<(Hello, Options), WorkloadError> {
    let op = Op::of_name(kind.get(&OP)).ok_or_else(|| WorkloadError("no such op".into()))?;
    let whole = |param| number(kind, param) as u32;
    let block = match (op, whole(&BLOCK)) {
        (Op::Udp, _) => whole(&DATAGRAM),
        (Op::Bulk | Op::BulkReverse, 0) => USUAL_BLOCK,
        (_, 0) => 1,
        (_, block) => block,
    };
    let congestion = kind.get(&CONGESTION_CONTROL);
    let options = Options {
        window: whole(&WINDOW),
        segment: whole(&MSS) as u16,
        delays: kind.get(&NODELAY) == "off",
        congestion: if congestion == CONGESTION_CONTROL.default { String::new() } else { congestion.to_owned() },
    };
    let mut name = [0; CONGESTION_BYTES];
    let length = options.congestion.len().min(name.len());
    name[..length].copy_from_slice(&options.congestion.as_bytes()[..length]);
    let is_udp = op == Op::Udp;
    let hello = Hello {
        op,
        each_at_once: false,
        block,
        response: if is_udp { 0 } else { whole(&RESPONSE) },
        window: if is_udp { 0 } else { options.window },
        delays: options.delays,
        // Stray datagrams of an earlier run are not this one's.
        token: if is_udp { monotonic_ns() << 12 ^ u64::from(std::process::id()) } else { 0 },
        congestion: name,
    };
    Ok((hello, options))
}

fn number(kind: &KindPlan, param: &Param) -> f64 {
    kind.get(param).parse().unwrap_or(0.0)
}

/// What the first contact found.
struct Found {
    to: SocketAddr,
    local: SocketAddr,
    link: Option<Link>,
    facts: Facts,
}

fn connect(to: SocketAddr, options: &Options, timeout_ns: Nanos) -> Result<TcpStream, WorkloadError> {
    let refused = |error: &io::Error| WorkloadError(unconnected(&to, error).text);
    let socket = socket::tcp(&to, options)
        .map_err(|error| refused(&error))?
        .map_err(|refused| WorkloadError(option_refused(&refused, options)))?;
    socket.connect_timeout(&to.into(), Duration::from_nanos(timeout_ns)).map_err(|error| refused(&error))?;
    Ok(socket.into())
}

/// Asks the server once for what is to be done, so that what cannot work is said before any load.
fn contact(
    to: SocketAddr,
    mut stream: TcpStream,
    hello: &Hello,
    timeout_ns: Nanos,
    is_here: bool,
) -> Result<Found, WorkloadError> {
    let until = Instant::now() + Duration::from_nanos(timeout_ns);
    let refused = |error: &io::Error| WorkloadError(unconnected(&to, error).text);
    let local = stream.local_addr().map_err(|error| refused(&error))?;
    let welcome = greet(&mut stream, to, hello, until)?;
    let mut facts = Facts::default();
    facts.note(PEER, Some(to.to_string()));
    facts.note("path.local", Some(local.ip().to_canonical().to_string()));
    let link = Link::of(local.ip().to_canonical(), is_here);
    facts.note("path.interface", link.as_ref().map(|link| link.name.clone()));
    if let Ok(name) = socket2::SockRef::from(&stream).tcp_congestion() {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        facts.note(CONGESTION, Some(sanitize_line(&String::from_utf8_lossy(&name[..end]))));
    }
    facts.note(PEER_CONGESTION, welcome.congestion_name().map(sanitize_line));
    if let Some(info) = TcpInfo::of(&stream) {
        facts.note(MTU, Some(u64::from(info.mtu)).filter(|&mtu| mtu > 0));
        facts.note(SEGMENT, Some(u64::from(info.segment)).filter(|&bytes| bytes > 0));
        facts.note("tcp.timestamps", Some(info.has_timestamps));
        let headers = Headers::on(local.ip().to_canonical(), link.as_ref());
        let frame = headers.map(|headers| headers.segment(u64::from(info.segment), info.has_timestamps));
        facts.note("link.frame_bytes", frame);
    }
    Ok(Found { to, local, link, facts })
}

fn option_refused(refused: &socket::Refused, options: &Options) -> String {
    match refused.1.kind() {
        io::ErrorKind::NotFound => format!(
            "this machine has no congestion control '{}'; /proc/sys/net/ipv4/tcp_available_congestion_control lists those that it has",
            sanitize_line(&options.congestion)
        ),
        _ => refused.to_string(),
    }
}

/// Says hello and hears the answer.
pub(crate) fn greet(
    stream: &mut TcpStream,
    to: SocketAddr,
    hello: &Hello,
    until: Instant,
) -> Result<Welcome, WorkloadError> {
    let fail = |what: String| WorkloadError(format!("the program at {to} {what}"));
    stream.write_all(&hello.bytes()).map_err(|error| fail(format!("closed the connection: {error}")))?;
    let (mut bytes, mut have) = ([0; HELLO_BYTES], 0);
    while have < HELLO_BYTES {
        let left = until.saturating_duration_since(Instant::now());
        let heard = match left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => stream.set_read_timeout(Some(left)).and_then(|()| stream.read(&mut bytes[have..])),
        };
        match heard {
            Ok(0) | Err(_) if have > 0 => return Err(fail(foreign(&bytes[..have]))),
            Ok(0) => return Err(fail("closed the connection without a word; is it duel net serve?".into())),
            Ok(n) => have += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Err(fail("took the connection and says nothing; is it duel net serve?".into()));
            }
            Err(_) => return Err(fail("reset the connection; is it duel net serve?".into())),
        }
    }
    let welcome = Welcome::read(&bytes).map_err(fail)?;
    match welcome.answer {
        Ok(()) => Ok(welcome),
        Err(refusal) => Err(WorkloadError(format!("the server at {to} refuses: {}", refusal.words(welcome.version)))),
    }
}
