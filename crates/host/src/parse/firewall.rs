//! Rules that every packet may have to pass, counted.

use super::lines::number;
use super::sheet::{Sheet, complaint};

/// `firewall.nft_rules`, `firewall.iptables_rules` and so on.
pub(super) fn facts(sheet: &mut Sheet<'_>) {
    for line in sheet.lines("firewall") {
        let Some((name, _)) = line.split_once(' ') else { continue };
        if matches!(name, "nft" | "iptables" | "ip6tables" | "pf" | "ipfw" | "ipl")
            && let Some(count) = number(line, 1)
        {
            sheet.set(format!("firewall.{name}_rules"), count.to_string());
        }
        if line.starts_with("duel: ")
            && let Some(why) = complaint(line)
        {
            let name =
                ["ip6tables", "iptables", "nft", "ipfw", "pf", "ipl"].into_iter().find(|name| why.contains(name));
            sheet.unavailable(format!("firewall.{}_rules", name.unwrap_or("some")), why);
        }
    }
    if sheet.text("firewall").is_none_or(|text| text.trim().is_empty()) {
        sheet.promised("firewall", &["firewall"]);
    }
}
