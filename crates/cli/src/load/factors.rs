//! Factors: what was typed as a list, and what it means.
//!
//! One rule for all of them: `--vary NAME=LEVEL,LEVEL,...` makes a factor of any parameter that can be one. Options whose
//! value cannot hold a comma otherwise (`-c`, `--rate`, `--cipher`, most settings) take such a list themselves. The lists of
//! `--ciphers` and `--groups` are orders of preference, that of `--encoding` is what is accepted, and they keep that meaning
//! unless what stands for none is among them (`identity,gzip`); as levels of a factor what is allowed together is joined by `+`.

use crate::load::{LoadFlags, values};
use crate::outcome::Usage;
use clap::Args;
use duel_model::web::settings::CIPHER;
use duel_model::{
    Bound, Factor, MILLISECOND_NS, Nanos, Plan, SECOND_NS, Schema, Threads, WorkloadPlan, format_duration_ns,
    sanitize_line,
};

/// What is varied, and the options that exist for that.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Factors")]
pub(crate) struct FactorFlags {
    /// Vary NAME over these levels (repeatable): connections, rate, method, body-size, tls, cipher, group, resumption,
    /// keepalive, encoding, path, or a setting such as h2-window, or of other targets op, block or mask. All combinations of levels are run in random order. 8..64 stands for 8,16,32,64; a level of tls, cipher, group or encoding may
    /// allow several: tls=1.2,1.3,1.2+1.3. -c, --rate, -m, --keepalive, --body-size, --tls, --cipher and most settings take
    /// lists themselves
    #[arg(long, value_name = "NAME=LEVELS")]
    pub(crate) vary: Vec<String>,
}

/// Load time for each treatment on each target where none is given: twelve slots of up to a quarter of a second, and their
/// share of warm-up.
const LOAD_PER_CELL_NS: Nanos = 4 * SECOND_NS;
/// Fewest slots of each treatment on each target: six rounds are the fewest for an interval of 95 %.
const FEWEST_SLOTS: u64 = 6;
/// Shortest slot that an experiment is planned with: below, starting and ending a slot would be much of it.
const SHORTEST_SLOT_NS: Nanos = 50 * MILLISECOND_NS;

/// The plan with what is varied in it; as it was where nothing is.
pub(crate) fn vary(mut plan: Plan, load: &LoadFlags, has_requests: bool) -> Result<Plan, Usage> {
    let factors = all(load, plan.schema())?;
    if factors.is_empty() {
        load.settings.refuse_unheard(&plan.workload, &[])?;
        plan.load.threads = plan.load.threads.min(plan.load.connections);
        duel_lab::check_settings(&plan).map_err(|error| Usage(error.to_string()))?;
        return Ok(plan);
    }
    if has_requests {
        return Err(Usage("-n counts the requests of one load; with factors give a duration (-d)".into()));
    }
    if !plan.load.shape.stages.is_empty() || plan.load.shape.search.is_some() {
        return Err(Usage("--stages and --find-rate are experiments of their own: leave the factors out".into()));
    }
    if load.think.is_some() && factors.iter().any(|factor| matches!(factor, Factor::Rate(_))) {
        return Err(Usage("--think is for closed loops, and a rate makes an open one".into()));
    }
    if load.request.follow > 0 && factors.iter().any(|factor| matches!(factor, Factor::Path(_))) {
        return Err(Usage("--follow cannot be used with a factor 'path': each path would lead elsewhere".into()));
    }
    if let Some(factor) = factors.iter().find(|factor| !has_meaning(factor, &plan.workload)) {
        return Err(Usage(match &plan.workload {
            WorkloadPlan::Plain(kind) if kind.schema.params.is_empty() => {
                format!("'{}' has no meaning for null:, which sends nothing", factor.name())
            }
            _ => format!("'{}' has no meaning for {} targets", factor.name(), plan.schema().kind),
        }));
    }
    let most = |factor: &Factor| match factor {
        Factor::Connections(levels) => levels.iter().copied().max(),
        _ => None,
    };
    let threads = plan.load.threads;
    let most_connections = factors.iter().find_map(most).unwrap_or(plan.load.connections);
    plan.factors = factors;
    if plan.treatments() > Plan::MOST_TREATMENTS {
        return Err(Usage(format!(
            "the factors make {} treatments ({}), and at most {} are run; give fewer levels, or vary fewer factors at a time",
            plan.treatments(),
            plan.factors
                .iter()
                .map(|factor| format!("{} {}", factor.levels(), factor.name()))
                .collect::<Vec<_>>()
                .join(" x "),
            Plan::MOST_TREATMENTS
        )));
    }
    for treatment in 0..plan.treatments() {
        let treated = plan.treated(treatment);
        load.settings.refuse_unheard(&treated.workload, &plan.factors)?;
        checked(&treated)?;
    }
    let mut varied = Plan { factors: plan.factors.clone(), ..plan.treated(0) };
    if plan.schema().threads != Threads::Working {
        varied.load.threads = threads.min(most_connections);
    }
    give_time(&mut varied, load.duration.is_some())?;
    Ok(varied)
}

/// Whether a workload knows what a factor varies.
fn has_meaning(factor: &Factor, workload: &WorkloadPlan) -> bool {
    match (workload, factor) {
        (_, Factor::Connections(_) | Factor::Rate(_)) => true,
        (workload, Factor::Setting(of)) => workload.schema() == of.schema,
        (WorkloadPlan::Plain(_), _) => false,
        (WorkloadPlan::Http(_), _) => true,
    }
}

/// What an experiment is going to be, and how long it takes, in one sentence.
pub(crate) fn announcement(plan: &Plan) -> String {
    let factor = |factor: &Factor| {
        let levels: Vec<String> = (0..factor.levels()).map(|level| factor.label(level)).collect();
        format!("{} {}", factor.name(), levels.join(", "))
    };
    let factors: Vec<String> = plan.factors.iter().map(factor).collect();
    let (treatments, targets) = (plan.treatments(), plan.targets.len());
    format!(
        "Experiment: {treatments} treatments ({}) on {targets} target{}, in random order within blocks: {} of load, and a \
         little more for connecting.",
        sanitize_line(&factors.join("; ")),
        if targets == 1 { "" } else { "s" },
        format_duration_ns(plan.compare.max_load_ns as f64)
    )
}

/// All factors: those of options with lists first, the load's, those of settings, the request's; then those of `--vary` in their
/// order.
fn all(load: &LoadFlags, schema: &'static Schema) -> Result<Vec<Factor>, Usage> {
    let is_list = |text: &&str| text.contains(',') || text.contains("..");
    let listed = |name: &'static str, list: Option<&str>| {
        list.filter(is_list).map(|list| values::factor(&format!("--{name}"), name, list, schema)).transpose()
    };
    // Where -t counts lanes, a list of it is one of lanes.
    let threads = load.threads.as_deref().filter(|_| schema.threads != Threads::OfDuel).filter(is_list);
    let mut factors = Vec::new();
    factors.extend(threads.map(|list| values::factor("--threads", "connections", list, schema)).transpose()?);
    factors.extend(listed("connections", load.lanes(schema)?)?);
    factors.extend(listed("rate", load.rate.as_deref())?);
    factors.extend(load.settings.factors(schema)?);
    factors.extend(listed(CIPHER.name, load.tls.cipher.as_deref())?);
    for vary in &load.factors.vary {
        let (name, levels) = vary.split_once('=').ok_or_else(|| {
            Usage(format!(
                "--vary '{}' has not the form NAME=LEVEL,LEVEL,...; NAME is one of {}",
                sanitize_line(vary),
                Factor::names(schema).collect::<Vec<_>>().join(", ")
            ))
        })?;
        factors.push(values::factor(&format!("--vary {}", sanitize_line(name)), name.trim(), levels, schema)?);
    }
    for (place, factor) in factors.iter().enumerate() {
        if factors[..place].iter().any(|known| known.name() == factor.name()) {
            return Err(Usage(format!("'{}' is varied twice", factor.name())));
        }
        distinct(factor)?;
    }
    Ok(factors)
}

/// A factor takes two levels that differ.
fn distinct(factor: &Factor) -> Result<(), Usage> {
    let levels: Vec<String> = (0..factor.levels()).map(|level| factor.typed(level)).collect();
    if levels.len() < 2 {
        return Err(Usage(format!("'{}' has one level; it takes two to vary something", factor.name())));
    }
    match levels.iter().enumerate().find(|(place, level)| levels[..*place].contains(level)) {
        None => Ok(()),
        Some((_, level)) => Err(Usage(format!("'{}' has the level {} twice", factor.name(), sanitize_line(level)))),
    }
}

/// What can be found out about a treatment without the network.
fn checked(plan: &Plan) -> Result<(), Usage> {
    duel_lab::check_settings(plan).map_err(|error| Usage(error.to_string()))
}

/// The load time of the whole: as given, if that is enough, or as much as all treatments take.
fn give_time(plan: &mut Plan, is_given: bool) -> Result<(), Usage> {
    let cells = plan.treatments() as u64 * plan.targets.len() as u64;
    // Warm-up takes an eighth.
    let slot_ns = plan.compare.slot_ns.unwrap_or(SHORTEST_SLOT_NS);
    let least_ns = cells.saturating_mul(FEWEST_SLOTS * slot_ns / 7 * 8);
    let typed_ns = match plan.load.bound {
        Bound::Duration(ns) => ns,
        Bound::Ops(_) => plan.compare.max_load_ns,
    };
    let total_ns = if is_given { typed_ns } else { typed_ns.max(cells * LOAD_PER_CELL_NS).max(least_ns) };
    if total_ns < least_ns {
        let seconds = least_ns.div_ceil(SECOND_NS);
        return Err(Usage(format!(
            "{} is too short for {} treatments on {} target{}: {FEWEST_SLOTS} slots of {} for each take {seconds} s of \
             load with warm-up; give -d {seconds}s or more, or fewer levels",
            format_duration_ns(total_ns as f64),
            plan.treatments(),
            plan.targets.len(),
            if plan.targets.len() == 1 { "" } else { "s" },
            format_duration_ns(slot_ns as f64),
        )));
    }
    plan.compare.max_load_ns = total_ns;
    plan.load.bound = Bound::Duration(total_ns);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::tests::{plan_of, refused};
    use duel_model::web::settings::{BODY_SIZE, ENCODING, KEEPALIVE, METHOD, TLS};
    use duel_model::{Body, Param, SettingLevels, web};

    const TWO: [&str; 3] = ["duel", "https://a.example/x?y", "https://b.example/"];

    fn factors(options: &[&str]) -> Vec<Factor> {
        plan_of([&TWO[..], options].concat()).factors
    }

    fn setting(param: &'static Param, levels: &[&str]) -> Factor {
        let levels = levels.iter().map(|level| (*level).to_owned()).collect();
        Factor::Setting(SettingLevels { schema: &web::SCHEMA, param, levels })
    }

    #[test]
    fn lists_make_factors_and_ranges_double() {
        assert_eq!(factors(&["-c", "1,2,8..64"]), [Factor::Connections(vec![1, 2, 8, 16, 32, 64])]);
        assert_eq!(factors(&["-c", "3..20"]), [Factor::Connections(vec![3, 6, 12, 20])]);
        assert_eq!(factors(&["--rate", "0.5..3, 100"]), [Factor::Rate(vec![0.5, 1.0, 2.0, 3.0, 100.0])]);
        assert_eq!(factors(&["--body-size", "0,1k..4k"]), [setting(&BODY_SIZE, &["0", "1024", "2048", "4096"])]);
        assert_eq!(
            factors(&["-m", "GET,HEAD", "--keepalive", "on,off", "-c", "1,2"]),
            [Factor::Connections(vec![1, 2]), setting(&METHOD, &["GET", "HEAD"]), setting(&KEEPALIVE, &["on", "off"])]
        );
        assert_eq!(factors(&["-c", "64", "--tls", "1.2+1.3", "--encoding", "gzip,br"]), []);
        let [(gcm, chacha)] = [("TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256")];
        assert_eq!(
            factors(&["--tls", "1.2, 1.3", "--cipher", &format!("{gcm},{gcm}+{chacha}")]),
            [setting(&TLS, &["1.2", "1.3"]), setting(&CIPHER, &[gcm, &format!("{gcm}+{chacha}")])]
        );
        assert_eq!(factors(&["--encoding", "identity, gzip"]), [setting(&ENCODING, &["identity", "gzip"])]);
    }

    #[test]
    fn anything_can_be_varied_and_levels_may_allow_several() {
        let all = factors(&[
            "--vary",
            "encoding=identity,gzip,gzip+br",
            "--vary",
            "tls=1.2,1.3,1.2+1.3",
            "--vary",
            "path=/a,/b?c=d",
        ]);
        let [encodings, versions, Factor::Path(paths)] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!(*encodings, setting(&ENCODING, &["identity", "gzip", "gzip+br"]));
        assert_eq!(*versions, setting(&TLS, &["1.2", "1.3", "1.2+1.3"]));
        assert_eq!(paths, &["/a", "/b?c=d"]);
        assert_eq!(
            factors(&[
                "--vary",
                "cipher=TLS_AES_128_GCM_SHA256,TLS_CHACHA20_POLY1305_SHA256",
                "--vary",
                "group=x25519,secp256r1"
            ])
            .iter()
            .map(Factor::name)
            .collect::<Vec<_>>(),
            ["cipher", "group"]
        );
    }

    #[test]
    fn the_rest_of_the_plan_is_that_of_the_first_treatment() {
        let plan =
            plan_of([&TWO[..], &["-c", "1,64", "-t", "8", "--vary", "path=/p,/q", "--body-size", "1k,2k"]].concat());
        assert_eq!(
            (plan.load.connections, plan.load.threads),
            (1, 8),
            "as many threads as the most connections may have"
        );
        assert_eq!(plan.targets[0].address, "https://a.example/p");
        let WorkloadPlan::Http(http) = &plan.workload else { panic!("http") };
        assert_eq!(http.body, Body::Generated(1024));
        assert_eq!(plan.treatments(), 8);
        assert_eq!(plan.compare.max_load_ns, 64 * SECOND_NS);
        assert_eq!(
            announcement(&plan),
            "Experiment: 8 treatments (connections 1, 64; body-size 1 KiB, 2 KiB; path /p, /q) on 2 targets, in random \
             order within blocks: 64.0 s of load, and a little more for connecting."
        );
    }

    #[test]
    fn a_bad_level_is_named() {
        for (options, parts) in [
            (&["-c", "1,x,4"][..], &["--connections takes", "got 'x' in '1,x,4'"][..]),
            (&["-c", "1,,4"], &["got '' in '1,,4'"]),
            (&["-c", "0,4"], &["-c 0 in '0,4'"]),
            (&["-c", "1,2,1"], &["'connections' has the level 1 twice"]),
            (&["-c", "8..8"], &["'8..8' is no range"]),
            (&["-c", "0..8"], &["'0..8' is no range"]),
            (&["--rate", "100,fast"], &["--rate takes", "got 'fast' in '100,fast'"]),
            (&["--rate", "100,0"], &["above 0", "got '0'"]),
            (&["--keepalive", "on,maybe"], &["on or off", "'maybe'"]),
            (&["--body-size", "1k,huge"], &["--body-size takes a size", "got 'huge'"]),
            (&["--vary", "colour=red,blue"], &["'colour' is nothing that can be varied", "connections, rate"]),
            (&["--vary", "colour"], &["NAME=LEVEL"]),
            (&["--vary", "connections=4"], &["takes two"]),
            (&["--vary", "connections=4,5", "-c", "1,2"], &["varied twice"]),
            (&["--vary", "tls=1.1,1.2"], &["1.2 and 1.3", "got '1.1'"]),
            (&["--vary", "cipher=,TLS_AES_128_GCM_SHA256"], &["got ''"]),
            (&["--vary", "path=/a,b"], &["begin with /", "got 'b'"]),
            (&["--vary", "cipher=TLS_AES_128_GCM_SHA256,NONSENSE"], &["NONSENSE"]),
            (&["--encoding", "identity,gzip", "--vary", "encoding=gzip,br"], &["varied twice"]),
            (
                &["-c", "1..1024", "-m", "A,B,C,D,E,F,G,H,I,J,K,L,M,N,O,P,Q,R,S,T"],
                &["220 treatments", "11 connections x 20 method"],
            ),
            (&["-c", "1,2,4,8", "-d", "1s"], &["too short for 4 treatments on 2 targets", "-d 3s"]),
            (&["--vary", "path=/a,/b", "--follow", "3"], &["--follow"]),
            (&["--vary", "rate=1,2", "--think", "1s"], &["--think"]),
        ] {
            let said = refused([&TWO[..], options].concat());
            assert!(parts.iter().all(|part| said.contains(part)), "{options:?}: {said}");
        }
        let said = refused(["duel", "run", "http://a.example/", "-c", "1,2", "-n", "100"]);
        assert!(said.contains("-n counts"), "{said}");
        let said = refused(["duel", "run", "null:", "-m", "GET,HEAD"]);
        assert!(said.contains("null:"), "{said}");
    }
}
