use super::*;
use crate::address::Address;
use crate::protocol::{DATAGRAM_HEADER, LEAST_BLOCK, MOST_BLOCK, Order, Report};
use crate::watch::{Watch, WatchPlan};
use std::net::UdpSocket;

/// A server on loopback, which ends with it.
struct Running {
    at: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Running {
    fn new(limits: Limits) -> Self {
        Self::with(Server::listen("127.0.0.1:0".parse().unwrap(), limits).unwrap())
    }

    fn with(server: Server) -> Self {
        let (at, stop) = (server.address().unwrap(), Arc::new(AtomicBool::new(false)));
        let is_over = Arc::clone(&stop);
        std::thread::spawn(move || server.serve(&is_over).unwrap());
        Self { at, stop }
    }

    /// A connection for this, and what the server said to it.
    fn ask(&self, hello: &Hello) -> (TcpStream, Welcome) {
        let mut stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(&hello.bytes()).unwrap();
        let mut bytes = [0; HELLO_BYTES];
        stream.read_exact(&mut bytes).unwrap();
        (stream, Welcome::read(&bytes).unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn hello(op: Op, block: u32) -> Hello {
    let response = if op == Op::Rr { 1 } else { 0 };
    let token = if op.has_datagrams() { 77 } else { 0 };
    Hello { op, each_at_once: false, block, response, window: 0, delays: false, token, congestion: [0; 15] }
}

fn datagram(number: u64) -> [u8; DATAGRAM_HEADER] {
    let mut datagram = [0; DATAGRAM_HEADER];
    datagram[..8].copy_from_slice(&77_u64.to_be_bytes());
    datagram[8..16].copy_from_slice(&number.to_be_bytes());
    datagram
}

/// All of 127.0.0.0/8 is this machine's there.
#[cfg(target_os = "linux")]
#[test]
fn datagrams_of_another_address_than_the_connections_are_neither_sent_back_nor_counted() {
    let server = Running::new(Limits::default());
    let socket = |from: &str, port| {
        let socket = UdpSocket::bind((from, 0)).unwrap();
        socket.connect(SocketAddr::new(server.at.ip(), port)).unwrap();
        socket
    };
    let (_watch, welcome) = server.ask(&hello(Op::Watch, DATAGRAM_HEADER as u32));
    let [ours, anothers] = ["127.0.0.1", "127.0.0.2"].map(|from| socket(from, welcome.udp_port));
    anothers.send(&datagram(0)).unwrap();
    // Too long, and then the same number as it should be.
    ours.send(&[&datagram(1)[..], b"more"].concat()).unwrap();
    ours.send(&datagram(2)).unwrap();
    ours.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut came = [0; 100];
    assert_eq!(ours.recv(&mut came).unwrap(), DATAGRAM_HEADER);
    assert_eq!(came[..DATAGRAM_HEADER], datagram(2));
    // The other one would have been answered before.
    anothers.set_nonblocking(true).unwrap();
    assert_eq!(anothers.recv(&mut came).unwrap_err().kind(), io::ErrorKind::WouldBlock);

    let (mut counted, welcome) = server.ask(&hello(Op::Udp, 100));
    let [ours, anothers] = ["127.0.0.1", "127.0.0.2"].map(|from| socket(from, welcome.udp_port));
    anothers.send(&datagram(0)).unwrap();
    ours.send(&datagram(1)).unwrap();
    let mut report = [0; crate::protocol::REPORT_BYTES];
    counted.read_exact(&mut report).unwrap();
    let report = Report::read(&report).unwrap();
    assert_eq!((report.came, report.next), (1, 2));
}

/// No connection may last longer than this, and none ends for being silent.
fn short() -> Running {
    let lifetime = Duration::from_millis(100);
    Running::new(Limits { lifetime, idle: Duration::from_secs(600), ..Limits::default() })
}

/// Far longer than a connection may last, and far shorter than what is asked for takes.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn what_is_given_until_further_notice_ends_when_the_connections_time_is_over() {
    for block in [LEAST_BLOCK, MOST_BLOCK] {
        let server = short();
        let (mut stream, _) = server.ask(&hello(Op::BulkReverse, block));
        stream.write_all(&Order::Give(Order::FOREVER).bytes()).unwrap();
        let (until, mut buffer) = (Instant::now() + PATIENCE, vec![0; 64 << 10]);
        while stream.read(&mut buffer).is_ok_and(|n| n > 0) {
            assert!(Instant::now() < until, "blocks of {block} bytes are given for ever");
        }
    }
}

#[test]
fn a_block_or_request_that_comes_bit_by_bit_ends_when_the_connections_time_is_over() {
    for op in [Op::Bulk, Op::Rr] {
        let server = short();
        let (mut stream, _) = server.ask(&hello(op, MOST_BLOCK));
        let until = Instant::now() + PATIENCE;
        while stream.write(&[0; 16]).is_ok() {
            assert!(Instant::now() < until, "{op:?} waits for ever for the rest");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_response_that_is_taken_bit_by_bit_ends_when_the_connections_time_is_over() {
    let server = short();
    let (mut stream, _) = server.ask(&Hello { response: MOST_BLOCK, window: 64 << 10, ..hello(Op::Rr, 1) });
    stream.write_all(&[0]).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let (mut came, mut buffer) = (0, vec![0; 64 << 10]);
    while let Ok(n @ 1..) = stream.read(&mut buffer) {
        came += n;
    }
    assert!(came < MOST_BLOCK as usize, "all of it came after the time was over");
}

/// As root the kernel would set it, and load a module for it.
#[cfg(target_os = "linux")]
#[test]
fn a_stranger_chooses_no_congestion_control_that_the_system_does_not_let_everybody_choose() {
    let read = |which: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{which}_congestion_control"));
    let (Ok(allowed), Ok(available)) = (read("allowed"), read("available")) else { return };
    let server = Running::new(Limits::default());
    let usual = SockRef::from(&TcpStream::connect(server.at).unwrap()).tcp_congestion().unwrap();
    for name in available.split_whitespace().chain(["nosuchname"]) {
        let mut congestion = [0; 15];
        congestion[..name.len()].copy_from_slice(name.as_bytes());
        let may = allowed.split_whitespace().any(|other| other == name) || usual.starts_with(&congestion);
        let (_stream, welcome) = server.ask(&Hello { congestion, ..hello(Op::Bulk, 1000) });
        assert_eq!(welcome.answer, if may { Ok(()) } else { Err(Refusal::Option) }, "{name}");
    }
}

#[test]
fn a_watch_that_the_server_ends_says_so_and_is_no_gap_of_the_link() {
    let lifetime = Duration::from_millis(300);
    let server = Running::new(Limits { lifetime, ..Limits::default() });
    let address = Address::parse(&format!("tcp://{}", server.at)).unwrap();
    let plan =
        WatchPlan { duration_ns: Some(PATIENCE.as_nanos() as u64), gap_ns: 10_000_000_000, ..WatchPlan::default() };
    let watch = Watch::begin(&address, plan).unwrap();
    let watched = watch.watch(&AtomicBool::new(false), &mut |_| {}).unwrap();
    assert!(watched.is_ended_by_server && watched.came > 0, "{watched:?}");
    assert_eq!(watched.gap_count, 0);
}

#[test]
fn a_watch_goes_on_after_an_outage_that_is_longer_than_a_connection_may_be_silent() {
    let idle = Duration::from_millis(50);
    let server = Running::new(Limits { idle, ..Limits::default() });
    let (_watch, welcome) = server.ask(&hello(Op::Watch, DATAGRAM_HEADER as u32));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(SocketAddr::new(server.at.ip(), welcome.udp_port)).unwrap();
    std::thread::sleep(6 * idle);
    socket.send(&datagram(0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(socket.recv(&mut [0; 100]).unwrap(), DATAGRAM_HEADER);
}

#[test]
fn a_server_that_listens_everywhere_is_reached_over_both_families_by_streams_and_by_datagrams() {
    let mut server = Running::with(Server::listen_everywhere(0, Limits::default()).unwrap());
    let port = server.at.port();
    let v6 = server.at.is_ipv6().then_some("[::1]");
    for host in ["127.0.0.1"].into_iter().chain(v6) {
        server.at = format!("{host}:{port}").parse().unwrap();
        // A machine may have IPv6, and no address of it.
        if TcpStream::connect(server.at).is_err() {
            assert_ne!(host, "127.0.0.1");
            continue;
        }
        let address = Address::parse(&format!("tcp://{host}:{port}")).unwrap();
        let plan = WatchPlan { duration_ns: Some(300_000_000), ..WatchPlan::default() };
        let watched = Watch::begin(&address, plan).unwrap().watch(&AtomicBool::new(false), &mut |_| {}).unwrap();
        assert!(watched.came > 0, "{host}: {watched:?}");
    }
}
