//! What a private copy of a server is made with, on a real one.

use super::server::{Server, server};
use crate::address::{Address, ServerAddress, parse};
use crate::copy::postgres::{UNLOGGED, among_own_names, settings, warm};
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
