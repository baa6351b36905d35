//! Runs with factors.

use super::{doubt, pair, server};
use duel_model::*;

fn around(value: f64, share: f64) -> Ranged {
    Ranged { value, low: Some(value * (1.0 - share)), high: Some(value * (1.0 + share)) }
}

/// A level at which A serves `rate` and B a share of it.
fn level(label: &str, number: Option<f64>, rate: f64, share: f64, call: Call, targets: usize) -> LevelVerdict {
    let figure = |target: &str, metric: Metric, value: f64| LevelFigure {
        target: target.into(),
        metric,
        figure: around(value, 0.021),
    };
    let names = ["A", "B"];
    let shares = [1.0, share];
    LevelVerdict {
        label: label.into(),
        number,
        figures: (0..targets)
            .flat_map(|target| {
                let rate = rate * shares[target];
                [
                    figure(names[target], Metric::Rate, rate),
                    figure(names[target], Metric::ResponseP50, number.unwrap_or(1.0) * 1e9 / rate),
                    figure(names[target], Metric::ResponseP99, number.unwrap_or(1.0) * 3.2e9 / rate),
                ]
            })
            .collect(),
        pairs: if targets < 2 {
            vec![]
        } else {
            vec![
                pair("B", Metric::Rate, call, Some([share, share * 0.98, share * 1.02])),
                pair("B", Metric::ResponseP50, call, Some([1.0 / share, 0.98 / share, 1.02 / share])),
                pair("B", Metric::ResponseP99, Call::Unknown, None),
            ]
        },
    }
}

fn law(lambda: f64, sigma: f64, kappa: f64, peak: bool, misfit: bool) -> ScalingLaw {
    ScalingLaw {
        lambda_per_s: around(lambda, 0.03),
        sigma: around(sigma, 0.2),
        kappa: Ranged { low: Some(0.0), ..around(kappa, 0.9) },
        peak_connections: peak.then(|| Ranged { high: None, ..around(((1.0 - sigma) / kappa).sqrt(), 0.2) }),
        misfit: misfit.then_some(ScalingMisfit { connections: 8, ratio: 0.831 }),
    }
}

/// Five numbers of connections; A follows the law, B has a knee, and the generator was the limit at the last.
pub fn scaling(targets: usize) -> (Run, Verdict) {
    let servers =
        [server("A", "https://a.example/", 4_000, 900_000), server("B", "https://b.example/", 2_000, 900_000)];
    let mut run = super::run(&servers[..targets], 6);
    run.plan.factors = vec![Factor::Connections(vec![1, 2, 4, 8, 16, 32])];
    let rates = [500.0, 980.0, 1_900.0, 3_400.0, 5_100.0, 5_600.0];
    let shares = [1.004, 0.97, 0.81, 0.55, 0.4, 0.39];
    let levels: Vec<LevelVerdict> = (0..6)
        .map(|i| {
            let n = 1_u32 << i;
            let call = if i == 0 { Call::Equivalent } else { Call::Slower };
            level(&n.to_string(), Some(f64::from(n)), rates[i], shares[i], call, targets)
        })
        .collect();
    let point = |i: usize, target: usize| ScalingPoint {
        connections: 1 << i,
        rate: around(rates[i] * [1.0, shares[i]][target], 0.021),
        fitted_per_s: Some(rates[i] * 1.01),
        left_out: (i == 5).then(|| "the generator was the limit".to_owned()),
    };
    let curve = |target: usize, law: ScalingLaw| ScalingCurve {
        shape: None,
        target: ["A", "B"][target].into(),
        points: (0..6).map(|i| point(i, target)).collect(),
        band: [(1.0, 500.0), (32.0, 5_600.0)]
            .map(|(connections, rate)| ScalingBand { connections, low_per_s: rate * 0.97, high_per_s: rate * 1.03 })
            .into(),
        law: Some(law),
        unfitted: None,
    };
    let mut curves =
        vec![curve(0, law(502.0, 0.021, 0.00081, true, false)), curve(1, law(497.0, 0.31, 1e-5, false, true))];
    curves.truncate(targets);
    let differences = vec![ScalingDifference {
        baseline: "A".into(),
        target: "B".into(),
        lambda_ratio: around(0.99, 0.01),
        sigma_difference: around(0.289, 0.1),
        kappa_difference: Ranged { value: -0.0008, low: Some(-0.001), high: Some(-0.0006) },
    }];
    let treatments = levels.iter().map(|l| LevelVerdict { label: format!("connections {}", l.label), ..l.clone() });
    let dependence = Dependence {
        target: "B".into(),
        metric: Metric::Rate,
        answer: DependenceAnswer::Depends,
        from: "32".into(),
        to: "1".into(),
        change: around(2.57, 0.04),
    };
    let experiment = Experiment {
        blocks: 6,
        confidence: 0.95,
        treatments: treatments.collect(),
        factors: vec![FactorVerdict {
            name: "connections".into(),
            levels,
            dependences: if targets > 1 { vec![dependence] } else { vec![] },
        }],
        costs: None,
        scaling: Some(Scaling { curves, differences: if targets > 1 { differences } else { vec![] } }),
    };
    let verdict = Verdict {
        pairs: if targets > 1 { vec![pair("B", Metric::Rate, Call::Slower, Some([0.63, 0.62, 0.64]))] } else { vec![] },
        doubts: vec![doubt(
            DoubtId::GeneratorSaturated,
            Some("A"),
            "at connections 32: the generator's busiest worker used 99 % of its CPU",
        )],
        experiment: Some(experiment),
        ..Verdict::default()
    };
    (run, verdict)
}

/// Two factors that are no numbers, one of them with foreign text.
pub fn categories() -> (Run, Verdict) {
    let (mut run, mut verdict) = scaling(2);
    let paths = ["/a?token=s3cr3t".to_owned(), "/\u{1b}[31mb<script>".to_owned()];
    let keepalive = SettingLevels {
        schema: &web::SCHEMA,
        param: &web::settings::KEEPALIVE,
        levels: vec!["on".into(), "off".into()],
    };
    run.plan.factors = vec![Factor::Setting(keepalive), Factor::Path(paths.to_vec())];
    let of = |labels: [&str; 2]| -> Vec<LevelVerdict> {
        labels.iter().map(|label| level(label, None, 900.0, 0.9, Call::Slower, 2)).collect()
    };
    let dependence = |answer| Dependence {
        target: "B".into(),
        metric: Metric::Rate,
        answer,
        from: "off".into(),
        to: "on".into(),
        change: around(1.01, 0.004),
    };
    let experiment = verdict.experiment.as_mut().expect("it has factors");
    experiment.factors = vec![
        FactorVerdict {
            name: "keepalive".into(),
            levels: of(["on", "off"]),
            dependences: vec![dependence(DependenceAnswer::Same)],
        },
        FactorVerdict {
            name: "path".into(),
            levels: of([&paths[0], &paths[1]]),
            dependences: vec![dependence(DependenceAnswer::Unknown)],
        },
    ];
    experiment.treatments =
        (0..4).map(|t| level(&run.plan.treatment_name(t), None, 900.0, 0.9, Call::Slower, 2)).collect();
    experiment.scaling = None;
    (run, verdict)
}
