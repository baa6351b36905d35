//! What TCP knows of a connection, as a server tells it to its client.

use duel_load::TcpInfo;

/// As a server tells it to a client that has received.
pub(crate) fn bytes(info: &TcpInfo) -> [u8; crate::protocol::SENDER_BYTES] {
    let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let words = [
        pair(info.rtt_us, info.min_rtt_us),
        pair(info.retransmits, info.cwnd),
        pair(info.segment, info.mtu | u32::from(info.has_timestamps) << 31),
        info.delivery_bytes_per_s,
        info.busy_us,
        info.window_limited_us,
        info.buffer_limited_us,
        pair(info.segments, info.data_segments),
    ];
    let mut bytes = [0; crate::protocol::SENDER_BYTES];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

/// What was told. A peer may tell anything: times and rates that no connection comes to are cut.
pub(crate) fn read(bytes: &[u8; crate::protocol::SENDER_BYTES]) -> TcpInfo {
    let word = |at: usize| bytes[8 * at..8 * at + 8].iter().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
    let pair = |at: usize| ((word(at) >> 32) as u32, word(at) as u32);
    // A year, and more than any link does.
    let (time, rate) = (|at| word(at).min(366 * 86_400 * 1_000_000), |at| word(at).min(1 << 50));
    let ((rtt_us, min_rtt_us), (retransmits, cwnd), (segment, mtu)) = (pair(0), pair(1), pair(2));
    let (segments, data_segments) = pair(7);
    TcpInfo {
        rtt_us,
        min_rtt_us,
        retransmits,
        cwnd,
        segment: segment.min(1 << 20),
        mtu: (mtu & !(1 << 31)).min(1 << 20),
        delivery_bytes_per_s: rate(3),
        busy_us: time(4),
        window_limited_us: time(5),
        buffer_limited_us: time(6),
        segments,
        data_segments,
        has_timestamps: mtu >> 31 != 0,
        silent_ms: 0,
        acked_bytes: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_unchanged() {
        let info = TcpInfo {
            rtt_us: 1,
            min_rtt_us: 2,
            retransmits: 3,
            cwnd: 4,
            segment: 5,
            mtu: 6,
            delivery_bytes_per_s: 7,
            busy_us: 8,
            window_limited_us: 9,
            buffer_limited_us: 10,
            segments: 11,
            data_segments: 12,
            has_timestamps: true,
            silent_ms: 0,
            acked_bytes: 0,
        };
        assert_eq!(read(&bytes(&info)), info);
    }

    #[test]
    fn what_a_peer_tells_is_bounded() {
        let told = read(&[0xFF; 64]);
        assert!(told.busy_us < 1 << 50 && told.delivery_bytes_per_s <= 1 << 50 && told.mtu <= 1 << 20);
    }
}
