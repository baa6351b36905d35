# FreeBSD: sysctl, vmstat, netstat, procstat. Every line of a sample carries the name of the tool that printed it.

facts() {
    section os freebsd_os
    section sysctl freebsd_sysctls
    section swap brief swapinfo -k
    section mounts mount -p
    section disks freebsd_disks
    section links brief netstat -i -b -n -W
    section link_states brief ifconfig -a
    section listening brief netstat -L -a -n
    section firewall freebsd_firewall
    section server find_server
    # What is told of one process would not be true of several.
    case $ROOTS in *' '*) main_pid= ;; *) main_pid=$ROOTS ;; esac
    if [ -n "$main_pid" ]; then
        section binary brief procstat -b "$main_pid"
        section arguments arguments "$main_pid"
        section environment environment "$main_pid"
        section limits brief procstat -l "$main_pid"
        last=${MEMBERS##* }
        section maps brief procstat -v "$last"
        libraries "$last"
    fi
}

freebsd_os() {
    uname -r
    uname -v
    uname -m
    hostname
    grep -E '^(PRETTY_NAME|ID|VERSION_ID)=' /etc/os-release
}

freebsd_sysctls() {
    sysctl hw.model hw.ncpu hw.physmem hw.machine_arch kern.osreldate kern.boottime kern.clockrate \
        kern.timecounter.hardware kern.timecounter.choice kern.vm_guest kern.smp.cores kern.smp.threads_per_core \
        dev.cpu.0.freq dev.cpu.0.freq_levels dev.cpu.0.temperature vm.overcommit vm.swap_total vfs.read_max \
        kern.ipc.soacceptqueue kern.ipc.maxsockbuf kern.maxfiles kern.openfiles kern.maxfilesperproc \
        net.inet.tcp.cc.algorithm net.inet.tcp.sendspace net.inet.tcp.recvspace net.inet.tcp.sendbuf_auto \
        net.inet.tcp.sendbuf_max net.inet.tcp.recvbuf_auto net.inet.tcp.recvbuf_max net.inet.tcp.delayed_ack \
        net.inet.tcp.initcwnd_segments net.inet.tcp.sack.enable net.inet.tcp.rfc1323 net.inet.tcp.tso \
        net.inet.tcp.msl net.inet.tcp.syncookies net.inet.tcp.functions_default net.inet.ip.portrange.first \
        net.inet.ip.portrange.last net.isr.dispatch net.isr.maxthreads security.jail.jailed \
        machdep.mitigations vm.pmap.pti hw.ibrs_active hw.mds_disable_state 2>/dev/null
    grep -E '^ *(CPU:|Features|Structured)' /var/run/dmesg.boot 2>/dev/null | head -n 12
}

freebsd_disks() {
    sysctl -n kern.disks
    brief iostat -I -x
}

# Counting must not load the filter that it counts.
freebsd_firewall() {
    for filter in pf ipfw ipl; do
        kldstat -q -m "$filter" 2>/dev/null || { echo "$filter 0"; continue; }
        case $filter in
            pf) rules=$(brief pfctl -s rules 2>&1) ;;
            ipfw) rules=$(brief ipfw list 2>&1) ;;
            ipl) rules=$(brief ipfstat -i -o 2>&1) ;;
        esac && echo "$filter $(printf '%s\n' "$rules" | grep -c .)" || echo "duel: $filter: $rules" | head -n 1
    done
}

# "PID BOUND" of everybody who listens for TCP on the port, in the order in which the kernel prefers them for the address. Of
# a line the fields are counted from the end: a command's name may hold blanks. tcp46 is a socket of both families.
listeners() {
    brief sockstat -4 -6 -l -q -P tcp ${1:+-p "$1"} | awk -v address="$2" '
        NF > 5 {
            pid = $(NF - 4); family = $(NF - 2); bound = $(NF - 1)
            sub(/:[0-9]+$/, "", bound)
            gsub(/[][]|%.*/, "", bound)
            is_ipv4 = address !~ /:/
            if (address == "" || bound == address) rank = 1
            else if (bound == "*" && family == (is_ipv4 ? "tcp4" : "tcp6")) rank = 2
            else if (bound == "*" && family == "tcp46") rank = is_ipv4 ? 3 : 2
            else next
            if (best == "" || rank < best) { best = rank; found = "" }
            if (rank == best) found = found pid "\n"
        }
        END { printf "%s", found }'
}

# Who listens, in HOLDERS, and in ARRIVAL how they were found.
find_sockets() {
    ARRIVAL=port
    if [ -n "$IP" ]; then
        ARRIVAL=translated
        if has_address; then ARRIVAL=address; elif is_near; then ARRIVAL=elsewhere; fi
    fi
    case $ARRIVAL in
        elsewhere) ;;
        address) HOLDERS=$(listeners "$PORT" "$IP") ;;
        *) HOLDERS=$(listeners "$PORT" '') ;;
    esac
}

any_holders() { listeners '' ''; }

# Whether connections to the address end here. The loopback of another machine says nothing about this one.
has_address() {
    case $IP in 127.* | ::1) is_near || return 1 ;; esac
    brief ifconfig -a | awk -v address="$IP" '
        $1 == "inet" || $1 == "inet6" { sub(/[%\/].*/, "", $2); if ($2 == address) found = 1 }
        END { exit !found }'
}

same_program() {
    first=$(brief procstat -b "$1" | awk 'END { print $NF }')
    shift
    [ -n "$first" ] || return 1
    for pid in "$@"; do
        [ "$(brief procstat -b "$pid" | awk 'END { print $NF }')" = "$first" ] || return 1
    done
}

name_of() { ps -p "$1" -o comm=; }

started() { ps -o lstart= -p "$1" | tr -s ' ' '_'; }

# The time of the boot moves when the clock is set; its name does not, where it has one.
boot() { sysctl -n kern.boot_id 2>/dev/null || sysctl -n kern.boottime 2>/dev/null; }

can_see() { alive "$1"; }

port_state() {
    if [ -n "$PORT" ]; then
        brief netstat -a -n -p tcp | awk -v port=".$PORT" '
            $NF == "LISTEN" && substr($4, length($4) - length(port) + 1) == port { print "socket 0 0" }'
    fi
    echo 'tables tcp'
    echo "user $(id -u)"
}

parents() { ps -a -x -o ppid= -o pid= | sort -n -k 2; }

alive() { ps -p "$1" -o pid= >/dev/null 2>&1; }

# Where one argument ends is not told: they are one text.
arguments() { brief ps -w -w -o args= -p "$1" | head -c 16384; }

environment() {
    brief procstat -e "$1" | tr ' ' '\n' | grep -a -E "^($ENVIRONMENT)=" |
        grep -a -v -i -E '^[^=]*(pass|secret|token|key|cred)[^=]*=' | head -c 16384
}

libraries() {
    brief procstat -v "$1" 2>/dev/null | awk '$4 ~ /x/ && $NF ~ /^\// && !($NF in seen) { seen[$NF] = 1; print $NF }' |
        grep -E "/($LIBRARIES)" | head -n 20 |
        while read -r path; do section "library $path" library "$path"; done
}

library() { read_once "$1"; }

sample() {
    echo "members:$MEMBERS"
    echo "roots:$ROOTS"
    sysctl kern.cp_time kern.cp_times vm.loadavg vm.stats.vm.v_free_count kern.openfiles \
        dev.cpu.0.freq dev.cpu.0.temperature | sed 's/^/sysctl:/'
    vmstat -s | sed 's/^/vmstat:/'
    netstat -s -p tcp | sed 's/^/tcp:/'
    netstat -i -b -n -W | sed 's/^/links:/'
    iostat -I -x | sed 's/^/disks:/'
    # shellcheck disable=SC2086 # ids are split on purpose
    if [ -n "$MEMBERS" ]; then
        procstat -r $MEMBERS | sed 's/^/procstat:/'
        for pid in $MEMBERS; do ps -o pid= -o lstart= -p "$pid"; done | sed 's/^/started:/'
    fi
    return 0
}

follow_kernel_log() { section 'log 0' kernel_log; }

kernel_log() { brief dmesg 2>&1 | tail -n 60; }

sockets() {
    echo 'duel: not available on FreeBSD'
    return 1
}

sleeping() { return 1; }

queues() { return 1; }
