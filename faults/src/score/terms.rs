//! On which terms duel looks. Results of different terms are not the same question, so they are not counted together.

use super::ScoreFlags;
use super::keep::Scored;

/// What duel was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    /// Not to look at the servers' hosts.
    pub(crate) outside: bool,
    /// To name causes that are not proven yet.
    pub(crate) suspects: bool,
    /// To start private twins of the servers.
    pub(crate) twins: bool,
}

impl Terms {
    pub(super) fn of(flags: &ScoreFlags) -> Terms {
        Terms { outside: flags.outside, suspects: flags.suspects, twins: flags.twins }
    }

    /// As flags.
    fn flags(self) -> String {
        let all = [(self.outside, "`--outside`"), (self.suspects, "`--suspects`"), (self.twins, "`--twins`")];
        let given: Vec<&str> = all.iter().filter(|(is_given, _)| *is_given).map(|(_, flag)| *flag).collect();
        if given.is_empty() { "none of `--outside`, `--suspects`, `--twins`".to_owned() } else { given.join(" and ") }
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
        format!("{looked}{twins}, and {named} ({}).", self.flags())
    }

    /// Refuses to go on from results of other terms, or of terms that nobody knows.
    pub(super) fn ensure_same(self, results: &[Scored]) -> anyhow::Result<()> {
        for result in results {
            match result.terms {
                Some(terms) if terms == self => {}
                Some(terms) => anyhow::bail!(
                    "the results to go on from were measured with {}, and this score is to be with {}: use the same flags, or \
                     start anew without --resume",
                    terms.flags(),
                    self.flags()
                ),
                None => anyhow::bail!(
                    "some of the results to go on from do not tell whether `--outside`, `--suspects` and `--twins` were used, for an \
                     older bench has measured them: start anew without --resume, or show them with --table-only"
                ),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_other_terms_are_not_added_to() {
        let plain = Terms { outside: false, suspects: false, twins: false };
        let outside = Terms { outside: true, ..plain };
        let case = &crate::injections::cases()[0];
        let of = |terms: Option<Terms>| Scored { terms, ..Scored::new(case, 1, "A") };
        assert!(plain.ensure_same(&[]).is_ok());
        assert!(plain.ensure_same(&[of(Some(plain)), of(Some(plain))]).is_ok());
        let refused = |results: &[Scored]| plain.ensure_same(results).unwrap_err().to_string();
        let other = refused(&[of(Some(plain)), of(Some(outside))]);
        assert!(other.contains("measured with `--outside`, and this score is to be with none of"), "{other}");
        assert!(plain.ensure_same(&[of(Some(Terms { suspects: true, ..plain }))]).is_err());
        assert!(refused(&[of(None)]).contains("older bench"));
    }
}
