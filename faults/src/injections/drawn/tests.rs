//! What draws of web servers are.

use super::*;
use crate::random::{Draw, Sort, catalogue, causes, double, draw};
use crate::twin::{Content as Body, Handler};
use std::collections::{BTreeMap, BTreeSet};

/// But for the two builds of OpenSSL, which have to be where draws look for them.
const ALL: [&str; 9] = ["apache2", "bindfs", "haproxy", "java", "lighttpd", "nginx", "node", "php-fpm", "strace"];

fn all_installed() -> Installed {
    Installed::of(ALL.map(str::to_owned).to_vec())
}

fn draws(count: u32, installed: &Installed) -> Vec<Draw> {
    (1..=count).map(|number| draw::<Web>(7, number, installed).unwrap()).collect()
}

#[test]
fn the_same_seed_and_number_draw_the_same_and_other_ones_do_not() {
    let ids = |seed| -> Vec<_> {
        let of = |number| draw::<Web>(seed, number, &all_installed()).unwrap();
        (1..=50).map(of).map(|drawn| (drawn.case.id, drawn.faulty)).collect()
    };
    assert_eq!(ids(3), ids(3));
    let (one, other) = (ids(3), ids(4));
    assert!(one.iter().zip(&other).filter(|(one, other)| one == other).count() < 5);
}

#[test]
fn old_seeds_draw_what_they_drew() {
    // Of the file of draws, as it was before there were draws of other kinds.
    let known = [
        (
            1,
            "double",
            "java-http-1k-c16-kept-typed-accept-encoding-sleeps7600us-max64-connections-over-4",
            "3of64+5100us",
            "A",
        ),
        (2, "equals", "haproxy+nginx-http-25k-c22-kept", "a-a", "A"),
        (3, "decoy", "apache-http-100k-c42-anew-rtt27000us-typed-cookie", "head-plus-53", "B"),
        (4, "catalogue", "ruler-https-1M-c8-kept-rsa2048-typed-user-agent-rtt31000us", "wmem97k", "B"),
        (8, "catalogue", "nginx+php-https-340B-c42-resumed-rsa3072", "off", "A"),
        (12, "outside", "java-https-960k-c6-anew-rsa2048", "limits-210-each-11000us", "B"),
        (19, "decoy", "apache-https-190k-c1-kept-h2-s2-p256", "rsa4096-of-kept-connections", "A"),
        (23, "catalogue", "node-https-810k-c16-anew-p256-typed-user-agent-rtt0us", "plus3100us", "A"),
    ];
    for (number, sort, setup, strength, faulty) in known {
        let Draw { sort: drawn, case, faulty: place, .. } =
            draw::<Web>(202_611_270_557, number, &all_installed()).unwrap();
        let is = (drawn.name(), &*case.setup, &*case.strength, place.target_name());
        assert_eq!(is, (sort, setup, strength, faulty), "{number}");
    }
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
    assert_eq!(seen["cause"], causes::<Web>(|fault| all_installed().has_all(fault.needs)));
    assert!(bytes.iter().any(|bytes| *bytes < 400) && bytes.iter().any(|bytes| *bytes > 1_500_000));
}

#[test]
fn no_combination_is_impossible_and_twins_differ_where_they_should() {
    for mut drawn in draws(1500, &all_installed()) {
        let id = drawn.case.id.clone();
        drawn.differs_where_it_should();
        let pair = drawn.case.trial.pair_mut::<Web>().unwrap();
        for twin in [&pair.healthy, &pair.faulty] {
            assert_eq!(twin.possible(), Ok(()), "{id}");
        }
    }
}

#[test]
fn only_what_is_installed_is_drawn() {
    let bare = Installed::of(Vec::new());
    for mut drawn in draws(300, &bare) {
        let pair = drawn.case.trial.pair_mut::<Web>().unwrap();
        assert!(pair.healthy.server == crate::twin::Server::Ruler || pair.healthy.server == crate::twin::Server::Own);
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
    /// Those that are not, and why.
    const NOT_DRAWN: [(&str, &str); 4] = [
        ("http.proxy-buffering", "no draw has a proxy that keeps answers; its faults are made by hand"),
        ("net.slow-path", "no draw has a `duel net serve` beside its servers"),
        ("net.congestion-control", "of web servers it is a suspicion; of networks it is drawn"),
        (
            "http.upstream-workers",
            "draws of http.few-workers with PHP-FPM behind nginx are it, and count either name as right",
        ),
    ];
    let known: BTreeSet<&str> = duel_diagnose::catalogue_of("http").iter().map(|entry| entry.id).collect();
    let drawn: BTreeSet<&str> = catalogue::<Web>().map(|fault| fault.injection.cause).collect();
    let excused: BTreeSet<&str> = NOT_DRAWN.iter().map(|(cause, _)| *cause).collect();
    let nameable: Vec<&str> = known.into_iter().filter(|cause| !duel_diagnose::unproven().contains(cause)).collect();
    assert!(nameable.len() > 30, "{nameable:?}");
    for cause in nameable {
        assert_ne!(drawn.contains(cause), excused.contains(cause), "{cause}");
    }
}

#[test]
fn causes_that_are_drawn_are_those_of_duel_and_nothing_else_is() {
    let known: BTreeSet<&str> = duel_diagnose::catalogue().iter().map(|entry| entry.id).collect();
    for fault in catalogue::<Web>() {
        assert!(known.contains(fault.injection.cause), "{}", fault.injection.cause);
    }
    assert!(!known.contains(crate::case::NAMELESS));
}

#[test]
fn a_fault_whose_subject_the_other_takes_away_is_not_put_beside_it() {
    let setup = Setup::of(crate::twin::Server::Java);
    let of_java = |cause: &str| {
        let mut all = catalogue::<Web>();
        all.find(|fault| fault.injection.cause == cause && (fault.fits)(&setup)).unwrap()
    };
    // Both need a handler: one that takes a lock, and one that sleeps without.
    let (lock, few) = (of_java("lock.contention"), of_java("http.few-workers"));
    for number in 0..50 {
        let mut dice = Dice::of(1, number);
        assert!(double([lock, few], merged, setup.clone(), &mut dice).is_none());
        assert!(double([few, lock], merged, setup.clone(), &mut dice).is_none());
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
