# Starts a program anew in namespaces of its own. Sent to a shell that is process 1 of its own process namespace, with
# network, mounts and System V memory of its own; before it stand the variables that say what to start, and `twin_args`,
# `twin_environment`, which hand over arguments and environment. What it prints: `failed WHY`, or `maps FILE` for
# libraries, and `ready`.
#
# Its standard input is its life line: it ends with it, and the kernel ends everything else with process 1. Nothing is
# written to the disk: the root file system is an overlay whose upper half lies in memory.

failed() {
    printf 'failed %s\n' "$(printf '%s' "$*" | tr '\n' ' ')"
    exit 1
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

files() {
    mounts=$(cat /proc/self/mountinfo)
    # A folder that is everywhere and whose content is not wanted below; this hides it from here on.
    base=/sys root=/sys/root layers=0
    try mount -t tmpfs -o "mode=755,size=$MEMORY_BYTES" duel-twin $base
    try mkdir $root
    # Not in a subshell, which would count for itself.
    cover / </dev/null >$base/said 2>&1 || failed "no overlay over the root file system: $(last_words)"
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
        # What cannot be the lower half of an overlay, a file too, can be read. What cannot be had is missing: the server
        # tells if it cannot do without.
        [ -d "$point" ] && cover "$point" || mount --bind -o ro "$point" "$root$point"
    done >/dev/null 2>&1 <<MOUNTS
$mounts
MOUNTS
    try mount -t proc proc $root/proc
    try mount -t sysfs -o ro sysfs $root/sys
    devices
}

# No disk is among the devices, and memory is shared with nobody.
devices() {
    try mount -t tmpfs -o "mode=755,size=$MEMORY_BYTES" duel-twin $root/dev
    for node in null zero full random urandom tty; do
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

# The program, with everything that it was started with. It may put itself into the background.
start() {
    chroot=$(command -v chroot) || failed 'there is no chroot'
    eval "set -- $ARGUMENTS"
    set -- "$root" /bin/sh -c 'cd "$1" || exit; shift; exec "$@"' sh "$FOLDER" "$@"
    if [ -n "$USER_AND_GROUP" ]; then set -- --userspec="$USER_AND_GROUP" --groups="$GROUPS_TOO" "$@"; fi
    (
        ulimit -S -n "$DESCRIPTORS"
        twin_environment
        "$chroot" "$@"
        echo $? >$base/ended
    ) </dev/null >$base/said 2>&1 &
}

listens() { grep -q -s ":$PORT_HEX [0-9A-F]*:[0-9A-F]* 0A " /proc/net/tcp /proc/net/tcp6; }

# What it said, at its end.
last_words() { tail -c 600 $base/said; }

wait_for_it() {
    tries=0
    until listens; do
        tries=$((tries + 1))
        status=$(cat $base/ended 2>/dev/null)
        [ "${status:-0}" = 0 ] || failed "it ended with status $status: $(last_words)"
        [ $tries -lt "$TRIES" ] || failed "it does not listen on the port; it said: $(last_words)"
        sleep 0.1
    done
    $chroot $root /bin/sh -c 'cat /proc/[0-9]*/maps' 2>/dev/null |
        sed -n -E 's#^[^ ]* r-x[^ ]* [^/]*(/.*/lib(crypto|ssl)\.so[^/]*)$#maps \1#p' | sort -u
    echo ready
}

main() {
    PATH=/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
    network
    files
    start
    wait_for_it </dev/null &
    exec cat >/dev/null
}
