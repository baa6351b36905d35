# What every system has: frames, bounds, requests. POSIX sh only; no temporary files; nothing is left behind.
#
# Set before this by duel: M, the marker of frames, which nobody here can guess; PROC and SYS, where the kernel's files
# are; SERVER_KIND (none, port, pid, service) and SERVER.
#
# Standard output carries frames: a line "M + NAME", the content, an empty or unfinished line, and "M - NAME STATUS".
# Standard error carries lines of the kernel's log as they come, and complaints.

LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
unset ENV CDPATH GREP_OPTIONS
IFS=' 	
'
ROOTS=
MEMBERS=
KERNEL_LOG=
SAMPLES=0

has() { command -v "$1" >/dev/null 2>&1; }

# Runs a command that might hang, if there is a way to end it.
brief() {
    if has timeout; then timeout 5 "$@"; else "$@"; fi
}

# section NAME COMMAND...: what the command prints, complaints included, in a frame of its own. The command must not
# read the requests on standard input.
section() {
    section_name=$1
    shift
    printf '%s + %s\n' "$M" "$section_name"
    "$@" </dev/null 2>&1
    printf '\n%s - %s %s\n' "$M" "$section_name" "$?"
}

# The values of one-line files, each as PATH:VALUE. What is not there is left out, what cannot be read complains.
values() {
    grep -H -a '' "$@" 2>&1 | grep -v -a 'No such file'
}

# Everything of a file, but no more than 64 KiB.
head_of() {
    head -c 65536 "$1"
}

clocks() {
    echo "clk_tck $(getconf CLK_TCK)"
    echo "page_bytes $(getconf PAGESIZE || getconf PAGE_SIZE)"
    echo "unix_s $(date +%s)"
}

# Ids of processes, one or more lines, with anything else taken out.
numbers() {
    tr -s ' \t' '\n\n' | grep -E '^[0-9]{1,10}$' | head -n 1000
}

service_pids() {
    if has systemctl; then
        brief systemctl show -p MainPID "$SERVER" 2>/dev/null | sed -n 's/^MainPID=\([1-9][0-9]*\)$/\1/p'
    fi
    name=${SERVER%.service}
    for file in "/run/$name.pid" "/run/$name/$name.pid" "/var/run/$name.pid" "/var/run/$name/$name.pid"; do
        if [ -r "$file" ]; then head -n 1 "$file"; fi
    done
}

find_roots() {
    case $SERVER_KIND in
        port) port_pids ;;
        pid) echo "$SERVER" ;;
        service) service_pids ;;
    esac 2>/dev/null | numbers | sort -un
}

# From "PARENT CHILD" pairs and the ids given: "TOPS/MEMBERS", where members are those given and all their descendants,
# and tops the members whose parent is none. A master and its workers share a socket, and only the master stays.
family() {
    parents | awk -v given="$1" '
        BEGIN { n = split(given, list, " "); for (i = 1; i <= n; i++) wanted[list[i]] = 1 }
        { parent[$2] = $1; known[++count] = $2 }
        END {
            for (i = 1; i <= count; i++) if (known[i] in wanted) group[known[i]] = 1
            do {
                grown = 0
                for (i = 1; i <= count; i++)
                    if (!(known[i] in group) && (parent[known[i]] in group)) { group[known[i]] = 1; grown = 1 }
            } while (grown)
            for (i = 1; i <= count; i++)
                if ((known[i] in group) && members++ < 256) {
                    if (!(parent[known[i]] in group)) tops = tops " " known[i]
                    all = all " " known[i]
                }
            print substr(tops, 2) "/" substr(all, 2)
        }'
}

gather() {
    FAMILY=$(family "$1")
    ROOTS=${FAMILY%%/*}
    MEMBERS=${FAMILY#*/}
}

find_again() {
    gather "$(find_roots | tr '\n' ' ')"
}

find_server() {
    find_again
    echo "roots $ROOTS"
    echo "members $MEMBERS"
    if [ "$SERVER_KIND" = port ]; then port_state; fi
}

all_alive() {
    [ -n "$MEMBERS" ] || return 1
    for pid in $MEMBERS; do
        alive "$pid" || return 1
    done
}

# Workers come and go: they are looked up when one is gone, and now and then. The search for a server that has gone is
# dear on a host with many processes, so it is not made for every sample.
keep_members_fresh() {
    [ "$SERVER_KIND" != none ] || return 0
    if ! all_alive; then
        for pid in $ROOTS; do
            alive "$pid" || { ROOTS=; break; }
        done
        if [ -n "$ROOTS" ]; then
            gather "$ROOTS"
        elif [ $((SAMPLES % 5)) -eq 0 ] || [ -n "$MEMBERS" ]; then
            find_again
        fi
    elif [ $((SAMPLES % 5)) -eq 0 ]; then
        gather "$ROOTS"
    fi
}

# Lines that follow a request, up to one of the marker and a dot; run away from this shell's variables and traps. Where the
# input ends before that, nothing is run.
sent_script() {
    text=
    while IFS= read -r line; do
        if [ "$line" = "$M ." ]; then
            section "script $1" run_script "$text"
            return
        fi
        text="$text$line
"
    done
}

run_script() { (eval "$1"); }

# One line of standard input asks for one thing; its end is the end of this shell.
serve() {
    while read -r word number; do
        case $number in '' | *[!0-9]*) continue ;; esac
        case $word in
            sample)
                SAMPLES=$((SAMPLES + 1))
                keep_members_fresh
                printf '%s + sample %s\n' "$M" "$number"
                sample </dev/null 2>/dev/null
                printf '\n%s - sample %s %s\n' "$M" "$number" "$?"
                ;;
            log) section "log $number" kernel_log ;;
            sockets) section "sockets $number" sockets ;;
            script) sent_script "$number" ;;
        esac
    done
}

leave() {
    if [ -n "$KERNEL_LOG" ]; then kill "$KERNEL_LOG" 2>/dev/null; fi
    exit 0
}

main() {
    trap leave EXIT HUP INT TERM PIPE
    printf '%s + system\n%s\n' "$M" "$(uname -s)"
    printf '%s - system 0\n' "$M"
    section clocks clocks
    facts
    section ready true
    follow_kernel_log
    serve
    leave
}
