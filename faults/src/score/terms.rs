//! On which terms duel looks. Results of different terms are not the same question, so they are not counted together.

use super::ScoreFlags;
use super::keep::Scored;
use crate::kinds::Kind;
use crate::kinds::sql::Sql;

/// What duel was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Not to look at the servers' hosts.
    pub(crate) outside: bool,
    /// To name causes that are not proven yet.
    pub(crate) suspects: bool,
    /// To start private twins of the servers.
    pub(crate) twins: bool,
    /// To make private copies of the databases; of other kinds of work there are none to be allowed.
    pub(crate) copies: bool,
}

/// All flags of these.
const FLAGS: &str = "`--outside`, `--suspects`, `--twins`, `--copies`";

impl Terms {
    /// Those of a case of this kind of work.
    pub(super) fn of(flags: &ScoreFlags, kind: &str) -> Terms {
        let copies = flags.copies && kind == Sql::NAME;
        Terms { outside: flags.outside, suspects: flags.suspects, twins: flags.twins, copies }
    }

    /// As flags.
    fn flags(self) -> String {
        let all = [self.outside, self.suspects, self.twins, self.copies].into_iter().zip(FLAGS.split(", "));
        let given: Vec<&str> = all.filter(|(is_given, _)| *is_given).map(|(_, flag)| flag).collect();
        if given.is_empty() { format!("none of {FLAGS}") } else { given.join(" and ") }
    }

    /// As a sentence for the table.
    pub(super) fn sentence(self) -> String {
        let looked = if self.outside {
            "duel looked from outside only"
        } else {
            "duel was allowed to look at the servers' hosts, as far as it can"
        };
        let named = if self.suspects {
            "named also causes that are not proven yet"
        } else {
            "named causes only that are proven"
        };
        let twins = if self.twins { ", started private twins of the servers" } else { "" };
        let copies = if self.copies { ", made private copies of the databases" } else { "" };
        format!("{looked}{twins}{copies}, and {named} ({}).", self.flags())
    }

    /// The sentence where nobody knows.
    pub(super) fn not_kept() -> String {
        format!("An older bench has not kept which of {FLAGS} were used.")
    }
}

/// Refuses to go on from results of other terms than these flags are, or of terms that nobody knows.
pub(super) fn ensure_same(flags: &ScoreFlags, results: &[Scored]) -> anyhow::Result<()> {
    for result in results {
        let wanted = Terms::of(flags, &result.kind);
        match result.terms {
            Some(terms) if terms == wanted => {}
            Some(terms) => anyhow::bail!(
                "the results to go on from ({}) were measured with {}, and this score is to be with {}: use the same flags, or \
                 start anew without --resume",
                result.case,
                terms.flags(),
                wanted.flags()
            ),
            None => anyhow::bail!(
                "some of the results to go on from do not tell which of {FLAGS} were used, for an older bench has measured them: start \
                 anew without --resume, or show them with --table-only"
            ),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        flags: ScoreFlags,
    }

    fn flags(words: &[&str]) -> ScoreFlags {
        Words::parse_from(["faults"].iter().chain(words)).flags
    }

    const PLAIN: Terms = Terms { outside: false, suspects: false, twins: false, copies: false };

    /// A result of a case of this kind.
    fn of(kind: &str, terms: Option<Terms>) -> Scored {
        let cases = crate::injections::cases();
        let case = cases.iter().find(|case| case.trial.kind() == kind).unwrap();
        Scored { terms, ..Scored::new(case, 1, "A") }
    }

    #[test]
    fn results_of_other_terms_are_not_added_to() {
        let plain = flags(&[]);
        let outside = Terms { outside: true, ..PLAIN };
        assert!(ensure_same(&plain, &[]).is_ok());
        assert!(ensure_same(&plain, &[of("web", Some(PLAIN)), of("sql", Some(PLAIN))]).is_ok());
        let refused = |results: &[Scored]| ensure_same(&plain, results).unwrap_err().to_string();
        let other = refused(&[of("web", Some(PLAIN)), of("web", Some(outside))]);
        assert!(other.contains("measured with `--outside`, and this score is to be with none of"), "{other}");
        assert!(ensure_same(&plain, &[of("web", Some(Terms { suspects: true, ..PLAIN }))]).is_err());
        assert!(refused(&[of("web", None)]).contains("older bench"));
        let copied = refused(&[of("sql", Some(Terms { copies: true, ..PLAIN }))]);
        assert!(copied.contains("(none/sql-") && copied.contains("measured with `--copies`"), "{copied}");
    }

    #[test]
    fn copies_are_allowed_of_databases_alone() {
        let copies = flags(&["--copies"]);
        assert_eq!(Terms::of(&copies, "sql"), Terms { copies: true, ..PLAIN });
        assert_eq!(["web", "net", "disk"].map(|kind| Terms::of(&copies, kind)), [PLAIN; 3]);
        // So results of all kinds can be gone on from, and those of databases with copies only.
        let copied = of("sql", Some(Terms { copies: true, ..PLAIN }));
        assert!(ensure_same(&copies, &[of("web", Some(PLAIN)), copied]).is_ok());
        let without = ensure_same(&copies, &[of("sql", Some(PLAIN))]).unwrap_err().to_string();
        assert!(without.contains("measured with none of") && without.contains("is to be with `--copies`"), "{without}");
        assert!(
            Words::try_parse_from(["faults", "--copies", "--outside"]).is_err(),
            "copies stand on the servers' host"
        );
    }

    #[test]
    fn what_was_allowed_is_told() {
        let told = Terms { copies: true, twins: true, ..PLAIN }.sentence();
        assert!(
            told.contains(
                "as far as it can, started private twins of the servers, made private copies of the databases, and"
            ),
            "{told}"
        );
        assert!(told.ends_with("(`--twins` and `--copies`)."), "{told}");
        assert!(PLAIN.sentence().ends_with("(none of `--outside`, `--suspects`, `--twins`, `--copies`)."));
    }
}
