//! What TCP knows of a connection (`TCP_INFO`).

use rustix::fd::AsFd;

/// What TCP knows of a connection, as its sender sees it. Times are sums since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round trip.
    pub rtt_us: u32,
    /// Shortest round trip of the last minutes.
    pub min_rtt_us: u32,
    /// Segments sent again.
    pub retransmits: u32,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Bytes of a segment's payload.
    pub segment: u32,
    /// The path's MTU, as far as it is known.
    pub mtu: u32,
    /// Rate at which data was delivered lately.
    pub delivery_bytes_per_s: u64,
    /// There was something to be sent, or to be acknowledged.
    pub busy_us: u64,
    /// The receiver's window held it back.
    pub window_limited_us: u64,
    /// The send buffer held it back.
    pub buffer_limited_us: u64,
    /// Segments sent, those without data included.
    pub segments: u32,
    /// Segments sent with data.
    pub data_segments: u32,
    /// Segments carry time stamps, which take 12 bytes of each.
    pub has_timestamps: bool,
    /// For how long it has sent no data.
    pub silent_ms: u32,
    /// Bytes that the other end has acknowledged.
    pub acked_bytes: u64,
}

impl TcpInfo {
    /// What is known of this connection; `None` where the system does not tell.
    pub fn of(socket: impl AsFd) -> Option<Self> {
        #[cfg(target_os = "linux")]
        return linux::read(&socket.as_fd());
        #[cfg(not(target_os = "linux"))]
        {
            let _ = socket.as_fd();
            None
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::TcpInfo;
    use nix::libc;
    use nix::sys::socket::{GetSockOpt, sockopt::GetStruct};
    use rustix::fd::BorrowedFd;

    /// The kernel's `struct tcp_info` as far as Linux 4.19 has it; newer ones only add to its end. epoll with nanoseconds, without
    /// which duel does not run, is newer than that.
    #[derive(Debug, Clone, Copy)]
    #[repr(C)]
    pub(super) struct Raw {
        small: [u8; 8],
        /// rto, ato, snd_mss, rcv_mss, unacked, sacked, lost, retrans, fackets, last_data_sent, last_ack_sent, last_data_recv,
        /// last_ack_recv, pmtu, rcv_ssthresh, rtt, rttvar, snd_ssthresh, snd_cwnd, advmss, reordering, rcv_rtt, rcv_space,
        /// total_retrans.
        words: [u32; 24],
        /// pacing_rate, max_pacing_rate, bytes_acked, bytes_received.
        longs: [u64; 4],
        /// segs_out, segs_in, notsent_bytes, min_rtt, data_segs_in, data_segs_out.
        later_words: [u32; 6],
        /// delivery_rate, busy_time, rwnd_limited, sndbuf_limited.
        later_longs: [u64; 4],
    }

    #[derive(Debug, Clone, Copy)]
    struct Info;

    nix::getsockopt_impl!(Info, libc::IPPROTO_TCP, libc::TCP_INFO, Raw, GetStruct<Raw>);

    /// Segments carry time stamps.
    const TIMESTAMPS: u8 = 1;

    pub(super) fn read(socket: &BorrowedFd<'_>) -> Option<TcpInfo> {
        let raw = Info.get(socket).ok()?;
        let [segments, _, _, min_rtt_us, _, data_segments] = raw.later_words;
        let [delivery_bytes_per_s, busy_us, window_limited_us, buffer_limited_us] = raw.later_longs;
        Some(TcpInfo {
            rtt_us: raw.words[15],
            // Where none was measured the kernel says the largest number.
            min_rtt_us: if min_rtt_us == u32::MAX { 0 } else { min_rtt_us },
            retransmits: raw.words[23],
            cwnd: raw.words[18],
            segment: raw.words[2],
            mtu: raw.words[13],
            delivery_bytes_per_s,
            busy_us,
            window_limited_us,
            buffer_limited_us,
            segments,
            data_segments,
            has_timestamps: raw.small[5] & TIMESTAMPS != 0,
            silent_ms: raw.words[9],
            acked_bytes: raw.longs[2],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_tcp_knows_of_a_connection_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut theirs, _) = listener.accept().unwrap();
        let mut buffer = [0; 1000];
        for _ in 0..10 {
            ours.write_all(&buffer).unwrap();
            theirs.read_exact(&mut buffer).unwrap();
            theirs.write_all(&buffer).unwrap();
            ours.read_exact(&mut buffer).unwrap();
        }
        let Some(info) = TcpInfo::of(&ours) else { return };
        assert!(info.rtt_us > 0 && info.min_rtt_us > 0 && info.min_rtt_us < 10_000_000, "{info:?}");
        // What loopback has: an MTU of 64 KiB, and segments as long.
        assert!(info.cwnd > 0 && info.segment > 500 && info.mtu > info.segment, "{info:?}");
        // The first number of a connection is acknowledged like a byte.
        assert!((10_000..=10_001).contains(&info.acked_bytes), "{info:?}");
        assert!(info.data_segments == 10 && info.segments > info.data_segments, "{info:?}");
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert!(TcpInfo::of(&ours).unwrap().silent_ms >= 20, "{info:?}");
    }
}
