//! `none`: the same server twice. Whatever duel blames here, it is wrong.

use super::*;
use crate::twin::Balanced;

pub(super) fn cases() -> Vec<Case> {
    [
        Setup::of(Server::Nginx),
        Setup::of(Server::Nginx).https().bytes(100_000),
        Setup::of(Server::Nginx).https().connecting(),
        Setup::of(Server::Nginx).https().bytes(20_000).connections(2).http2(16),
        Setup::of(Server::Apache).bytes(20_000),
        Setup::of(Server::Apache).https().connecting(),
        Setup::of(Server::HaproxyNginx).https(),
        upstream_no_keepalive::behind_nginx(Setup::of(Server::Apache)),
        slow_reads::on_a_disk(Setup::of(Server::Nginx).bytes(1_100_000).connections(4)),
        Setup::of(Server::Ruler).https().bytes(100_000),
        bad_backend::balanced(Setup::of(Server::Nginx), Balanced::Connections, 3),
        bad_backend::balanced(Setup::of(Server::Apache).https().bytes(20_000), Balanced::Connections, 2),
        bad_backend::balanced(Setup::of(Server::Nginx), Balanced::Requests, 4),
        Setup::of(Server::Nginx).bytes(20_000).connections(8).remote(),
        Setup::of(Server::Nginx).bytes(100_000).with("rtt20ms", |twin| twin.network.path = Path::round_trip_us(20_000)),
    ]
    .iter()
    .map(Case::equals)
    .collect()
}
