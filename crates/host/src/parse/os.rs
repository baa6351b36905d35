//! The operating system and its clocks.

use super::Context;
use super::lines::number;
use super::sheet::Sheet;
use crate::mask;

/// Ticks, pages and the wall clock, that everything else is converted with.
pub(super) fn clocks(sheet: &mut Sheet<'_>, context: &mut Context) {
    let named =
        |name: &str| sheet.lines("clocks").find_map(|line| line.strip_prefix(name)).and_then(|rest| number(rest, 0));
    let (ticks, page, unix_s) = (named("clk_tck "), named("page_bytes "), named("unix_s "));
    match ticks.filter(|ticks| (1..=1_000_000).contains(ticks)) {
        Some(ticks) => context.tick_ns = 1_000_000_000 / ticks,
        None => sheet.doubt("the host does not tell the length of its clock tick: 10 ms are assumed".to_owned()),
    }
    match page.filter(|page| page.is_power_of_two() && *page <= 1 << 24) {
        Some(page) => context.page_bytes = page,
        None => sheet.doubt("the host does not tell the size of its pages: 4 KiB are assumed".to_owned()),
    }
    if let Some(unix_s) = unix_s {
        sheet.set("clock.unix_s", unix_s.to_string());
    }
    sheet.promised("clocks", &["clock.unix_s"]);
}

/// Name, version and command line of the kernel.
pub(super) fn facts(sheet: &mut Sheet<'_>) {
    names(sheet);
    let mut command_line = None;
    let mut uptime = None;
    for line in sheet.lines("os") {
        if let Some(rest) = line.strip_prefix("command_line ") {
            command_line = Some(mask::text(rest));
        } else if let Some(rest) = line.strip_prefix("uptime ") {
            uptime = rest.split_ascii_whitespace().next();
        }
    }
    sheet.set("os.boot_command_line", command_line.unwrap_or_default());
    if let Some(seconds) = uptime.and_then(|uptime| uptime.parse::<f64>().ok()) {
        sheet.set("os.uptime_s", format!("{seconds:.0}"));
    }
    sheet.promised("os", &["os.kernel", "os.boot_command_line", "os.uptime_s"]);
}

/// What `uname` and `os-release` tell, in the order of the script.
pub(super) fn names(sheet: &mut Sheet<'_>) {
    let system = sheet.text("system").unwrap_or_default().trim().to_owned();
    let mut lines = sheet.lines("os");
    let (release, version, arch, host) = (lines.next(), lines.next(), lines.next(), lines.next());
    if let Some(release) = release.filter(|release| !release.trim().is_empty()) {
        sheet.set("os.kernel", format!("{system} {release}"));
    }
    sheet.set("os.version", version.unwrap_or_default());
    sheet.set("os.arch", arch.unwrap_or_default());
    sheet.set("os.hostname", host.filter(|host| !host.contains(['=', ' '])).unwrap_or_default());
    for line in lines {
        if let Some(name) = line.strip_prefix("PRETTY_NAME=") {
            sheet.set("os.name", name.trim_matches(['"', '\'']));
        }
    }
    sheet.promised("os", &["os.name"]);
}
