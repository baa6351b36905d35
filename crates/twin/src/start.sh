# Starts a program anew in namespaces of its own. Sent to a shell that is process 1 of its own process namespace, with
# network, mounts and System V memory of its own; before it stand the variables that say what to start. What it prints:
# `failed WHY`, or `maps FILE` for files that the program executes, and `ready`.
#
# Its standard input is its life line: it ends with it, and the kernel ends everything else with process 1. Nothing is
# written to the disk: the root file system is an overlay whose upper half lies in memory.
#
# Everything here runs as root. Nothing that the server's owner chooses may reach it: not the environment, which is set
# behind the change of user, and no path of theirs outside of the overlay, since a link there leads wherever they like.

failed() {
    printf 'failed %s\n' "$(printf '%s' "$*" | tr '\n' ' ')"
    exit 1
}

# Whoever has the terminal of the session could type into it what its owner never typed.
no_terminal() {
    if (: </dev/tty) 2>/dev/null; then failed 'it would have the terminal that duel was started from'; fi
    for stream in 0 1 2; do
        if [ -t $stream ]; then failed 'one of its streams is a terminal'; fi
    done
}

try() { said=$("$@" 2>&1 </dev/null) || failed "$1 failed: ${said:-for no reason that it told}"; }

# The same addresses as the server's own, so that it can bind what it is configured to bind, and a client in here finds it
# where the server is found. There is no way out.
network() {
    try ip link set lo up
    if [ -n "$ADDRESS" ]; then try ip address add "$ADDRESS" dev lo; fi
    for setting in ipv4/ip_nonlocal_bind=1 ipv6/ip_nonlocal_bind=1 ipv4/ip_unprivileged_port_start=0; do
        # IPv6 may be switched off.
        echo "${setting#*=}" 2>/dev/null >"/proc/sys/net/${setting%=*}" || :
    done
}

# An overlay over the file system that is mounted at $1.
cover() {
    layers=$((layers + 1))
    mkdir "$base/upper$layers" "$base/work$layers" || return 1
    # What new files inherit, and what the programs see.
    chmod --reference="$1" "$base/upper$layers" && chown --reference="$1" "$base/upper$layers" || return 1
    mount -t overlay -o "lowerdir=$1,upperdir=$base/upper$layers,workdir=$base/work$layers" duel-twin "$root$1"
}

# Whether the way to a mount point leads through no link.
is_plain() { [ "$(cd -P "$1" && pwd -P)" = "$1" ]; }

files() {
    mounts=$(cat /proc/self/mountinfo)
    # A folder that is everywhere and whose content is not wanted below; this hides it from here on.
    base=/sys root=/sys/root layers=0
    try mount -t tmpfs -o "mode=755,size=$MEMORY_BYTES" duel-twin $base
    try mkdir $root
    # Not in a subshell, which would count for itself.
    cover / </dev/null >$base/said 2>&1 || failed "no overlay over the root file system: $(tail -c 600 $base/said)"
    while read -r _ _ _ _ point rest; do
        kind=${rest#* - }
        case $point in / | /proc | /proc/* | /sys | /sys/* | /dev | /dev/* | *[\\,:]*) continue ;; esac
        case ${kind%% *} in
            autofs | binfmt_misc | bpf | cgroup* | configfs | debugfs | devpts | devtmpfs | efivarfs | fuse.* | \
                fusectl | hugetlbfs | mqueue | nsfs | proc | pstore | ramfs | rpc_pipefs | securityfs | sysfs | tracefs)
                continue ;;
        esac
        # Of very many (containers' layers, say) the first; a server that needs another one will say so.
        [ $layers -lt 100 ] || break
        # What cannot be had is missing: the server tells if it cannot do without. A folder that cannot be the lower half of
        # an overlay is not even shown: through a bind its sockets would lead to programs outside, read-only or not. Through
        # an overlay they lead nowhere.
        if [ -d "$point" ]; then
            if is_plain "$root$point"; then cover "$point"; fi
        elif [ -f "$point" ] && [ -f "$root$point" ] && ! [ -L "$root$point" ] && is_plain "$root${point%/*}"; then
            mount --bind "$point" "$root$point" && mount -o remount,bind,ro "$root$point"
        fi
    done >/dev/null 2>&1 <<MOUNTS
$mounts
MOUNTS
    processes
    try mount -t sysfs -o ro sysfs $root/sys
    devices
}

# What it sees of processes are its own. The switches of the whole machine that lie beside them cannot be moved; those of
# its network can.
processes() {
    try mount -t proc proc $root/proc
    try mount --bind $root/proc/sys $root/proc/sys
    try mount --bind $root/proc/sys/net $root/proc/sys/net
    try mount -o remount,bind,ro $root/proc/sys
    for name in acpi bus fs irq scsi sysrq-trigger; do
        [ -e "$root/proc/$name" ] || continue
        try mount --bind "$root/proc/$name" "$root/proc/$name"
        try mount -o remount,bind,ro "$root/proc/$name"
    done
}

# No disk is among the devices, no terminal, and memory is shared with nobody.
devices() {
    try mount -t tmpfs -o "mode=755,size=$MEMORY_BYTES" duel-twin $root/dev
    for node in null zero full random urandom; do
        : >"$root/dev/$node"
        try mount --bind /dev/$node "$root/dev/$node"
    done
    mkdir -m 1777 $root/dev/shm
    mkdir $root/dev/pts
    mount -t devpts -o newinstance,ptmxmode=0666 devpts $root/dev/pts 2>/dev/null
    ln -s pts/ptmx $root/dev/ptmx
    for link in fd:fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do
        ln -s "/proc/self/${link#*:}" "$root/dev/${link%%:*}"
    done
}

# Makes the overlay the root folder of all here, process 1 too, and takes the old one away: what is there can then be
# reached by no path. What the program says, and how it ends, is kept in files without a name.
enter() {
    : >$base/said
    : >$base/ended
    exec 5>>$base/said 6<$base/said 7>>$base/ended 8<$base/ended
    try mkdir $root/dev/old
    try pivot_root $root $root/dev/old
    cd /
    try umount -l /dev/old
    rmdir /dev/old
}

# Other configurations in the place of the server's. They are mounted there, since what lies there is not ours to write to.
#
# What a path of theirs leads to may change at any moment, and must never be a program that root runs below. So the file is
# opened once, it has to hold what duel has read, and the mount is made on what was opened, not by the path.
configure() {
    eval "set -- $EDITED"
    count=0
    # Nobody else may look into this: a file's folder may be closed to who owns the server.
    try mkdir -m 700 /dev/edited
    while [ $# -ge 5 ]; do
        count=$((count + 1))
        [ -f "$1" ] || failed "its configuration is gone: $1"
        exec 9<"$1"
        now=$(head -c $((${#4} + 1)) <&9 && echo .)
        [ "$now" = "$4." ] || failed "its configuration has changed meanwhile: $1"
        printf '%s' "$5" >/dev/edited/$count || failed "no memory for its configuration"
        try chown "$2" /dev/edited/$count
        try chmod "$3" /dev/edited/$count
        said=$(mount --no-canonicalize --bind /dev/edited/$count /proc/self/fd/9 2>&1 </dev/null) ||
            failed "mount failed: $said"
        exec 9<&-
        shift 5
    done
}

# Done within, where every path of the server's ends in the overlay.
prepare() {
    # Another library in the place of the one that the server maps, by its name.
    if [ -n "$EXCHANGED" ]; then try mount --bind "$EXCHANGED_FOR" "$EXCHANGED"; fi
    configure
    # To append to a file, an overlay copies all of it into memory first. The twin begins its logs anew.
    eval "set -- $LOGS"
    for log; do
        if [ -f "$log" ] && ! [ -L "$log" ]; then { : >"$log"; } 2>/dev/null; fi
    done
}

# The program, with everything that it was started with: first the rights, then what it has chosen. It may put itself into
# the background.
start() {
    eval "set -- $RIGHTS"
    (
        trap 'echo $? >&7' EXIT
        printf '%s\n' "$INNER" | "$@" /bin/sh -s 6<&- 7>&- 8<&- 5>&-
    ) >&5 2>&1 </dev/null &
}

listens() { grep -q -s ":$PORT_HEX [0-9A-F]*:[0-9A-F]* 0A " /proc/net/tcp /proc/net/tcp6; }

# What it said, at its end.
last_words() { tail -c 600 <&6; }

wait_for_it() {
    tries=0
    until listens; do
        tries=$((tries + 1))
        status=$(cat <&8)
        [ "${status:-0}" = 0 ] || failed "it ended with status $status: $(last_words)"
        [ $tries -lt "$TRIES" ] || failed "it does not listen on the port; it said: $(last_words)"
        sleep 0.1
    done
    # Of the program's processes alone: what the shells here map is nobody's business.
    for process in $(grep -l -s -F -e "$EXECUTABLE" /proc/[0-9]*/maps); do cat "$process" 2>/dev/null; done |
        sed -n -E 's#^[^ ]* r-x[^ ]* [^/]*(/.*)$#maps \1#p' | sort -u
    echo ready
}

main() {
    PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
    no_terminal
    network
    files
    enter
    prepare
    start
    wait_for_it </dev/null &
    exec cat >/dev/null
}
