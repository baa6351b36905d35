//! Rules of the kernel's audit that each system call may have to pass, counted.

use super::sheet::{Sheet, complaint};

/// `audit.system_call_rules`. A watch of a file is looked at when calls return, as rules of calls are (auditctl(8)); rules of the
/// other lists are not.
pub(super) fn facts(sheet: &mut Sheet<'_>) {
    const KEY: &str = "audit.system_call_rules";
    let Some(text) = sheet.text("audit") else { return };
    if let Some(why) = complaint(text) {
        sheet.unavailable(KEY, why);
        return;
    }
    let is_of_calls = |line: &&str| {
        let of_list = line.strip_prefix("-a ").and_then(|rest| rest.split_ascii_whitespace().next());
        line.starts_with("-w ") || of_list.is_some_and(|list| list.split(',').any(|word| word == "exit"))
    };
    let count = text.lines().filter(is_of_calls).count();
    // What is no list of rules tells nothing of how many there are.
    if count > 0 || text.trim() == "No rules" {
        sheet.set(KEY, count.to_string());
    }
    sheet.promised("audit", &[KEY]);
}

#[cfg(test)]
mod tests {
    use super::super::tests_support::facts_of;

    #[test]
    fn rules_of_calls_are_counted() {
        let count = |text: &str| facts_of(&[("audit", text)]).text("audit.system_call_rules").map(str::to_owned);
        let rules = "-w /etc/passwd -p wa -k users\n-a always,exit -F arch=b64 -S read\n-a exit,always -S open\n\
                     -a never,user -F pid=1\n";
        assert_eq!(count(rules).as_deref(), Some("3"));
        assert_eq!(count("No rules\n").as_deref(), Some("0"));
        for unknown in ["duel: no auditctl here\n", "", "You must be root to run this program.\n"] {
            assert_eq!(count(unknown), None, "{unknown}");
        }
    }
}
