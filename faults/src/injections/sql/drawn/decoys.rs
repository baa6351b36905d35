//! Differences that do no harm.

use super::*;

pub(super) const ALL: &[Decoy<Sql>] = &[
    // A server's name, as it tells it.
    Decoy {
        fits: |setup| setup.is_on(POSTGRES),
        differ: |twin, dice| {
            let number = dice.whole(2, 99);
            twin.settings.push(("cluster_name", kept(format!("db{number}"))));
            format!("cluster_name-db{number}")
        },
    },
    Decoy {
        fits: |setup| setup.is_on(MARIADB),
        differ: |twin, dice| {
            let number = dice.whole(2, 99);
            twin.settings.push(("server-id", kept(number.to_string())));
            format!("server-id-{number}")
        },
    },
    // How much is told in the log of what does not happen.
    Decoy {
        fits: |_| true,
        differ: |twin, _| {
            twin.settings.push(match twin.system {
                System::Postgres => ("log_min_messages", "error"),
                System::MariaDb => ("log-warnings", "1"),
            });
            "log-level".to_owned()
        },
    },
    // Memory that no op needs.
    Decoy {
        fits: |setup| setup.is_short(),
        differ: |twin, dice| {
            let mib = dice.whole(5, 16);
            let size = kept(format!("{mib}MB"));
            twin.settings.push(match twin.system {
                System::Postgres => ("work_mem", size),
                System::MariaDb => ("sort-buffer-size", kept(format!("{mib}M"))),
            });
            format!("sorts-in-{mib}M")
        },
    },
    // What nobody waits for.
    Decoy {
        fits: |_| true,
        differ: |twin, dice| {
            let seconds = kept(dice.whole(2, 20).to_string());
            twin.settings.push(match twin.system {
                System::Postgres => ("deadlock_timeout", kept(format!("{seconds}s"))),
                System::MariaDb => ("innodb-lock-wait-timeout", seconds),
            });
            format!("lock-timeout-{seconds}s")
        },
    },
    Decoy {
        fits: |_| true,
        differ: |twin, _| {
            twin.statements.push("CREATE TABLE others (id integer PRIMARY KEY)");
            "another-table".to_owned()
        },
    },
];
