//! Faults of the catalogue, and how strong they are drawn.

use super::*;

pub(super) const ALL: &[Drawable<Net>] = &[
    Drawable::new(
        path_delay::INJECTION,
        |setup| setup.sends(&[Op::Exchange, Op::Connect]),
        |twin, _, dice| longer(twin, dice.whole(500, 30_000)),
    )
    // Both through the relay, or it would differ, too.
    .after(|setup, _| if setup.is_near() { setup.over_relay(0) } else { setup }),
    // A flow that waits for acknowledgements, on the near path as well.
    Drawable::new(
        path_delay::INJECTION,
        |setup| setup.sends(&[Op::BulkReverse]) && setup.load.0 <= 4 && setup.is_far(),
        |twin, _, dice| longer(twin, dice.whole(3_000, 30_000)),
    )
    .after(|setup, dice| {
        let kib = dice.whole(64, 512);
        setup.with(&format!("wmem{kib}k"), |twin| small_window::sends(twin, u64::from(kib)))
    }),
    Drawable::new(
        small_window::INJECTION,
        |setup| setup.flows() && setup.load.0 <= 4 && (setup.is_near() || setup.is_far()),
        |twin, _, dice| {
            let kib = dice.whole(16, 192);
            if twin.op == Op::Bulk {
                small_window::receives(twin, u64::from(kib));
                return format!("rmem{kib}k");
            }
            small_window::sends(twin, u64::from(kib));
            format!("wmem{kib}k")
        },
    )
    .after(|setup, dice| {
        let rtt_us = dice.whole(5_000, 40_000);
        setup.over_relay(rtt_us)
    }),
    Drawable::new(
        small_mtu::INJECTION,
        |setup| setup.flows() && setup.is_near(),
        |twin, _, dice| {
            let mtu = dice.whole(296, 1_000);
            twin.network.mtu = Some(mtu);
            format!("mtu{mtu}")
        },
    )
    .after(|setup, _| small_mtu::bare(setup)),
    Drawable::new(
        congestion_control::INJECTION,
        |setup| setup.sends(&[Op::BulkReverse]) && setup.load.0 <= 4 && (setup.is_near() || setup.is_far()),
        |twin, _, _| sending_by(twin, "reno"),
    )
    .after(lossy)
    .needing(&["bbr", "reno"]),
    Drawable::new(
        congestion_control::INJECTION,
        |setup| setup.sends(&[Op::BulkReverse]) && setup.load.0 <= 4 && (setup.is_near() || setup.is_far()),
        |twin, _, _| sending_by(twin, "cubic"),
    )
    .after(lossy)
    .needing(&["bbr", "cubic"]),
    Drawable::new(
        loss::INJECTION,
        |setup| !setup.sends_datagrams(),
        |twin, _, dice| {
            let per_mille = dice.whole(5, 50);
            // Of a flow acknowledgements may get lost, and nobody minds.
            let out = twin.op == Op::BulkReverse || twin.op != Op::Bulk && dice.one_in(2);
            let (way, name) = if out { (Way::ToClient, "out") } else { (Way::ToServer, "in") };
            loss::lose(twin, way, Packets::Tcp, per_mille);
            format!("{per_mille}permille-{name}")
        },
    ),
    Drawable::new(
        loss::INJECTION,
        |setup| setup.flows() && setup.is_far(),
        |twin, _, dice| {
            let loss_ppm = dice.whole(1_000, 20_000);
            loss::on_the_way(twin, loss_ppm);
            format!("{loss_ppm}ppm-on-the-way")
        },
    ),
    Drawable::new(
        loss::OF_DATAGRAMS,
        |setup| setup.sends_datagrams() && setup.is_near(),
        |twin, _, dice| {
            let per_mille = dice.whole(50, 300);
            loss::lose(twin, Way::ToServer, Packets::Udp, per_mille);
            format!("{per_mille}permille-in")
        },
    ),
    Drawable::new(
        rate_cap::INJECTION,
        |setup| setup.sends(&[Op::BulkReverse]) && setup.is_near(),
        |twin, _, dice| {
            let mbit_per_s = dice.whole(20, 500);
            if dice.one_in(2) {
                twin.network.shaper_bit_per_s = Some(u64::from(mbit_per_s) * 1_000_000);
                return format!("tbf-{mbit_per_s}Mbps");
            }
            let megabytes = mbit_per_s.div_ceil(8);
            rate_cap::policed(twin, megabytes);
            format!("policed-{megabytes}MBps")
        },
    ),
    Drawable::new(
        rate_cap::INJECTION,
        |setup| setup.flows() && setup.is_far(),
        |twin, _, dice| {
            let rate = dice.between(2e6, 30e6) as u64;
            rate_cap::line(twin, rate);
            format!("line-{}kBps", rate / 1000)
        },
    ),
    Drawable::new(
        rate_cap::OF_DATAGRAMS,
        |setup| setup.sends_datagrams() && setup.is_far(),
        |twin, load, dice| {
            let Op::Datagrams { mbit_per_s } = twin.op else { return "nothing-to-cap".to_owned() };
            let offered = f64::from(load.0 * mbit_per_s) * 1e6 / 8.0;
            let rate = (offered * dice.between(0.2, 0.8)) as u64;
            rate_cap::line(twin, rate);
            format!("line-{}kBps", rate / 1000)
        },
    ),
];

/// The same path, each way by half of this longer.
fn longer(twin: &mut PathTwin, plus_us: u32) -> String {
    if let Path::Relay { to_server, to_client } = &mut twin.network.path {
        for link in [to_server, to_client] {
            link.delay_us += u64::from(plus_us / 2);
        }
    }
    format!("plus{plus_us}us")
}

fn lossy(setup: Setup<Net>, dice: &mut Dice) -> Setup<Net> {
    let (rtt_us, loss_ppm) = (dice.whole(5_000, 40_000), dice.whole(500, 5_000));
    congestion_control::lossy(setup.over_relay(rtt_us), loss_ppm)
}

fn sending_by(twin: &mut PathTwin, algorithm: &str) -> String {
    congestion_control::algorithm(twin, algorithm);
    algorithm.to_owned()
}
