//! `app.pauses`: the server's processes are stopped and go on at a rhythm, as a garbage collector has it.

use super::*;

pub(super) const INJECTION: Injection = Injection::on_host("app.pauses", verify);

pub(super) fn cases() -> Vec<Case> {
    vec![
        INJECTION.case(&Setup::of(Server::Nginx), "60ms-each-500ms", |twin| pausing(twin, 60, 440)),
        INJECTION.case(&Setup::of(Server::Nginx).https().connecting(), "120ms-each-1500ms", |twin| pausing(twin, 120, 1_380)),
        INJECTION.case(&Setup::of(Server::Apache).bytes(20_000), "40ms-each-400ms", |twin| pausing(twin, 40, 360)),
        INJECTION.case(&Setup::of(Server::Ruler).https().bytes(100_000), "100ms-each-400ms", |twin| pausing(twin, 100, 300)),
    ]
}

pub(super) fn pausing(twin: &mut Twin, stopped_ms: u32, running_ms: u32) {
    twin.process.companion = Some(Companion::Pauser { stopped_ms, running_ms });
}

/// The faulty server's processes are stopped for as much of the time as should be, give or take a half; the healthy one's never.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    const SAMPLES: u32 = 400;
    const BETWEEN: std::time::Duration = std::time::Duration::from_millis(7);
    let (mut healthy, mut faulty) = (0, 0);
    for _ in 0..SAMPLES {
        healthy += u32::from(arena.healthy.is_stopped()?);
        faulty += u32::from(arena.faulty.is_stopped()?);
        std::thread::sleep(BETWEEN);
    }
    let seen = f64::from(faulty) / f64::from(SAMPLES);
    let expected = match arena.faulty.twin().process.companion {
        Some(Companion::Pauser { stopped_ms, running_ms }) => f64::from(stopped_ms) / f64::from(stopped_ms + running_ms),
        _ => f64::NAN,
    };
    Ok(Bite {
        bites: (0.5 * expected..=1.5 * expected).contains(&seen) && healthy == 0,
        figures: format!(
            "of the time stopped: {:.0} %, told {:.0} %, against {healthy}",
            100.0 * seen,
            100.0 * expected
        ),
    })
}
