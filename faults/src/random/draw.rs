//! One draw: a function of seed, number, and what is installed, and of nothing else.

use super::installed::Installed;
use super::setups;
use crate::case::{Case, Setup};
use crate::dice::Dice;
use crate::injections::drawn::{self, Drawable, decoys, outside};
use crate::kinds::web::Web;
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
/// Where no set-up is found, which a test excludes for what is installed on this machine and for nothing at all.
pub(crate) fn draw(seed: u64, number: u32, installed: &Installed) -> anyhow::Result<Draw> {
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
    let mut dice = Dice::of(seed, number);
    let faulty = if dice.one_in(2) { Place::A } else { Place::B };
    let sort = *dice.pick(&SHARES);
    for _ in 0..AGAIN {
        let what = Content::draw(sort, &mut dice, installed);
        for _ in 0..SET_UPS {
            let setup = setups::draw(&mut dice, installed);
            if let Some((case, seen_by_load)) = what.put_into(setup, &mut dice) {
                return Ok(Draw { sort, case, faulty, seen_by_load });
            }
        }
    }
    anyhow::bail!("no set-up was found for draw {number} of seed {seed}")
}

/// What is put into a set-up.
enum Content {
    One(Drawable),
    Two(Drawable, Drawable),
    Nothing,
    Harmless(decoys::Decoy),
}

impl Content {
    fn draw(sort: Sort, dice: &mut Dice, installed: &Installed) -> Content {
        let there = |all: Vec<Drawable>| -> Vec<Drawable> {
            all.into_iter().filter(|fault| installed.has_all(fault.needs)).collect()
        };
        let catalogue = || there(drawn::catalogue());
        match sort {
            Sort::Catalogue => Content::One(*dice.pick(&catalogue())),
            Sort::Outside => Content::One(*dice.pick(&there(outside::ALL.to_vec()))),
            Sort::Double => Content::Two(*dice.pick(&catalogue()), *dice.pick(&catalogue())),
            Sort::Equals => Content::Nothing,
            Sort::Decoy => Content::Harmless(*dice.pick(decoys::ALL)),
        }
    }

    /// The case, and whether load sees it; `None` where the set-up is none for it.
    fn put_into(&self, setup: Setup, dice: &mut Dice) -> Option<(Case, bool)> {
        let (case, seen_by_load) = match self {
            Content::Nothing => (Case::equals(&setup), true),
            Content::Harmless(decoy) => (harmless(decoy, &setup, dice)?, true),
            Content::One(fault) => {
                if !(fault.fits)(&setup) {
                    return None;
                }
                (fault.case(&(fault.prepare)(setup, dice), dice), fault.seen_by_load)
            }
            Content::Two(one, other) => (double(one, other, setup, dice)?, one.seen_by_load && other.seen_by_load),
        };
        is_possible(case).map(|case| (case, seen_by_load))
    }
}

fn harmless(decoy: &decoys::Decoy, setup: &Setup, dice: &mut Dice) -> Option<Case> {
    if !(decoy.fits)(setup) {
        return None;
    }
    let mut case = Case::equals(setup);
    let pair = case.trial.pair_mut::<Web>()?;
    case.strength = (decoy.differ)(&mut pair.faulty, dice);
    case.id = format!("decoy/{}/{}", case.setup, case.strength);
    Some(case)
}

/// Two faults that leave each other as they are: neither undoes what the other does.
fn double(one: &Drawable, other: &Drawable, setup: Setup, dice: &mut Dice) -> Option<Case> {
    let fit = |setup: &Setup| (one.fits)(setup) && (other.fits)(setup);
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
    Some(case.and(&other.injection, &other_strength, |twin| *twin = both))
}

/// A twin with the changes of both; `None` where both change the same part.
fn merged(
    healthy: &crate::twin::Twin,
    one: &crate::twin::Twin,
    other: &crate::twin::Twin,
) -> Option<crate::twin::Twin> {
    fn part<T: Clone + PartialEq>(healthy: &T, one: &T, other: &T) -> Option<T> {
        match (one == healthy, other == healthy) {
            (_, true) => Some(one.clone()),
            (true, false) => Some(other.clone()),
            (false, false) => None,
        }
    }
    Some(crate::twin::Twin {
        server: part(&healthy.server, &one.server, &other.server)?,
        tls: part(&healthy.tls, &one.tls, &other.tls)?,
        content: part(&healthy.content, &one.content, &other.content)?,
        http: part(&healthy.http, &one.http, &other.http)?,
        process: part(&healthy.process, &one.process, &other.process)?,
        network: part(&healthy.network, &one.network, &other.network)?,
        front: part(&healthy.front, &one.front, &other.front)?,
        address: part(&healthy.address, &one.address, &other.address)?,
    })
}

/// The case, where its servers can be what they are asked to be.
fn is_possible(mut case: Case) -> Option<Case> {
    let pair = case.trial.pair_mut::<Web>()?;
    let possible = pair.healthy.possible().is_ok() && pair.faulty.possible().is_ok();
    let differs = pair.healthy != pair.faulty;
    let should_differ = !case.truth.is_empty() || case.id.starts_with("decoy/");
    (possible && differs == should_differ).then_some(case)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::twin::{Content as Body, Handler};
    use std::collections::{BTreeMap, BTreeSet};

    /// But for the two builds of OpenSSL, which have to be where draws look for them.
    const ALL: [&str; 9] = ["apache2", "bindfs", "haproxy", "java", "lighttpd", "nginx", "node", "php-fpm", "strace"];

    fn all_installed() -> Installed {
        Installed::of(ALL.map(str::to_owned).to_vec())
    }

    fn draws(count: u32, installed: &Installed) -> Vec<Draw> {
        (1..=count).map(|number| draw(7, number, installed).unwrap()).collect()
    }

    #[test]
    fn the_same_seed_and_number_draw_the_same_and_other_ones_do_not() {
        let ids = |seed| -> Vec<_> {
            let of = |number| draw(seed, number, &all_installed()).unwrap();
            (1..=50).map(of).map(|drawn| (drawn.case.id, drawn.faulty)).collect()
        };
        assert_eq!(ids(3), ids(3));
        let (one, other) = (ids(3), ids(4));
        assert!(one.iter().zip(&other).filter(|(one, other)| one == other).count() < 5);
    }

    #[test]
    fn each_dimension_is_reached() {
        let mut seen: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        let mut bytes = Vec::new();
        for mut drawn in draws(3000, &all_installed()) {
            for cause in &drawn.case.truth {
                seen.entry("cause").or_default().insert((*cause).to_owned());
            }
            let strength = drawn.case.strength.clone();
            let pair = drawn.case.trial.pair_mut::<Web>().unwrap();
            let (twin, load) = (&pair.healthy, &pair.load);
            let mut saw = |what, value: String| seen.entry(what).or_default().insert(value);
            saw("sort", drawn.sort.name().to_owned());
            saw("place", drawn.faulty.target_name().to_owned());
            saw("server", twin.server.name().to_owned());
            saw("tls", format!("{:?}", twin.tls.as_ref().map(|tls| (tls.key, tls.versions))));
            saw("http2", format!("{} {}", twin.http.http2, load.streams > 1));
            saw("http2 server", if twin.http.http2 { twin.server.name() } else { "none" }.to_owned());
            saw("kept", format!("{} {}", load.connect_anew, load.resumption));
            saw("headers", format!("{:?}", load.headers));
            saw("far", (twin.network.path != crate::twin::Path::Veth).to_string());
            saw("head", (twin.http.padding_bytes > 0).to_string());
            if let Handler::Sleeps { .. } | Handler::Burns { .. } | Handler::SlowShare { .. } | Handler::Limits { .. } =
                pair.faulty.http.handler
            {
                saw("handler", pair.faulty.http.handler.word().split(':').next().unwrap_or_default().to_owned());
            }
            if drawn.sort == Sort::Decoy {
                saw("decoy", strength.trim_matches(|c: char| c.is_ascii_digit()).to_owned());
            }
            if let Body::Text { bytes: of } = twin.content {
                bytes.push(of);
            }
        }
        let count = |what: &str| seen[what].len();
        assert_eq!(count("sort"), Sort::ALL.len());
        assert_eq!((count("place"), count("server"), count("kept"), count("far"), count("head")), (2, 9, 3, 2, 2));
        assert_eq!((count("http2"), count("http2 server")), (3, 6));
        assert!(count("tls") >= 8, "{:?}", seen["tls"]);
        assert_eq!(count("headers"), setups::HEADERS.iter().collect::<BTreeSet<_>>().len());
        assert_eq!(count("handler"), 4, "{:?}", seen["handler"]);
        assert!(count("decoy") >= decoys::ALL.len(), "{:?}", seen["decoy"]);
        let causes: BTreeSet<String> = drawn::catalogue()
            .iter()
            .filter(|fault| all_installed().has_all(fault.needs))
            .map(|fault| fault.injection.cause.to_owned())
            .chain([crate::case::NAMELESS.to_owned()])
            .collect();
        assert_eq!(seen["cause"], causes);
        assert!(bytes.iter().any(|bytes| *bytes < 400) && bytes.iter().any(|bytes| *bytes > 1_500_000));
    }

    #[test]
    fn no_combination_is_impossible_and_twins_differ_where_they_should() {
        for mut drawn in draws(1500, &all_installed()) {
            let id = drawn.case.id.clone();
            let verified = drawn.case.trial.differ_and_verify();
            let differs = !matches!(drawn.sort, Sort::Equals);
            assert_eq!(verified, (differs, drawn.case.truth.len()), "{id}");
            assert_eq!(
                drawn.case.truth.len(),
                match drawn.sort {
                    Sort::Double => 2,
                    Sort::Catalogue | Sort::Outside => 1,
                    Sort::Equals | Sort::Decoy => 0,
                }
            );
            let pair = drawn.case.trial.pair_mut::<Web>().unwrap();
            for twin in [&pair.healthy, &pair.faulty] {
                assert_eq!(twin.possible(), Ok(()), "{id}");
            }
            assert!(!id.contains(char::is_whitespace), "{id}");
        }
    }

    #[test]
    fn only_what_is_installed_is_drawn() {
        let bare = Installed::of(Vec::new());
        for mut drawn in draws(300, &bare) {
            let pair = drawn.case.trial.pair_mut::<Web>().unwrap();
            assert!(
                pair.healthy.server == crate::twin::Server::Ruler || pair.healthy.server == crate::twin::Server::Own
            );
            assert!(!drawn.case.truth.contains(&"cpu.traced") && !drawn.case.truth.contains(&"net.extra-hop"));
        }
    }

    #[test]
    fn whatever_is_installed_there_is_something_to_draw() {
        let of = |names: Vec<&str>| Installed::of(names.into_iter().map(str::to_owned).collect());
        for one in ALL {
            draws(150, &of(vec![one]));
            draws(150, &of(ALL.into_iter().filter(|other| *other != one).collect()));
        }
    }

    #[test]
    fn what_duel_may_name_over_http_is_drawn() {
        /// Those that are not, and why: none at present.
        const NOT_DRAWN: [(&str, &str); 0] = [];
        let known: BTreeSet<&str> = duel_diagnose::catalogue_of("http").iter().map(|entry| entry.id).collect();
        let drawn: BTreeSet<&str> = drawn::catalogue().iter().map(|fault| fault.injection.cause).collect();
        let excused: BTreeSet<&str> = NOT_DRAWN.iter().map(|(cause, _)| *cause).collect();
        let nameable: Vec<&str> =
            known.into_iter().filter(|cause| !duel_diagnose::unproven().contains(cause)).collect();
        assert!(nameable.len() > 30, "{nameable:?}");
        for cause in nameable {
            assert_ne!(drawn.contains(cause), excused.contains(cause), "{cause}");
        }
    }

    #[test]
    fn causes_that_are_drawn_are_those_of_duel_and_nothing_else_is() {
        let known: BTreeSet<&str> = duel_diagnose::catalogue().iter().map(|entry| entry.id).collect();
        for fault in drawn::catalogue() {
            assert!(known.contains(fault.injection.cause), "{}", fault.injection.cause);
        }
        assert!(!known.contains(crate::case::NAMELESS));
    }

    #[test]
    fn a_fault_whose_subject_the_other_takes_away_is_not_put_beside_it() {
        let setup = Setup::of(crate::twin::Server::Java);
        let of_java = |cause: &str| {
            let mut all = drawn::catalogue().into_iter();
            all.find(|fault| fault.injection.cause == cause && (fault.fits)(&setup)).unwrap()
        };
        // Both need a handler: one that takes a lock, and one that sleeps without.
        let (lock, few) = (of_java("lock.contention"), of_java("http.few-workers"));
        for number in 0..50 {
            let mut dice = Dice::of(1, number);
            assert!(double(&lock, &few, setup.clone(), &mut dice).is_none());
            assert!(double(&few, &lock, setup.clone(), &mut dice).is_none());
        }
    }

    #[test]
    fn two_faults_of_one_part_are_not_put_together() {
        let healthy = crate::twin::Twin::healthy(crate::twin::Server::Nginx);
        let with = |change: fn(&mut crate::twin::Twin)| {
            let mut twin = healthy.clone();
            change(&mut twin);
            twin
        };
        let (closes, gzip) = (with(|twin| twin.http.keepalive = false), with(|twin| twin.http.gzip_level = Some(1)));
        let small = with(|twin| twin.network.mtu = Some(500));
        assert!(merged(&healthy, &closes, &gzip).is_none());
        let both = merged(&healthy, &closes, &small).unwrap();
        assert!(!both.http.keepalive && both.network.mtu == Some(500));
    }
}
