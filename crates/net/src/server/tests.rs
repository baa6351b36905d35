use super::*;
use crate::protocol::{DATAGRAM_HEADER, Report};
use std::net::UdpSocket;

/// A server on loopback, which ends with it.
struct Running {
    at: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Running {
    fn new(limits: Limits) -> Self {
        let server = Server::listen("127.0.0.1:0".parse().unwrap(), limits).unwrap();
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
