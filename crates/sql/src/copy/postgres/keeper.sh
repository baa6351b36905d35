# What keeps a copy of a PostgreSQL: programs, host, port, user.

copy() {
    printf 'local all all trust\n' >"$folder/hba"
    : >"$folder/ident"
    # The password stands in the environment of this one program, where its user alone reads it.
    export PGPASSWORD="$password"
    if ! run "$1/pg_basebackup" --pgdata="$folder/data" --host="$2" --port="$3" --username="$4" --checkpoint=fast --wal-method=stream \
        --no-password; then
        failed "pg_basebackup says: $(tail -n 3 "$folder/log")"
        return 1
    fi
    unset PGPASSWORD
    # All of it stands in the settings, without what leads elsewhere.
    : >"$folder/data/postgresql.auto.conf"
}

serve() {
    with=QUIT
    begin "$1/postgres" -D "$folder/data" -c config_file="$folder/settings" -c hba_file="$folder/hba" -c ident_file="$folder/ident"
}
