# What keeps a copy of a MariaDB: its program for backups, that of its server, its data folder, its own socket, and options by which the
# user of the address logs in.

# What the program said of errors, or last. It names each file that it copies, and a table may be called so.
said() {
    printf '%s' "${backup##*/} says: "
    # In front of each line stand a number of its thread and the time.
    { grep -v ' Copying ' "$folder/log" | grep -i 'error\|fail' | tail -n 3 | grep . || tail -n 3 "$folder/log"; } |
        sed 's/^\[[0-9]*\] [-0-9]* [:0-9]* *//'
}

# Ends the backup where it has held locks, or waited for them, for too long: others may wait behind it.
hold_no_longer() {
    held=
    while sleep 1; do
        if [ -z "$held" ]; then
            grep -q 'BACKUP STAGE FLUSH\|BACKUP STAGE BLOCK\|FLUSH TABLES WITH READ LOCK' "$folder/log" && held=0
        else
            held=$((held + 1))
        fi
        if [ "${held:-0}" -ge "$most_held" ]; then
            : >"$folder/held"
            kill -KILL "$1"
        fi
    done
}

# Makes a backup by a login. Where there is none, `why` says why, and `goes_on` whether another login may do better.
back_up() {
    rm -rf "$folder/data"
    goes_on=
    : >"$folder/log"
    begin "$backup" --no-defaults --backup --target-dir="$folder/data" --datadir="$data" --tmpdir="$folder/tmp" --ftwrl-wait-timeout=30 "$@"
    hold_no_longer $child >/dev/null 2>&1 &
    holder=$!
    wait $child
    status=$?
    # A shell that was started a moment ago may lose any other signal.
    kill -KILL $holder
    wait $holder
    if [ -e "$folder/held" ]; then
        why="its backup waited for locks, or held them, for more than $most_held s, and was ended: others may have had to wait behind it"
        return 1
    fi
    if [ $status = 0 ]; then
        # It has copied the files of one server, and what another one wrote meanwhile.
        grep -q "option 'datadir' has different values" "$folder/log" || return 0
        why="another server than that of the data folder answers there" goes_on=1
        return 1
    fi
    why=$(said)
    if grep -q 'Failed to connect\|missing required privilege' "$folder/log"; then
        # Of a sentence some 300 letters are shown.
        why="neither the server's owner $owner by unix_socket nor the user of the address may make a backup; who may: CREATE USER \
$owner@localhost IDENTIFIED VIA unix_socket; GRANT RELOAD, PROCESS, REPLICATION CLIENT ON *.* TO $owner@localhost; $why"
        goes_on=1
    fi
    return 1
}

copy() {
    backup=$1 data=$3 socket=$4
    # In seconds.
    most_held=${most_held:-30}
    shift 4
    mkdir "$folder/tmp" || return
    # The server's owner mostly has a login of his own, by his socket and with no password.
    owner=$(id -un)
    if ! back_up --user="$owner" --socket="$socket"; then
        # It stands in the environment, where the server's own user and root alone read it.
        export MYSQL_PWD="$password"
        if [ -z "$goes_on" ] || ! back_up "$@"; then
            failed "$why"
            return 1
        fi
        unset MYSQL_PWD
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
    # What the copying has left to be written would be written under load.
    sync -f "$folder/data"
}

serve() {
    with=KILL
    begin "$2" --defaults-file="$folder/settings"
}
