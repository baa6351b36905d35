//! `net.backlog-overflow`: the listen queue is too short for those who come at once.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("net.backlog-overflow", verify);

pub(super) fn cases() -> Vec<Case> {
    let crowd = |server| Setup::of(server).connecting().connections(64);
    vec![
        INJECTION.case(&crowd(Server::Nginx).https(), "backlog1", |twin| twin.http.backlog = 1),
        INJECTION.case(&crowd(Server::Nginx), "backlog2", |twin| twin.http.backlog = 2),
        INJECTION.case(&crowd(Server::Apache).https(), "backlog1", |twin| twin.http.backlog = 1),
        INJECTION.case(&crowd(Server::HaproxyNginx).https(), "backlog1", |twin| twin.http.backlog = 1),
    ]
}

fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let load = ToolLoad { seconds: 3, ..ToolLoad::connecting(64) };
    let overflows = |up: &Up| growth(up, "TcpExtListenOverflows", || arena.client.load(up, &load).map(drop));
    Ok(Bite::more("listen queue overflows", (overflows(&arena.healthy)?, overflows(&arena.faulty)?), 10.0))
}
