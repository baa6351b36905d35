//! What duel was not told to read: the option that has it read, and what it could have looked for.

use crate::cause::{Cause, Standing};
use crate::gap::Gap;
use duel_model::{Known, Target, Unread, sanitize_line, shell_word};

/// Most causes that are named in the sentence; all of them are in the list.
const MOST_NAMED: usize = 4;

/// One entry for each side whose machine was not read, or whose server was not found there, if causes were left open that
/// are found only there.
pub(super) fn unread(gap: &Gap<'_>, causes: &[&Cause], standings: &[Standing]) -> Vec<Unread> {
    let open: Vec<String> = causes
        .iter()
        .zip(standings)
        .filter(|(cause, standing)| cause.entry.needs_machine && matches!(standing, Standing::Undecided(_)))
        .map(|(cause, _)| cause.entry.id.to_owned())
        .collect();
    if open.is_empty() {
        return Vec::new();
    }
    [gap.slow, gap.fast].into_iter().filter_map(|side| of_side(gap, side, &open)).collect()
}

fn of_side(gap: &Gap<'_>, side: usize, open: &[String]) -> Option<Unread> {
    let target = gap.case.plan.targets.get(side)?;
    let name = gap.name(side);
    // Behind such a name no option is one any more.
    if target.name.starts_with('-') || name != target.name {
        return None;
    }
    let (option, why) = match gap.case.hosts.get(side).and_then(Option::as_ref) {
        None => (access(target), format!("the machine of {name} was not read")),
        Some(facts) => match facts.0.get("process.pid").or_else(|| facts.0.get("process")) {
            Some(Known::Unavailable(why)) => (
                format!("--pid {}", shell_word(&format!("{}=PID", target.name))),
                format!("which process {name} is was not found ({})", sanitize_line(why)),
            ),
            Some(Known::Value(_)) | None => return None,
        },
    };
    let named = open.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = open.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let text = format!("{why}: with {option} duel could have looked for {named}{more}");
    Some(Unread { target: target.name.clone(), option, causes: open.to_vec(), text })
}

/// How the machine of a target is read: this one where the address says so, else by the machine in its address.
fn access(target: &Target) -> String {
    let name = &target.name;
    let here = format!("--local {}", shell_word(name));
    match target.machine().filter(|machine| !machine.is_empty() && !target.is_on_loopback()) {
        None => here,
        Some(machine) => {
            format!("--ssh {} (or {here}, if it runs on this machine)", shell_word(&format!("{name}={machine}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::access;
    use duel_model::Target;

    #[test]
    fn the_option_is_the_one_for_where_the_target_is() {
        let of = |name: &str, address: &str| {
            access(&Target { name: name.to_owned(), address: address.to_owned(), host: None })
        };
        for (address, option) in [
            ("http://127.0.0.1:8080/x", "--local B"),
            ("https://localhost/", "--local B"),
            ("http://[::1]:80/", "--local B"),
            ("/mnt/xfs", "--local B"),
            ("postgres://me@db7:5432/shop", "--ssh B=db7 (or --local B, if it runs on this machine)"),
            ("http://[2001:db8::1]:80/", "--ssh B=2001:db8::1 (or --local B, if it runs on this machine)"),
        ] {
            assert_eq!(of("B", address), option, "{address}");
        }
        assert_eq!(of("B 2", "http://127.0.0.1/"), "--local 'B 2'");
    }
}
