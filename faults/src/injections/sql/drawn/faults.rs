//! Faults of the catalogue, and how strong they are drawn.

use super::*;

pub(super) const ALL: &[Drawable<Sql>] = &[
    Drawable::new(
        statement_logging::INJECTION,
        |setup| setup.is_on(POSTGRES) && setup.is_short() && setup.is_kept(),
        log_all_of_postgres,
    )
    .after(|setup, _| statement_logging::several(setup)),
    // Reads: what is written waits on both for that disk.
    Drawable::new(
        statement_logging::INJECTION,
        |setup| setup.does(&["point-select"]) && setup.is_kept(),
        |twin, load, dice| match twin.system {
            System::Postgres => log_all_of_postgres(twin, load, dice),
            System::MariaDb if dice.one_in(2) => {
                twin.settings.push(("general-log", "ON"));
                "general-log".to_owned()
            }
            System::MariaDb => {
                statement_logging::slow_log(twin);
                "slow-log-of-all".to_owned()
            }
        },
    )
    .after(|setup, _| statement_logging::on_slow_disk(setup)),
    Drawable::new(
        small_buffer_pool::INJECTION,
        |setup| {
            let updates = setup.does(&["update-index", "update-non-index"]) && setup.commits_late();
            setup.is_on(POSTGRES) && updates
        },
        |twin, _, dice| {
            let kib = dice.whole(128, 1_024);
            twin.settings.push(("shared_buffers", kept(format!("{kib}kB"))));
            format!("shared_buffers-{kib}kB")
        },
    )
    .after(|setup, dice| small_buffer_pool::written(large(setup, dice))),
    Drawable::new(
        small_buffer_pool::INJECTION,
        |setup| setup.is_on(MARIADB) && setup.does(&["point-select"]) && setup.is_kept(),
        |twin, _, dice| {
            let mib = dice.whole(6, 16);
            twin.settings.push(("innodb-buffer-pool-size", kept(format!("{mib}M"))));
            format!("pool-{mib}M")
        },
    )
    // Rows anywhere in the table, or what is read often fits.
    .after(|setup, dice| small_buffer_pool::on_disk(large(setup, dice).sends(|load| load.keys = "uniform"))),
    Drawable::new(
        bloat::INJECTION,
        |setup| setup.is_on(POSTGRES) && setup.does(&["read-only"]) && setup.is_small(),
        |twin, _, _| {
            bloat::one_row_in_20(twin);
            "one-row-in-20".to_owned()
        },
    ),
    Drawable::new(
        small_log::INJECTION,
        |setup| {
            let updates = setup.does(&["update-index", "update-non-index", "write-only"]) && setup.commits_late();
            setup.is_on(MARIADB) && updates
        },
        |twin, _, _| {
            small_log::small(twin);
            "least-log".to_owned()
        },
    )
    .after(|setup, dice| large(setup, dice).with("large-log", small_log::large)),
    Drawable::new(
        bad_plan::INJECTION,
        |setup| setup.is_on(POSTGRES) && is_about_k(setup) && setup.is_small(),
        |twin, load, dice| {
            // A hash knows of no order, and would do for points.
            if load.op == "select-random-ranges" && dice.one_in(2) {
                bad_plan::hashed(twin);
                return "hash-index".to_owned();
            }
            bad_plan::of_blocks(twin);
            "brin-index".to_owned()
        },
    ),
    Drawable::new(
        bad_plan::INJECTION,
        |setup| setup.is_on(MARIADB) && is_about_k(setup) && setup.is_small(),
        |twin, _, _| {
            bad_plan::ignored(twin);
            "ignored-index".to_owned()
        },
    ),
    Drawable::new(
        bad_plan::INJECTION,
        |setup| {
            let misled = match setup.twin.system {
                System::Postgres => "select-random-points",
                System::MariaDb => "select-random-ranges",
            };
            setup.does(&[misled]) && setup.is_small() && setup.is_kept()
        },
        |twin, _, _| {
            bad_plan::not_analyzed(twin);
            "old-statistics".to_owned()
        },
    )
    .after(|setup, _| setup.with("written-later", bad_plan::write_later)),
    Drawable::new(
        bad_plan::AS_SETTING,
        |setup| setup.is_on(POSTGRES) && is_of_one_row(setup) && setup.is_small() && setup.is_kept(),
        |twin, _, dice| {
            let cost = dice.whole(200, 5_000);
            twin.statements.push(kept(format!("ALTER TABLESPACE pg_default SET (random_page_cost = {cost})")));
            format!("tablespace-costs-{cost}")
        },
    ),
    Drawable::new(
        config::INJECTION,
        |setup| setup.does(&["read-only"]) && setup.is_on(POSTGRES),
        |twin, _, dice| {
            let kib = dice.whole(64, 128);
            twin.settings.push(("work_mem", kept(format!("{kib}kB"))));
            format!("work_mem-{kib}kB")
        },
    )
    .after(|setup, dice| {
        let range = dice.whole(1_200, 3_000);
        setup.sends(|load| load.range = range)
    }),
    Drawable::new(
        // The planner takes another way because of it, which is as right a name.
        config::INJECTION.or(&["db.bad-plan"]),
        |setup| setup.is_on(POSTGRES) && is_of_one_row(setup) && setup.is_small() && setup.is_kept(),
        |twin, _, _| {
            twin.settings.extend([("enable_indexscan", "off"), ("enable_bitmapscan", "off")]);
            "no-index-scans".to_owned()
        },
    ),
    Drawable::new(
        COMMITS,
        |setup| setup.is_on(POSTGRES) && setup.writes() && !setup.commits_late(),
        |twin, _, dice| {
            let us = dice.whole(500, 8_000);
            twin.settings.extend([("commit_delay", kept(us.to_string())), ("commit_siblings", "0")]);
            format!("commits-wait-{us}us")
        },
    ),
    Drawable::new(
        COMMITS,
        |setup| setup.writes() && setup.commits_late(),
        |twin, _, _| {
            twin.settings.push(match twin.system {
                System::Postgres => ("synchronous_commit", "on"),
                System::MariaDb => ("innodb-flush-log-at-trx-commit", "1"),
            });
            "durable-commits".to_owned()
        },
    ),
    Drawable::new(
        by_ops(config::INJECTION),
        |setup| setup.is_on(MARIADB) && setup.writes() && setup.commits_late(),
        |twin, _, dice| {
            let commits = dice.whole(1, 8);
            twin.settings.extend([
                ("log-bin", "binlog"),
                ("server-id", "1"),
                ("sync-binlog", kept(commits.to_string())),
            ]);
            format!("binlog-synchronous-each-{commits}")
        },
    ),
    Drawable::new(
        costly_connect::INJECTION,
        |setup| !setup.is_kept(),
        |twin, _, dice| match twin.system {
            System::Postgres => {
                let count = dice.whole(4, 10) as usize;
                let libraries: Vec<&str> = costly_connect::TEN_LIBRARIES.split(',').take(count).collect();
                twin.settings.push(("session_preload_libraries", kept(libraries.join(","))));
                format!("{count}-libraries")
            }
            System::MariaDb => {
                let us = dice.whole(1_000, 20_000);
                twin.settings.push(("init-connect", kept(format!("DO SLEEP({})", f64::from(us) / 1e6))));
                format!("init-sleeps-{us}us")
            }
        },
    ),
    Drawable::new(
        by_ops(slow_flush::INJECTION),
        |setup| setup.writes() && !setup.commits_late(),
        |twin, _, _| {
            slow_flush::waits(twin);
            "barriers".to_owned()
        },
    )
    .after(|setup, _| slow_flush::on_ext4(setup)),
    Drawable::new(
        Injection { verify: waits_for_others, ..contention::INJECTION },
        |setup| {
            let updates = setup.does(&["update-index", "update-non-index"]) && !setup.commits_late();
            updates && setup.load.connections >= 4
        },
        |twin, _, _| {
            contention::in_one_row(twin);
            "one-row".to_owned()
        },
    )
    .after(|setup, _| contention::counted(setup)),
];

/// Each commit waits for the disk there, which is as right a name.
const COMMITS: Injection<Sql> = by_ops(config::INJECTION.or(&["disk.slow-flush"]));

/// Verified by whole ops: the hand-made verification knows those that are one statement, and takes another for all others.
const fn by_ops(injection: Injection<Sql>) -> Injection<Sql> {
    Injection { verify: slower_by_ops, ..injection }
}

fn slower_by_ops(arena: &SqlArena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("us per transaction", arena.op_us()?, 1.15))
}

/// As the hand-made verification does it, over the draw's own connections: over eight of its own it takes minutes.
fn waits_for_others(arena: &SqlArena) -> anyhow::Result<Bite> {
    let alone = arena.statement_us(1)?;
    let many = Bite::ratio("us per transaction over all connections", arena.op_us()?, 1.3);
    let ratio = alone.1 / alone.0;
    Ok(Bite { bites: many.bites && ratio < 1.2, figures: format!("{}; over one {ratio:.2}x", many.figures) })
}

/// Ops that find rows by the index on `k`.
fn is_about_k(setup: &Setup<Sql>) -> bool {
    setup.does(&["select-random-points", "select-random-ranges"])
}

/// Ops that find one row by its number.
fn is_of_one_row(setup: &Setup<Sql>) -> bool {
    setup.does(&["point-select", "update-index", "update-non-index"])
}

/// A table of which a small pool has no room for most.
fn large(mut setup: Setup<Sql>, dice: &mut Dice) -> Setup<Sql> {
    setup.twin.rows = dice.whole(90, 150) * 1000;
    setup
}

fn log_all_of_postgres(twin: &mut SqlTwin, _: &Transactions, dice: &mut Dice) -> String {
    let (name, setting) = *dice
        .pick(&[("all-statements", ("log_statement", "all")), ("all-durations", ("log_min_duration_statement", "0"))]);
    twin.settings.push(setting);
    name.to_owned()
}
