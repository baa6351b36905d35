//! Rules that every packet may have to pass, counted.

use super::lines::number;
use super::sheet::{Sheet, complaint};

const FILTERS: [&str; 6] = ["nft", "iptables", "ip6tables", "pf", "ipfw", "ipl"];

/// `firewall.nft_rules`, `firewall.iptables_rules` and so on. For a server in a network of its own these are that network's,
/// and `firewall.machine.nft_rules` and so on those of the machine.
pub(super) fn facts(sheet: &mut Sheet<'_>) {
    for line in sheet.lines("firewall") {
        if let Some(complaint_of) = line.strip_prefix("duel: ") {
            match complaint_of.split_once(": ").filter(|(name, _)| is_filter(name)) {
                Some((name, why)) => sheet.unavailable(format!("firewall.{name}_rules"), why),
                None => sheet.unavailable("firewall.some_rules", complaint(line).unwrap_or_default()),
            }
        } else if let Some((name, _)) = line.split_once(' ').filter(|(name, _)| is_filter(name))
            && let Some(count) = number(line, 1)
        {
            sheet.set(format!("firewall.{name}_rules"), count.to_string());
        }
    }
    if sheet.text("firewall").is_none_or(|text| text.trim().is_empty()) {
        sheet.promised("firewall", &["firewall"]);
    }
}

fn is_filter(name: &str) -> bool {
    FILTERS.contains(&name.strip_prefix("machine.").unwrap_or(name))
}
