//! What a private copy of a server is made with, on a real one.

use super::server::{Server, server};
use crate::address::{Address, ServerAddress, parse};
use crate::copy::{among_own_names, warm};

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
    assert!(warm::warm(&among_own_names(at(server, &database))));
    assert_eq!(client.rows("SELECT name FROM public.called").unwrap(), Vec::<Vec<Option<String>>>::new());
}
