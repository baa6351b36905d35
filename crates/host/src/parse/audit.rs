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
    let is_rule = |line: &str| line.starts_with("-a ") || line.starts_with("-w ");
    // What is no list of rules tells nothing of how many there are.
    if text.trim() == "No rules" || (!text.trim().is_empty() && text.lines().all(is_rule)) {
        let has = |line: &str, word: &str| {
            let of_list = line.strip_prefix("-a ").and_then(|rest| rest.split_ascii_whitespace().next());
            of_list.is_some_and(|list| list.split(',').any(|listed| listed == word))
        };
        // Of no process any call is looked at.
        let is_off = text
            .lines()
            .any(|line| has(line, "never") && has(line, "task") && line.split_ascii_whitespace().count() == 2);
        let of_calls = text.lines().filter(|line| line.starts_with("-w ") || has(line, "exit"));
        sheet.set(KEY, if is_off { 0 } else { of_calls.count() }.to_string());
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
        assert_eq!(count("-a never,task\n").as_deref(), Some("0"), "as Fedora has it");
        assert_eq!(count("-a never,task\n-a always,exit -S read\n").as_deref(), Some("0"), "no task is audited");
        assert_eq!(count("-a task,never -F uid=5\n-a always,exit -S read\n").as_deref(), Some("1"));
        for unknown in ["duel: no auditctl here\n", "", "You must be root to run this program.\n"] {
            assert_eq!(count(unknown), None, "{unknown}");
        }
    }
}
