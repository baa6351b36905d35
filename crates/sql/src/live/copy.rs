//! What a private copy of a server is made with, on a real one.

use super::server::{Server, server};
use crate::address::{Address, ServerAddress, parse};
use crate::copy::postgres::{UNLOGGED, among_own_names, rewrite, settings, warm};
use crate::copy::warm::Warmth;
use crate::database::Database;
use duel_model::{MILLISECOND_NS, SECOND_NS};
use std::path::Path;

fn at(server: &Server, database: &str) -> ServerAddress {
    let Ok(Address::Server(address)) = parse(&server.address("u", database)) else { panic!() };
    address
}

#[test]
fn a_superuser_who_warms_a_copy_calls_nothing_of_the_databases_owner() {
    let Some(server) = server() else { return };
    let database = server.database();
    let mut client = server.client(&database);
    for set in [
        "CREATE TABLE called (name text)",
        "CREATE SCHEMA evil",
        "CREATE FUNCTION evil.pg_relation_size(oid) RETURNS bigint LANGUAGE sql AS $$ INSERT INTO public.called VALUES ('size'); SELECT 1::bigint $$",
        "CREATE FUNCTION evil.pg_prewarm(regclass) RETURNS bigint LANGUAGE sql AS $$ INSERT INTO public.called VALUES ('warm'); SELECT 1::bigint $$",
        "CREATE FUNCTION evil.less(numeric, bigint) RETURNS boolean LANGUAGE sql AS $$ INSERT INTO public.called VALUES ('less'); SELECT true $$",
        "CREATE OPERATOR evil.<= (LEFTARG = numeric, RIGHTARG = bigint, FUNCTION = evil.less)",
        &format!("ALTER DATABASE {database} SET search_path = evil, pg_catalog"),
    ] {
        client.run(set).unwrap();
    }
    assert_eq!(warm(&among_own_names(at(server, &database)), SECOND_NS * 60), Warmth::All);
    assert_eq!(client.rows("SELECT name FROM public.called").unwrap(), Vec::<Vec<Option<String>>>::new());
}

#[test]
fn what_a_superuser_asks_about_his_server_calls_nothing_of_the_databases_owner() {
    let Some(server) = server() else { return };
    let database = server.database();
    let mut client = server.client(&database);
    client.run("CREATE TABLE called (name text)").unwrap();
    client.run("CREATE SCHEMA evil").unwrap();
    for (name, takes, gives) in [
        ("current_setting", "text, boolean", "text"),
        ("current_setting", "text", "text"),
        ("pg_postmaster_start_time", "", "timestamptz"),
        ("pg_backend_pid", "", "integer"),
        ("quote_ident", "name", "text"),
        ("quote_ident", "text", "text"),
        ("pg_database_size", "oid", "bigint"),
        ("pg_total_relation_size", "regclass", "bigint"),
        ("pg_stat_get_dead_tuples", "oid", "bigint"),
        ("pg_stat_get_dead_tuples", "regclass", "bigint"),
        ("format_type", "oid, integer", "text"),
        ("to_regclass", "text", "regclass"),
        ("both", "text, text", "text"),
        ("more", "bigint, bigint", "bigint"),
    ] {
        let body = format!("INSERT INTO public.called VALUES ('{name}'); SELECT NULL::{gives}");
        client
            .run(&format!("CREATE FUNCTION evil.{name}({takes}) RETURNS {gives} LANGUAGE sql AS $$ {body} $$"))
            .unwrap();
    }
    client.run("CREATE OPERATOR evil.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.both)").unwrap();
    client.run("CREATE OPERATOR evil.+ (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.more)").unwrap();
    client.run("CREATE VIEW evil.pg_stat_activity AS SELECT evil.both('', '') AS datname").unwrap();
    client.run(&format!("ALTER DATABASE {database} SET search_path = evil, public, pg_catalog")).unwrap();
    let facts = super::views::told_after(&server.address("u", &database), "on", 2);
    assert_eq!(client.rows("SELECT DISTINCT name FROM public.called").unwrap(), Vec::<Vec<Option<String>>>::new());
    assert!(!facts.0.is_empty(), "it was asked");
}

#[test]
fn a_reading_that_is_given_up_does_not_go_on_in_the_server() {
    let Some(server) = server() else { return };
    let database = server.database();
    let mut client = server.client(&database);
    // Held by another session, a table cannot be read.
    client.run("CREATE TABLE held AS SELECT generate_series(1, 1000)").unwrap();
    client.run("BEGIN; LOCK TABLE held IN ACCESS EXCLUSIVE MODE").unwrap();
    assert_eq!(warm(&among_own_names(at(server, &database)), 200 * MILLISECOND_NS), Warmth::Cut);
    let at_work = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'active' \
                   AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
    assert_eq!(client.rows(at_work).unwrap(), [[Some("0".to_owned())]]);
}

#[test]
fn what_a_copy_does_not_have_of_its_server_is_told() {
    let Some(server) = server() else { return };
    let mut client = server.client(&server.database());
    client.run("CREATE UNLOGGED TABLE u (n integer PRIMARY KEY)").unwrap();
    assert_eq!(client.rows(UNLOGGED).unwrap(), [[Some("0".to_owned())]], "an empty one is the same in a copy");
    client.run("INSERT INTO u VALUES (1)").unwrap();
    assert_eq!(client.rows(UNLOGGED).unwrap(), [[Some("1".to_owned())]]);
    // It has TLS and a port of its own, which say nothing of what a transaction costs.
    let mut database = Database::Server(Box::new(client), crate::address::System::Postgres);
    let read = |database: &mut Database| settings::read(database, Path::new("/x"), None).unwrap().unwrap();
    let before = read(&mut database);
    assert_eq!(before.left_out, Vec::<String>::new());
    assert!(before.lines.contains(&"fsync = 'off'".to_owned()), "{:?}", before.lines);
    database.run("ALTER SYSTEM SET archive_command = 'true'").unwrap();
    database.run("SELECT pg_reload_conf()").unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while read(&mut database).left_out != ["archive_command"] {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    database.run("ALTER SYSTEM RESET archive_command").unwrap();
    database.run("SELECT pg_reload_conf()").unwrap();
}

#[test]
fn tables_are_written_anew_in_the_order_of_their_keys_and_without_dead_rows() {
    let Some(server) = server() else { return };
    let database = server.database();
    let mut client = server.client(&database);
    for set in [
        "CREATE TABLE \"a \"\"b\" (id integer PRIMARY KEY, t text) WITH (autovacuum_enabled = off)",
        "INSERT INTO \"a \"\"b\" SELECT 7919 * n % 20000, repeat('x', 200) FROM generate_series(0, 19999) n",
        "DELETE FROM \"a \"\"b\" WHERE id % 10 > 0",
        "CREATE TABLE keyless WITH (autovacuum_enabled = off) AS SELECT * FROM \"a \"\"b\"",
        "DELETE FROM keyless WHERE id % 100 > 0",
    ] {
        client.run(set).unwrap();
    }
    let size = |client: &mut crate::client::Client, table: &str| {
        let rows = client.rows(&format!("SELECT pg_table_size('{table}')")).unwrap();
        rows[0][0].as_ref().unwrap().parse::<u64>().unwrap()
    };
    let (keyed, keyless) = ("\"a \"\"b\"", "keyless");
    let before = [keyed, keyless].map(|table| size(&mut client, table));
    // Transactions of other tests on this server may still want to see what was deleted; on a copy there are none.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        rewrite(&at(server, &database), 60 * SECOND_NS).unwrap();
        let after = [keyed, keyless].map(|table| size(&mut client, table));
        if after[0] * 5 < before[0] && after[1] * 5 < before[1] {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{before:?} {after:?}");
    }
    let in_order = "SELECT count(*) FROM (SELECT id, lag(id) OVER (ORDER BY ctid) AS before FROM \"a \"\"b\") AS of WHERE id < before";
    assert_eq!(client.rows(in_order).unwrap(), [[Some("0".to_owned())]]);
    assert_eq!(client.rows("SELECT count(*) FROM \"a \"\"b\"").unwrap(), [[Some("2000".to_owned())]]);
    // Held by another session, a table cannot be written.
    client.run("BEGIN; LOCK TABLE keyless IN ACCESS SHARE MODE").unwrap();
    let why = rewrite(&at(server, &database), 300 * MILLISECOND_NS).unwrap_err().text;
    assert!(why.contains("statement timeout"), "{why}");
    client.run("COMMIT").unwrap();
    // What belongs to others is theirs to write.
    client.run(&format!("CREATE ROLE other_of_{database}")).unwrap();
    client.run(&format!("ALTER TABLE keyless OWNER TO other_of_{database}")).unwrap();
    let why = rewrite(&at(server, &database), 60 * SECOND_NS).unwrap_err().text;
    assert_eq!(why, "public.keyless is not a table of the address's user");
    client.run(&format!("DROP TABLE keyless; DROP ROLE other_of_{database}")).unwrap();
}
