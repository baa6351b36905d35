# What keeps a copy of a MariaDB: its program for backups, that of its server, its data folder, its own socket, and options by which the
# user of the address logs in.

# A lock that somebody holds is not waited for without end: behind a backup that waits, others may have to wait, too.
back_up() {
    run "$backup" --no-defaults --backup --target-dir="$folder/data" --datadir="$data" --tmpdir="$folder/tmp" --ftwrl-wait-timeout=30 "$@"
}

# What the program said of errors, or last.
said() {
    printf '%s' "${backup##*/} says: "
    # In front of each line stand a number of its thread and the time.
    { grep -i 'error\|fail' "$folder/log" | tail -n 3 | grep . || tail -n 3 "$folder/log"; } | sed 's/^\[[0-9]*\] [-0-9]* [:0-9]* *//'
}

may_not() { grep -q 'Failed to connect\|missing required privilege' "$folder/log"; }

copy() {
    backup=$1 data=$3 socket=$4
    shift 4
    mkdir "$folder/tmp" || return
    # The server's owner mostly has a login of his own, by his socket and with no password.
    owner=$(id -un)
    if ! back_up --user="$owner" --socket="$socket"; then
        why=$(said)
        if may_not; then
            rm -rf "$folder/data"
            # It stands in the environment of this one program, where its user alone reads it.
            export MYSQL_PWD="$password"
            if back_up "$@"; then
                why=
            elif may_not; then
                # Of a sentence some 300 letters are shown.
                why="neither the server's owner $owner by unix_socket nor the user of the address may make a backup; who may: CREATE USER \
$owner@localhost IDENTIFIED VIA unix_socket; GRANT RELOAD, PROCESS, REPLICATION CLIENT ON *.* TO $owner@localhost; $(said)"
            else
                why=$(said)
            fi
            unset MYSQL_PWD
        fi
        if [ -n "$why" ]; then
            failed "$why"
            return 1
        fi
    fi
    # A server on it would write to what these lead to, and that is the running server's.
    if ! led=$(find "$folder/data" \( -type l -o -name '*.isl' \)) || [ -n "$led" ]; then
        failed "some of its tables lie outside of its data folder: $(printf '%s' "$led" | head -n 1)"
        return 1
    fi
    if ! run "$backup" --no-defaults --prepare --target-dir="$folder/data" --tmpdir="$folder/tmp"; then
        failed "$(said)"
        return 1
    fi
}

serve() {
    with=KILL
    begin "$2" --defaults-file="$folder/settings"
}
