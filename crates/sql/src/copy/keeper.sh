# Keeps a private copy of a server. Runs as the server's own user, in a session of its own. What it prints: `failed WHY`, or `copied` once
# the data is there and a server was started on it. In front of it stand two functions of each system, which get its words behind the folder:
# `copy` makes the copy, or says why not; `serve` starts a server on it by `begin`.
#
# Its standard input is its life line: a password, settings up to a line with a dot, and then a line whenever the log is to be cut off.
# With its end, however that comes about, everything is ended and removed. Where `made` is set, the folder is there already, and removed by
# who made it once it is empty.

folder=$1
shift
umask 077
# Who ends all processes of a service ends this one as well: then its life line is at its end, too.
trap : TERM INT HUP

failed() { printf 'failed %s\n' "$(printf '%s' "$*" | tr '\n' ' ')"; }

IFS= read -r password || exit 1
if [ -z "$made" ] && ! said=$(mkdir "$folder" 2>&1); then
    failed "$said"
    exit 1
fi
while IFS= read -r line && [ "$line" != . ]; do printf '%s\n' "$line"; done >"$folder/settings"

# Starts a program, which is ended with the copy. At the log's end, so that it can be cut off meanwhile.
begin() {
    "$@" >>"$folder/log" 2>&1 &
    child=$!
}

# The same, and waits for it. Of what was said, this alone is kept.
run() {
    : >"$folder/log"
    begin "$@"
    wait $child
}

# Ended by TERM. The server is stopped at once: what it would still write is removed anyway.
work() {
    child= with=TERM
    trap 'kill -$with $child 2>/dev/null; wait $child; exit' TERM
    copy "$@" || return
    : >"$folder/log"
    serve "$@"
    printf 'copied\n'
    wait $child
    failed "its server has ended: $(tail -n 3 "$folder/log")"
}

work "$@" </dev/null &
worker=$!

until_unwanted() { while read -r _; do : >"$folder/log"; done; }

gone() {
    rm -rf "$folder"
    [ ! -e "$folder" ] || { [ -n "$made" ] && [ -z "$(ls -A "$folder")" ]; }
}

# Ends what is left of this group, and removes the folder.
finish() {
    # Whatever was started in that very moment.
    trap '' TERM
    kill -TERM 0
    # Nobody is left behind the one that is waited for.
    wait
    gone || { sleep 1; gone; }
}

# A second keeper has the same life line: whoever kills the first one alone (as KILL does, which no trap sees) has not freed the copy
# from it. Mostly the first one ends this one. It says nothing: who listens is to hear it when the others are gone.
stand_in() {
    until_unwanted
    tries=0
    while kill -0 $$ && [ $((tries += 1)) -le 30 ]; do sleep 1; done
    trap '' TERM
    kill -TERM 0
    while kill -0 $worker && [ $((tries += 1)) -le 60 ]; do sleep 1; done
    finish
}

# What is started behind a shell has no input, unless it is told which.
exec 3<&0
(stand_in) <&3 3<&- >/dev/null 2>&1 &
exec 3<&-
until_unwanted
kill -TERM $worker 2>/dev/null
wait $worker
finish
