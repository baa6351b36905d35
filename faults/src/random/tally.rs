//! Counting first looks.

use super::draw::Sort;
use super::looked::Looked;
use crate::score::judge::{NONE, Outcome};

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) hits: usize,
    pub(super) of: usize,
}

impl Share {
    fn count<'a>(looks: impl Iterator<Item = &'a Looked>, hit: impl Fn(&Looked) -> Option<bool>) -> Share {
        looks
            .filter_map(hit)
            .fold(Share::default(), |share, is_hit| Share { hits: share.hits + usize::from(is_hit), of: share.of + 1 })
    }
}

/// What the table says of the draws of one kind and commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tally {
    /// Rows in the table's order: what is counted, and how often it was so.
    pub(super) rows: Vec<(&'static str, Share)>,
    /// From the end of the comparison, where a cause was named; `None` where none was.
    pub(super) median_seconds: Option<(f64, usize)>,
    pub(super) did_not_bite: usize,
    pub(super) failed: usize,
}

impl Tally {
    pub(super) fn of(looks: &[&Looked]) -> Tally {
        let asked: Vec<&Looked> = looks.iter().copied().filter(|look| look.outcome.counts()).collect();
        let of_sort = |sort: Sort| asked.iter().copied().filter(move |look| look.sort == sort);
        let share = |sort: Sort, wanted: Outcome| Share::count(of_sort(sort), |look| Some(look.outcome == wanted));
        let faults = || asked.iter().copied().filter(|look| !matches!(look.sort, Sort::Equals | Sort::Decoy));
        let named = || faults().filter(|look| look.sort != Sort::Outside);
        let denied = |look: &Looked| Some(look.said.first().is_some_and(|said| said == NONE) && look.call != "unknown");
        let seconds: Vec<f64> =
            asked.iter().filter(|look| look.names_a_cause()).filter_map(|look| look.seconds).collect();
        let timed = seconds.len();
        Tally {
            rows: vec![
                ("faults of the catalogue: right first", share(Sort::Catalogue, Outcome::First)),
                ("faults of the catalogue: right, but later", share(Sort::Catalogue, Outcome::AmongThree)),
                ("faults of the catalogue: unknown", share(Sort::Catalogue, Outcome::Unknown)),
                ("two at once: both named, one of them first", share(Sort::Double, Outcome::First)),
                ("two at once: one named", share(Sort::Double, Outcome::AmongThree)),
                ("two at once: unknown", share(Sort::Double, Outcome::Unknown)),
                ("faults outside the catalogue: unknown, which is right", share(Sort::Outside, Outcome::First)),
                (
                    "faults outside the catalogue: named as one inside",
                    Share::count(of_sort(Sort::Outside), Looked::accuses),
                ),
                ("equals: nothing blamed, no difference called", share(Sort::Equals, Outcome::First)),
                ("decoys: nothing blamed", share(Sort::Decoy, Outcome::First)),
                (
                    "wrong accusation: something blamed that is not at work, of all",
                    Share::count(asked.iter().copied(), Looked::accuses),
                ),
                ("wrong acquittal: the fault ruled out, of faults with a name", Share::count(named(), Looked::acquits)),
                ("a verified difference denied, of all faults", Share::count(faults(), denied)),
                (
                    "no answer, of all",
                    Share::count(asked.iter().copied(), |look| Some(look.outcome == Outcome::NoAnswer)),
                ),
            ],
            median_seconds: crate::arena::median(seconds).ok().map(|median| (median, timed)),
            did_not_bite: looks.iter().filter(|look| look.outcome == Outcome::NotVerified).count(),
            failed: looks.iter().filter(|look| look.outcome == Outcome::Failed).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::looked::tests::looked;
    use super::*;

    #[test]
    fn each_row_counts_its_own_and_what_is_not_known_counts_nowhere() {
        let of = |sort: Sort, outcome: Outcome, said: &[&str], blamed: Option<&[&str]>, ruled_out: Option<&[&str]>| {
            let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<String>>();
            Looked {
                outcome,
                said: texts(said),
                call: "slower".to_owned(),
                wrongly_blamed: blamed.map(texts),
                wrongly_ruled_out: ruled_out.map(texts),
                seconds: Some(10.0),
                ..looked(sort, 1, "abc")
            }
        };
        let none: Option<&[&str]> = Some(&[]);
        let looks = [
            of(Sort::Catalogue, Outcome::First, &["net.loss on B"], none, none),
            of(Sort::Catalogue, Outcome::First, &["net.loss on B", "x on A"], Some(&["x on A"]), none),
            of(Sort::Catalogue, Outcome::Wrong, &["unknown on B"], none, Some(&["net.loss"])),
            of(Sort::Catalogue, Outcome::Wrong, &["none"], none, None),
            of(Sort::Catalogue, Outcome::NoAnswer, &[], None, None),
            of(Sort::Catalogue, Outcome::NotVerified, &[], None, None),
            of(Sort::Catalogue, Outcome::Failed, &[], None, None),
            of(Sort::Double, Outcome::AmongThree, &["net.loss on B"], none, none),
            of(Sort::Outside, Outcome::First, &["unknown on B"], none, none),
            of(Sort::Outside, Outcome::Wrong, &["net.loss on B"], Some(&["net.loss on B"]), none),
            of(Sort::Equals, Outcome::First, &["none"], none, none),
            of(Sort::Decoy, Outcome::First, &["unknown on B"], none, none),
        ];
        let tally = Tally::of(&looks.iter().collect::<Vec<_>>());
        let row = |begin: &str| {
            let found: Vec<Share> =
                tally.rows.iter().filter(|(name, _)| name.starts_with(begin)).map(|(_, share)| *share).collect();
            assert_eq!(found.len(), 1, "{begin}");
            (found[0].hits, found[0].of)
        };
        assert_eq!(row("faults of the catalogue: right first"), (2, 5));
        assert_eq!(row("faults of the catalogue: unknown"), (0, 5));
        assert_eq!(row("two at once: one named"), (1, 1));
        assert_eq!(row("faults outside the catalogue: unknown"), (1, 2));
        assert_eq!(row("faults outside the catalogue: named"), (1, 2));
        assert_eq!(row("equals"), (1, 1));
        assert_eq!(row("decoys"), (1, 1));
        assert_eq!(
            row("wrong accusation"),
            (2, 9),
            "who gave no answer accused nobody, and is not counted as innocent"
        );
        assert_eq!(row("wrong acquittal"), (1, 4));
        assert_eq!(row("a verified difference denied"), (1, 8));
        assert_eq!(row("no answer"), (1, 10));
        assert_eq!(tally.median_seconds, Some((10.0, 4)));
        assert_eq!((tally.did_not_bite, tally.failed), (1, 1));
        assert_eq!(Tally::of(&[]).median_seconds, None);
    }
}
