//! What a machine asks for the time.

use crate::gap::Gap;

/// Clock sources that are read over a bus, by their names in the kernel: timers of the board (drivers/clocksource, and
/// hpet.c, i8253.c), and the counter of ticks that is left where nothing else works. None of them is in the vDSO.
const SLOW: [&str; 6] = ["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies", "xen"];

pub(crate) fn source<'a>(gap: &Gap<'a>, side: usize) -> Option<&'a str> {
    gap.host_fact(side, "clock.source").map(str::trim)
}

pub(crate) fn is_slow(source: &str) -> bool {
    SLOW.contains(&source)
}
