# Keeps a private copy of a PostgreSQL. Runs as the server's own user, in a session of its own. What it prints: `failed WHY`, or
# `copied` once the data is there and a server was started on it.
#
# Its standard input is its life line: a password, settings up to a line with a dot, and then a line whenever the log is to be cut off.
# With its end, however that comes about, everything is ended and removed.

programs=$1 folder=$2 host=$3 port=$4 user=$5
umask 077

failed() { printf 'failed %s\n' "$(printf '%s' "$*" | tr '\n' ' ')"; }

IFS= read -r password || exit 1
if ! said=$(mkdir "$folder" 2>&1); then
    failed "$said"
    exit 1
fi
while IFS= read -r line && [ "$line" != . ]; do printf '%s\n' "$line"; done >"$folder/settings"
printf 'local all all trust\n' >"$folder/hba"
: >"$folder/ident"

# Ended by TERM. The server is stopped at once: what it would still write is removed anyway.
work() {
    child= with=TERM
    trap 'kill -$with $child 2>/dev/null; wait $child; exit' TERM
    # The password stands in the environment of this one program, where its user alone reads it.
    PGPASSWORD=$password "$programs/pg_basebackup" --pgdata="$folder/data" --host="$host" --port="$port" --username="$user" \
        --checkpoint=fast --wal-method=stream --no-password >"$folder/log" 2>&1 &
    child=$!
    if ! wait $child; then
        failed "pg_basebackup says: $(tail -n 3 "$folder/log")"
        return
    fi
    # All of it stands in the settings, without what leads elsewhere.
    : >"$folder/data/postgresql.auto.conf"
    with=QUIT
    # At its end, so that it can be cut off meanwhile.
    : >"$folder/log"
    "$programs/postgres" -D "$folder/data" -c config_file="$folder/settings" -c hba_file="$folder/hba" \
        -c ident_file="$folder/ident" >>"$folder/log" 2>&1 &
    child=$!
    printf 'copied\n'
    wait $child
    failed "its server has ended: $(tail -n 3 "$folder/log")"
}

work </dev/null &
worker=$!
while read -r _; do : >"$folder/log"; done
kill -TERM $worker 2>/dev/null
wait $worker
# Whatever was started in that very moment.
trap '' TERM
kill -TERM 0
rm -rf "$folder" || { sleep 1; rm -rf "$folder"; }
