# Linux: which processes are the server's, and what they run.

# Whether these processes run the same file.
same_program() {
    first=$1
    shift
    for pid in "$@"; do
        [ "$PROC/$first/exe" -ef "$PROC/$pid/exe" ] || return 1
    done
}

name_of() { cat "$PROC/$1/comm" 2>/dev/null; }

# What tells a process from another one that is given its id later: when it was started, in ticks since the boot.
started() {
    stat=$(cat "$PROC/$1/stat") && [ -n "$stat" ] || return 1
    # The name, in brackets, may hold brackets and blanks.
    # shellcheck disable=SC2086 # split on purpose
    set -- ${stat##*) }
    shift 19
    echo "$1"
}

boot() { cat "$PROC/sys/kernel/random/boot_id" 2>/dev/null; }

# Whether we may see which sockets there are, and which of them a process holds.
can_see() { [ -r "$PROC/net/tcp" ] && ls "$PROC/$1/fd" >/dev/null 2>&1; }

# Parent and id of every process. The name, in brackets, may hold anything, line ends too: so the id is taken from the
# path, and of each file the first line alone counts.
parents() {
    grep -H -a -s '' "$PROC"/[0-9]*/stat 2>/dev/null | awk -v proc="$PROC/" '
        {
            path = substr($0, 1, index($0, ":") - 1)
            if (path == last) next
            last = path
            split(substr(path, length(proc) + 1), part, "/")
            if (!match($0, /.*\) /)) next
            split(substr($0, RLENGTH + 1), field, " ")
            print field[2], part[1]
        }' | sort -n -k 2
}

alive() { [ -e "$PROC/$1/stat" ]; }

process() {
    echo "pid $1"
    echo "exe $(readlink "$PROC/$1/exe")"
    if [ -r "$PROC/$1/exe" ]; then read_once "$PROC/$1/exe" | grep -a '^string '; fi
    echo "descriptors $(ls "$PROC/$1/fd" 2>/dev/null | wc -l)"
    echo "net $(readlink "$PROC/$1/ns/net")"
    echo "our_net $(readlink "$PROC/self/ns/net")"
    values "$PROC/$1/oom_score_adj" "$PROC/$1/timerslack_ns" 2>/dev/null
    head_of "$PROC/$1/status" && head_of "$PROC/$1/stat"
}

# They lie in the process's memory, behind which there may be a file system that keeps a reader waiting.
arguments() { brief tr '\0' '\n' <"$PROC/$1/cmdline" | head -c 16384; }

# Only names that are known to change speed leave the host, and none that may hold a secret.
environment() {
    [ -r "$PROC/$1/environ" ] || { echo "duel: no permission to read the environment of process $1"; return 1; }
    # To show a title of its own, a process writes over what it was started with.
    brief tr '\0' '\n' <"$PROC/$1/environ" 2>/dev/null | grep -q -a '^[A-Za-z_][A-Za-z0-9_]*=' ||
        { echo "duel: process $1 has none, or has written over it"; return 1; }
    brief tr '\0' '\n' <"$PROC/$1/environ" | grep -a -E "^($ENVIRONMENT)=" |
        grep -a -v -i -E '^[^=]*(pass|secret|token|key|cred)[^=]*=' | head -c 16384
}

workers() {
    for pid in $MEMBERS; do
        read -r line <"$PROC/$pid/stat" && echo "$line"
    done 2>/dev/null
}

# Each process can be traced for itself, and may have filtered its own system calls.
tracers() {
    set --
    for pid in $MEMBERS; do set -- "$@" "$PROC/$pid/status"; done
    grep -H -a -s -E '^(TracerPid|Seccomp_filters):' "$@"
}

# Limits of workers that are not those of the main process, which comes first and is kept in mind.
other_limits() {
    main=$PROC/$1/limits
    set --
    for pid in $MEMBERS; do set -- "$@" "$PROC/$pid/limits"; done
    grep -H -a -s '^Max ' "$main" "$@" | awk -v main="$main" '
        { at = index($0, ":"); path = substr($0, 1, at - 1); line = substr($0, at + 1) }
        path == main { known[line]; next }
        !(line in known) { print line }' | head -c 65536
}

# Files mapped with permission to execute: libraries and the program itself.
maps() {
    [ -r "$PROC/$1/maps" ] && head -c 1 "$PROC/$1/maps" >/dev/null 2>&1 ||
        { echo "duel: no permission to read what process $1 maps"; return 1; }
    awk '$2 ~ /x/ && substr($6, 1, 1) == "/" {
        path = $6; for (i = 7; i <= NF; i++) path = path " " $i
        if (!(path in seen)) { seen[path] = 1; print $1, path }
    }' "$PROC/$1/maps" | head -n 500
}

# A library is read as it is mapped, whatever lies under its name by now: root may open the mapping itself. For others it is
# looked for under its name, as the process sees it.
libraries() {
    [ -r "$PROC/$1/maps" ] || return 0
    awk '$2 ~ /x/ && substr($6, 1, 1) == "/" && !($6 in seen) { seen[$6] = 1; print $1, $4, $5, $6, $7 }' \
        "$PROC/$1/maps" 2>/dev/null | grep -E " [^ ]*/($LIBRARIES)" | head -n 20 |
        while read -r range device inode path deleted; do
            section "library $path" library "$PROC/$1" "$range" "$device" "$inode" "$path" "$deleted"
        done
}

library() {
    echo "deleted ${6:-no}"
    # There numbers have no leading zeros.
    mapping=$1/map_files/$(echo "$2" | sed 's/^0*//; s/-0*/-/')
    if [ -f "$mapping" ]; then read_once "$mapping"; else read_once "$1/root$5" "$3" "$4"; fi
}
