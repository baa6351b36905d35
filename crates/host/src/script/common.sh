# What every system has: frames, bounds, requests. POSIX sh only; no temporary files; nothing is left behind.
#
# Set before this by duel: M, the marker of frames, which nobody here can guess; PROC and SYS, where the kernel's files
# are; SERVER_KIND (none, port, pid, service) and SERVER. Where connections to the server are made to, as far as that is
# known: PORT; IP, as it is written; ADDRESS, the same in 32 hexadecimal digits, IPv4 behind ::ffff:. NEAR is "yes" where
# they are made on this machine, else the boot of the machine where they are, if it has a name.
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
STRANGERS=
# How the sockets were found: by their whole address, or by their port, because the address was translated on the way
# ("translated") or is not known ("port"). "elsewhere": connections from this machine to the address leave it.
ARRIVAL=
KERNEL_LOG=
SAMPLES=0
# The numbers of the system call futex, and of those that write and flush; empty: nobody asked yet.
FUTEX=
WRITES=
# A file could not be read in time: no further one is tried.
LATE=

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

# What read_once does, in a shell of its own: $1 file, $2 texts, $3 device and $4 inode, as a mapping tells them. Standard input
# is the file: what was looked at is what is read.
READ_ONCE='command exec <"$1" || { echo "duel: the file cannot be read"; exit 1; }
self=/proc/self/fd/0
[ -e "$self" ] || self=$1
texts=$2
# shellcheck disable=SC2046 # split on purpose: device, inode, and then inode, mode, links, owner, group, size of what is open
set -- "$3" "$4" $(ls -L -d -n -i "$self")
case $4 in -*) ;; *) echo "duel: what lies there is no file"; exit 1 ;; esac
if [ -n "$2" ]; then
    is_it=
    # Layered file systems show another device here than in mappings. Who is not root opens nothing but their own.
    if [ "$2" = "$3" ] && [ "$(id -u)" != 0 ]; then is_it=yes; fi
    major=0x${1%:*} minor=0x${1#*:}
    device=$(( (minor & 255) | (major << 8) | ((minor & ~255) << 12) ))
    if [ "$2" = "$3" ] && [ "$(stat -L -c %d "$self")" = "$device" ]; then is_it=yes; fi
    [ -n "$is_it" ] || { echo "duel: what lies there is another file than the one that is mapped"; exit 1; }
fi
echo "bytes $8"
head -c 33554432 | grep -a -o -E "$texts" | sort | uniq -c | sort -rn | sed "s/^ *[0-9]* /string /" | cut -c 1-600 | head -n 60'

# read_once FILE [DEVICE INODE]: the size of a file, and lines of text in it that tell its version and how it was built; of a
# huge one only of the first 32 MiB. Whoever may write to its folder can put something else in its place: a pipe, or a file
# system, that keeps a reader waiting, a device, a link to what only root may read. So it is opened once, within a time, and
# has to be a file, and the one that is mapped.
read_once() {
    [ -z "$LATE" ] || { echo 'duel: left out, since another file could not be read in time'; return 1; }
    has timeout || { echo 'duel: no timeout here, and to read it may take for ever'; return 1; }
    [ -f "$1" ] || { echo 'duel: the file cannot be read'; return 1; }
    timeout 5 /bin/sh -c "$READ_ONCE" sh "$1" "$STRINGS" "${2-}" "${3-}" 2>/dev/null
    status=$?
    case $status in
        124 | 143) LATE=yes && echo 'duel: the file cannot be read within 5 s' ;;
    esac
    return $status
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

# A file with a process id may be older than the process that has the id by now: they are asked where nobody else is.
service_pids() {
    if has systemctl; then
        main_pid=$(brief systemctl show -p MainPID "$SERVER" 2>/dev/null | sed -n 's/^MainPID=\([1-9][0-9]*\)$/\1/p')
        if [ -n "$main_pid" ]; then
            echo "$main_pid"
            return
        fi
    fi
    name=${SERVER%.service}
    for file in "/run/$name.pid" "/run/$name/$name.pid" "/var/run/$name.pid" "/var/run/$name/$name.pid"; do
        if [ -r "$file" ]; then head -n 1 "$file"; fi
    done
}

find_roots() {
    case $SERVER_KIND in
        port) echo "$HOLDERS" ;;
        pid) echo "$SERVER" ;;
        service) service_pids ;;
    esac 2>/dev/null | numbers | sort -un
}

# Whether connections are made on this machine, so that a loopback address is one of it.
is_near() { [ "$NEAR" = yes ] || { [ -n "$NEAR" ] && [ "$NEAR" = "$(boot)" ]; }; }

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
    SOCKETS=
    HOLDERS=
    if [ -n "$PORT" ]; then find_sockets; fi
    gather "$(find_roots | tr '\n' ' ')"
    refuse_strangers
}

# Several processes of one program that share an address share its connections: together they are the server. Any others
# are strangers, and nobody can tell which of them it is.
refuse_strangers() {
    STRANGERS=
    case $ROOTS in *' '*) ;; *) return 0 ;; esac
    # shellcheck disable=SC2086 # ids are split on purpose
    case $SERVER_KIND-$ARRIVAL in
        port-address | service-*) if same_program $ROOTS; then return 0; fi ;;
    esac
    STRANGERS=$ROOTS
    ROOTS=
    MEMBERS=
}

# Whether one of the members holds a socket on which connections arrive: "yes", "no", or nothing where that is not known.
# Where the address was translated, a server that was named has to listen on any.
serves() {
    [ -n "$MEMBERS" ] || return 0
    holders=$HOLDERS
    if [ "$ARRIVAL" != address ] && [ "$SERVER_KIND" != port ]; then holders=$(any_holders "${MEMBERS%% *}"); fi
    for holder in $holders; do
        case " $MEMBERS " in *" $holder "*) echo yes; return ;; esac
    done
    if can_see "${MEMBERS%% *}"; then echo no; fi
}

find_server() {
    find_again
    echo "roots $ROOTS"
    echo "members $MEMBERS"
    for pid in $STRANGERS; do echo "stranger $pid $(name_of "$pid" | tr -d '\n')"; done
    echo "arrival $ARRIVAL"
    echo "serves $(serves)"
    echo "boot $(boot)"
    case $ROOTS in
        '' | *' '*) ;;
        *) echo "started $(started "$ROOTS")" ;;
    esac 2>/dev/null
    port_state
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
            server) section "server $number" find_server ;;
            sockets) section "sockets $number" sockets ;;
            sleeping) section "sleeping $number" sleeping ;;
            queues) section "queues $number" queues ;;
            script) sent_script "$number" ;;
        esac
    done
}

leave() {
    # A signal may come right behind the start of the follower, before its number is noted. Of none some shells say 0, which
    # would be all of the group.
    follower=${KERNEL_LOG:-$!}
    case $follower in '' | 0) ;; *) kill "$follower" 2>/dev/null ;; esac
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
