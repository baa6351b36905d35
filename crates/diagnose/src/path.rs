//! What the transport says of the path to a target.

use duel_model::web::phase;
use duel_model::{Id, TargetObservation};

/// What a side's TCP said of its path while it was loaded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path<'a> {
    seen: &'a TargetObservation,
}

impl<'a> Path<'a> {
    pub(crate) fn of(seen: &'a TargetObservation) -> Self {
        Self { seen }
    }

    fn fact(&self, name: &str) -> Option<f64> {
        Some(self.seen.negotiated.as_ref()?.count(name)? as f64)
    }

    fn count(&self, name: &'static str) -> Option<f64> {
        self.seen.counted_per_op.get(&Id::new(name)).map(|per_op| per_op * self.seen.ok as f64)
    }

    /// The shortest round trip, ns: what the path takes when nothing queues. TCP measures it from its first packet on, which the
    /// kernel at the other end answers; where connections are not kept, near the shortest time of connecting.
    pub(crate) fn shortest_trip_ns(&self) -> Option<f64> {
        let connects = || Some(self.seen.phase_profile.get(&phase::CONNECT.id())?.quantile_ns(0.05)? as f64);
        self.fact("tcp.min_rtt_us").map(|us| us * 1e3).or_else(connects)
    }

    /// A round trip under load, ns: what waits in queues is part of it.
    pub(crate) fn loaded_trip_ns(&self) -> Option<f64> {
        self.fact("tcp.rtt_us").map(|us| us * 1e3)
    }

    /// Share of the time in which its sender had something to send, or had not heard that it came, for which the receiver's
    /// window or its own send buffer held it back.
    pub(crate) fn held_back(&self) -> Option<f64> {
        let busy = self.count("busy_us").filter(|&us| us > 0.0)?;
        Some((self.count("window_limited_us")? + self.count("buffer_limited_us")?) / busy)
    }

    /// For how long its sender had something to send, or had not heard that it came, ns per op; over several streams their times add up.
    pub(crate) fn busy_ns_per_op(&self) -> Option<f64> {
        let us_per_op = self.seen.counted_per_op.get(&Id::new("busy_us")).filter(|&&us| us > 0.0)?;
        Some(us_per_op * 1e3)
    }

    /// Segments sent again, and their share of all that were sent.
    pub(crate) fn sent_again(&self) -> Option<(f64, f64)> {
        let again = self.count("retransmits")?;
        Some((again, again / self.segments()?))
    }

    /// Segments sent again for each op.
    pub(crate) fn sent_again_per_op(&self) -> Option<f64> {
        let (again, _) = self.sent_again()?;
        (self.seen.ok > 0).then(|| again / self.seen.ok as f64)
    }

    /// Segments of an op that get lost. By their share of all segments, and not by their number: what was handed over beyond the last op of
    /// a slot is counted as well, and no op is.
    pub(crate) fn lost_per_op(&self) -> Option<f64> {
        let (_, share) = self.sent_again()?;
        let segment_bytes = self.fact("tcp.segment_bytes").filter(|&bytes| bytes > 0.0)?;
        Some(share * self.seen.bytes_in_per_op? / segment_bytes)
    }

    /// Segments that were sent.
    pub(crate) fn segments(&self) -> Option<f64> {
        self.count("segments").filter(|&segments| segments > 0.0)
    }

    /// Datagrams that got lost on the way, and all that were sent.
    pub(crate) fn missing(&self) -> Option<(f64, f64)> {
        Some((self.count("datagrams_lost")?, self.count("datagrams_sent").filter(|&sent| sent > 0.0)?))
    }

    /// Share of the datagrams that got lost on the way.
    pub(crate) fn lost(&self) -> Option<f64> {
        self.missing().map(|(lost, sent)| lost / sent)
    }

    /// Datagrams that had not come when the time was over, and all that were sent: those that got lost, and those that still waited.
    /// Those that were dropped at the other end did come.
    pub(crate) fn not_come(&self) -> Option<(f64, f64)> {
        let (_, sent) = self.missing()?;
        let came = self.seen.ok as f64 + self.count("datagrams_dropped")?;
        Some(((sent - came).max(0.0), sent))
    }

    /// Whether datagrams wait on the way: at the other end's system they come further apart than they were sent, each later than the
    /// one before by what the queue grows meanwhile. Who reads them too slowly has them in time. `None`: not known.
    pub(crate) fn datagrams_queue(&self, streams: u32) -> Option<bool> {
        let (waiting, sent) = self.not_come()?;
        let apart_us = f64::from(streams) * 1e6 / self.seen.rate_per_s?;
        // Half of it: jitter is a mean that begins at nothing, and is no sharper than that.
        Some(self.fact("udp.jitter_us")? >= 0.5 * apart_us * waiting / sent)
    }

    /// Payload that was carried, bytes per second, over all streams.
    pub(crate) fn bytes_per_s(&self) -> Option<f64> {
        Some(self.seen.rate_per_s? * self.seen.bytes_in_per_op?)
    }
}
