//! One draw: a function of kind, seed, number, and what is installed, and of nothing else.

use super::installed::Installed;
use super::kind::{Decoy, Drawable, DrawnKind, Merged};
use crate::case::{Case, Setup};
use crate::dice::Dice;
use crate::servers::Place;

/// What is drawn, as results have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    /// One fault that duel has a name for.
    Catalogue,
    /// One fault that it has none for.
    Outside,
    /// Two faults of the catalogue at once.
    Double,
    /// No difference.
    Equals,
    /// A difference that does no harm.
    Decoy,
}

impl Sort {
    pub(crate) const ALL: [Sort; 5] = [Sort::Catalogue, Sort::Outside, Sort::Double, Sort::Equals, Sort::Decoy];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Sort::Catalogue => "catalogue",
            Sort::Outside => "outside",
            Sort::Double => "double",
            Sort::Equals => "equals",
            Sort::Decoy => "decoy",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Sort> {
        Sort::ALL.into_iter().find(|sort| sort.name() == name)
    }
}

/// A set-up with what was put into it.
#[derive(Clone)]
pub(crate) struct Draw {
    pub(crate) sort: Sort,
    pub(crate) case: Case,
    /// Where the twin is that differs, or would.
    pub(crate) faulty: Place,
    /// Whether another load generator sees the difference as time per request.
    pub(crate) seen_by_load: bool,
}

/// Draws.
///
/// # Errors
///
/// Where no set-up is found: a test of each kind excludes it for what is installed on this machine, and for web servers also where
/// nothing is.
pub(crate) fn draw<K: DrawnKind>(seed: u64, number: u32, installed: &Installed) -> anyhow::Result<Draw> {
    /// Half of the draws are the catalogue's; of each other sort there are at least twenty in two hundred on average.
    const SHARES: [Sort; 20] = [
        Sort::Catalogue,
        Sort::Catalogue,
        Sort::Catalogue,
        Sort::Catalogue,
        Sort::Catalogue,
        Sort::Catalogue,
        Sort::Catalogue,
        Sort::Catalogue,
        Sort::Catalogue,
        Sort::Catalogue,
        Sort::Outside,
        Sort::Outside,
        Sort::Outside,
        Sort::Double,
        Sort::Double,
        Sort::Equals,
        Sort::Equals,
        Sort::Decoy,
        Sort::Decoy,
        Sort::Decoy,
    ];
    /// Few set-ups have room for what is particular; this many are tried before something else of the sort is drawn.
    const SET_UPS: u32 = 2_000;
    /// Two faults that fit no set-up together are drawn again.
    const AGAIN: u32 = 50;
    let mut dice = Dice::of(seed.wrapping_add(K::BESIDE_SEED), number);
    let faulty = if dice.one_in(2) { Place::A } else { Place::B };
    let mut sort = *dice.pick(&SHARES);
    for _ in 0..AGAIN {
        let Some(what) = Content::<K>::draw(sort, &mut dice, installed) else {
            // There is nothing of this sort.
            sort = *dice.pick(&SHARES);
            continue;
        };
        for _ in 0..SET_UPS {
            let Some(setup) = K::set_up(&mut dice, installed) else { break };
            if let Some((case, seen_by_load)) = what.put_into(setup, &mut dice) {
                return Ok(Draw { sort, case, faulty, seen_by_load });
            }
        }
    }
    let names = installed.names().join(", ");
    anyhow::bail!("no set-up of {} was found for draw {number} of seed {seed}, with {names} installed", K::NAME)
}

/// What is put into a set-up.
enum Content<K: DrawnKind> {
    One(Drawable<K>),
    Two(Drawable<K>, Drawable<K>, Merged<K>),
    Nothing,
    Harmless(Decoy<K>),
}

impl<K: DrawnKind> Content<K> {
    /// `None` where there is nothing of this sort.
    fn draw(sort: Sort, dice: &mut Dice, installed: &Installed) -> Option<Content<K>> {
        let mut one_of = |all: &[&[Drawable<K>]]| {
            let there: Vec<_> = all.iter().copied().flatten().filter(|fault| installed.has_all(fault.needs)).collect();
            (!there.is_empty()).then(|| **dice.pick(&there))
        };
        Some(match sort {
            Sort::Catalogue => Content::One(one_of(K::CATALOGUE)?),
            Sort::Outside => Content::One(one_of(&[K::OUTSIDE])?),
            Sort::Double => {
                let merged = K::MERGED?;
                Content::Two(one_of(K::CATALOGUE)?, one_of(K::CATALOGUE)?, merged)
            }
            Sort::Equals => Content::Nothing,
            Sort::Decoy => Content::Harmless(*dice.pick(K::DECOYS)),
        })
    }

    /// The case, and whether load sees it; `None` where the set-up is none for it.
    fn put_into(&self, setup: Setup<K>, dice: &mut Dice) -> Option<(Case, bool)> {
        let (case, seen_by_load) = match self {
            Content::Nothing => (Case::equals(&setup), true),
            Content::Harmless(decoy) => (harmless(decoy, &setup, dice)?, true),
            Content::One(fault) => {
                if !(fault.fits)(&setup) {
                    return None;
                }
                (fault.case(&(fault.prepare)(setup, dice), dice), fault.seen_by_load)
            }
            Content::Two(one, other, merged) => {
                (double([one, other], *merged, setup, dice)?, one.seen_by_load && other.seen_by_load)
            }
        };
        is_possible::<K>(case).map(|case| (case, seen_by_load))
    }
}

fn harmless<K: DrawnKind>(decoy: &Decoy<K>, setup: &Setup<K>, dice: &mut Dice) -> Option<Case> {
    if !(decoy.fits)(setup) {
        return None;
    }
    let mut case = Case::equals(setup);
    let pair = case.trial.pair_mut::<K>()?;
    case.strength = (decoy.differ)(&mut pair.faulty, dice);
    case.id = format!("decoy/{}/{}", case.setup, case.strength);
    Some(case)
}

/// Two faults that leave each other as they are: neither undoes what the other does.
pub(crate) fn double<K: DrawnKind>(
    [one, other]: [&Drawable<K>; 2],
    merged: Merged<K>,
    setup: Setup<K>,
    dice: &mut Dice,
) -> Option<Case> {
    let fit = |setup: &Setup<K>| (one.fits)(setup) && (other.fits)(setup);
    if one.injection.cause == other.injection.cause || !fit(&setup) {
        return None;
    }
    let setup = (one.prepare)(setup, dice);
    // What the first one needs may leave no room for the second.
    if !(other.fits)(&setup) {
        return None;
    }
    let setup = (other.prepare)(setup, dice);
    // Nor what the second one needs for the first.
    if !((one.fits)(&setup) && (other.fits)(&setup)) {
        return None;
    }
    let healthy = setup.twin.clone();
    let (mut first, mut second) = (healthy.clone(), healthy.clone());
    let one_strength = (one.inject)(&mut first, &setup.load, dice);
    let other_strength = (other.inject)(&mut second, &setup.load, dice);
    if first == healthy || second == healthy {
        // What the one is about was taken away by what the other needs.
        return None;
    }
    let both = merged(&healthy, &first, &second)?;
    let case = one.injection.case(&setup, &one_strength, |twin| *twin = first);
    let mut case = case.and(&other.injection, &other_strength, |twin| *twin = both);
    case.alternates.extend(one.further_names(&setup).chain(other.further_names(&setup)));
    Some(case)
}

/// The case, where its twins can be what they are asked to be.
fn is_possible<K: DrawnKind>(case: Case) -> Option<Case> {
    let pair = case.trial.pair::<K>()?;
    let possible = K::is_possible(&pair.healthy) && K::is_possible(&pair.faulty);
    let differs = pair.healthy != pair.faulty;
    let should_differ = !case.truth.is_empty() || case.id.starts_with("decoy/");
    (possible && differs == should_differ).then_some(case)
}

#[cfg(test)]
impl Draw {
    /// That the two twins differ, and that there are as many faults to verify, as a draw of its sort has.
    pub(crate) fn differs_where_it_should(&self) {
        let id = &self.case.id;
        let faults = match self.sort {
            Sort::Double => 2,
            Sort::Catalogue | Sort::Outside => 1,
            Sort::Equals | Sort::Decoy => 0,
        };
        assert_eq!(self.case.truth.len(), faults, "{id}");
        assert_eq!(self.case.trial.differ_and_verify(), (self.sort != Sort::Equals, faults), "{id}");
        assert!(!id.contains(char::is_whitespace), "{id}");
    }
}

/// What draws with these faults can have at work, as results name it.
#[cfg(test)]
pub(crate) fn causes<K: DrawnKind>(is_there: impl Fn(&Drawable<K>) -> bool) -> std::collections::BTreeSet<String> {
    let named = super::catalogue::<K>().filter(|fault| is_there(fault)).map(|fault| fault.injection.cause.to_owned());
    named.chain([crate::case::NAMELESS.to_owned()]).collect()
}
