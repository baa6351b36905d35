//! What is attached to a server's system calls, as far as it can be read.

use crate::gap::Gap;

/// Counts of what each system call goes through.
pub(crate) struct Hooks {
    /// Filters of system calls, of that process of the server that has the most.
    pub(crate) filters: f64,
    /// Rules of the machine's audit that look at system calls; `None` where nobody could ask for them.
    audit_rules: Option<f64>,
}

impl Hooks {
    /// `None` where filters are not known.
    pub(crate) fn of(gap: &Gap<'_>, side: usize) -> Option<Self> {
        let filters = gap.host_number(side, "process.seccomp_filters")?;
        Some(Self { filters, audit_rules: gap.host_number(side, "audit.system_call_rules") })
    }

    /// Whether there are more of either, as far as both are known.
    pub(crate) fn more_than(&self, other: &Self) -> bool {
        let more_rules = self.audit_rules.zip(other.audit_rules).is_some_and(|(ours, theirs)| ours > theirs);
        self.filters > other.filters || more_rules
    }

    /// `2 filters and 5 audit rules`.
    pub(crate) fn tell(&self) -> String {
        let filters = format!("{:.0} {}", self.filters, if self.filters == 1.0 { "filter" } else { "filters" });
        match self.audit_rules {
            Some(rules) if rules > 0.0 => format!("{filters} and {rules:.0} audit rules"),
            _ => filters,
        }
    }
}
