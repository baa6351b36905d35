//! How much a server's control group may have devices do, and how much of that it does.

use crate::evidence::machines::Side;
use crate::gap::Gap;
use duel_model::{HostDemand, format_bytes, format_count};

/// A limit of the group, or of one above it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Limit {
    /// `MAJOR:MINOR`.
    device: String,
    /// As the counter is called.
    what: What,
    per_s: f64,
    /// What the group had done per second under load, beyond what it does without. `None` where nobody counts.
    done_per_s: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    ReadBytes,
    WrittenBytes,
    Reads,
    Writes,
}

impl What {
    const ALL: [(&'static str, Self); 4] = [
        ("read_bytes", Self::ReadBytes),
        ("written_bytes", Self::WrittenBytes),
        ("reads", Self::Reads),
        ("writes", Self::Writes),
    ];

    fn told(self, per_s: f64) -> String {
        match self {
            Self::ReadBytes => format!("{} read", format_bytes(per_s)),
            Self::WrittenBytes => format!("{} written", format_bytes(per_s)),
            Self::Reads => format!("{} reads", format_count(per_s.round() as u64)),
            Self::Writes => format!("{} writes", format_count(per_s.round() as u64)),
        }
    }
}

impl Limit {
    /// Those of a side's server; `None` where not all of them are known. An empty list: there are none.
    pub(crate) fn all(gap: &Gap<'_>, index: usize, side: &Side<'_>) -> Option<Vec<Self>> {
        if gap.host_fact(index, "cgroup.io_limits")? == "none" {
            return Some(Vec::new());
        }
        let facts = gap.case.hosts.get(index)?.as_ref()?.under("cgroup.io.");
        let of_fact = |(key, known): (&str, &duel_model::Known)| {
            let (device, name) = key.strip_prefix("cgroup.io.")?.strip_suffix("_per_s")?.rsplit_once('.')?;
            let (_, what) = What::ALL.into_iter().find(|(known, _)| *known == name)?;
            let per_s = known.text()?.parse::<f64>().ok().filter(|per_s| per_s.is_finite() && *per_s > 0.0)?;
            let done = done_per_op(side.demand(), &format!("cgroup.io.{device}.{name}"));
            let done_per_s = done.map(|done| done * 1e9 / side.wall_ns());
            Some(Self { device: device.to_owned(), what, per_s, done_per_s })
        };
        let limits: Vec<Self> = facts.filter_map(of_fact).collect();
        // There are some, and they are written in a way that nobody has read.
        (!limits.is_empty()).then_some(limits)
    }

    /// Whether this one, of another group, lets no more of the same pass.
    pub(crate) fn is_as_strict_as(&self, other: &Self) -> bool {
        self.what == other.what && self.per_s <= 1.1 * other.per_s
    }

    /// Share of the limit that is used.
    pub(crate) fn used(&self) -> Option<f64> {
        Some(self.done_per_s? / self.per_s)
    }

    /// That it is one of reading: what is read for a request is waited for; what is written may be at leisure.
    pub(crate) fn is_of_reads(&self) -> bool {
        matches!(self.what, What::ReadBytes | What::Reads)
    }

    pub(crate) fn told(&self) -> String {
        let of = self.what.told(self.per_s);
        let done = self.done_per_s.map_or_else(|| "unknown".to_owned(), |done| self.what.told(done));
        format!("{of} per second on device {} ({done} under load)", self.device)
    }
}

/// Growth of a counter of the group per op, without what grows as fast where there is no load, as far as that was looked at.
fn done_per_op(demand: &HostDemand, key: &str) -> Option<f64> {
    let growth = *demand.growth.get(key)? as f64;
    let quiet = match (demand.quiet_growth.get(key), demand.quiet_ns) {
        (Some(quiet), quiet_ns @ 1..) => *quiet as f64 * demand.elapsed_ns as f64 / quiet_ns as f64,
        _ => 0.0,
    };
    (demand.ops > 0).then(|| (growth - quiet).max(0.0) / demand.ops as f64)
}
