//! How many filter rules packets have to pass, and what that takes at most.

use crate::gap::Gap;

/// What looking at one rule takes at most: some memory reads and comparisons, tens of ns where they miss the caches.
pub(crate) const RULE_NS: f64 = 100.0;

/// The filter rules that packets to a side may have to pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Those that were counted.
    pub(crate) at_least: f64,
    /// Whether those are all: what may not be looked at may hold thousands.
    pub(crate) all: bool,
}

impl Rules {
    /// `None` where none could be counted.
    pub(crate) fn of(gap: &Gap<'_>, side: usize) -> Option<Self> {
        let facts = gap.case.hosts.get(side)?.as_ref()?;
        // Packets to a network of its own pass the machine's chains as well.
        let is_apart = facts.text("process.network") == Some("its own");
        let mut all = !is_apart || facts.under("firewall.machine.").next().is_some();
        let mut at_least = None;
        for (_, known) in facts.under("firewall") {
            match known.text().and_then(|count| count.parse::<f64>().ok()) {
                Some(count) => at_least = Some(at_least.unwrap_or(0.0) + count),
                None => all = false,
            }
        }
        at_least.map(|at_least| Self { at_least, all })
    }

    pub(crate) fn tell(self) -> String {
        if self.all { format!("{:.0}", self.at_least) } else { format!("{:.0} or more", self.at_least) }
    }
}
