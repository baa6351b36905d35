//! `disk.group-limit`: what is served is read from the disk for each request, and the server's control group may read only so much of it.

use super::slow_reads::on_a_disk;
use super::*;
use crate::world::Throttle;

pub(super) const INJECTION: Injection = Injection::on_host("disk.group-limit", verify);

pub(super) fn cases() -> Vec<Case> {
    let nginx = || Setup::of(Server::Nginx);
    let none = Throttle::default();
    let may = |throttle: Throttle| move |twin: &mut Twin| twin.http.disk_throttle = throttle;
    vec![
        INJECTION.case(
            &on_a_disk(nginx().bytes(1_100_000).connections(1)),
            "20MBps",
            may(Throttle { read_bytes: Some(20_000_000), ..none }),
        ),
        INJECTION.case(
            &on_a_disk(nginx().bytes(300_000).connections(4)),
            "300ios",
            may(Throttle { read_calls: Some(300), ..none }),
        ),
        INJECTION.case(
            &on_a_disk(nginx().https().bytes(2_000_000).connections(2)),
            "60MBps",
            may(Throttle { read_bytes: Some(60_000_000), ..none }),
        ),
    ]
}

/// Far fewer answers, and no more bytes or calls of the device than the group may have.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("ms per request", ms_per_request(arena, &ToolLoad::over(4))?, 1.3))
}
