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
    main_pid=${ROOTS%% *}
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

# Of a line the process id is the fifth from the end: a command's name may hold blanks.
port_pids() {
    brief sockstat -4 -6 -l -q -p "$SERVER" | awk 'NF > 5 { print $(NF - 4) }'
}

port_state() {
    brief netstat -a -n -p tcp | awk -v port=".$SERVER" '
        $NF == "LISTEN" && substr($4, length($4) - length(port) + 1) == port { print "socket 0 0" }'
    echo 'tables tcp'
    echo "user $(id -u)"
}

parents() { ps -a -x -o ppid= -o pid= | sort -n -k 2; }

alive() { ps -p "$1" -o pid= >/dev/null 2>&1; }

arguments() { brief ps -w -w -o args= -p "$1" | tr ' ' '\n' | head -c 16384; }

environment() {
    brief procstat -e "$1" | tr ' ' '\n' | grep -a -E "^($ENVIRONMENT)=" |
        grep -a -v -i -E '^[^=]*(pass|secret|token|key|cred)[^=]*=' | head -c 16384
}

strings_of() {
    head -c 33554432 "$1" | grep -a -o -E "$STRINGS" | sort | uniq -c | sort -rn | sed 's/^ *[0-9]* /string /' |
        cut -c 1-600 | head -n 60
}

libraries() {
    brief procstat -v "$1" 2>/dev/null | awk '$4 ~ /x/ && $NF ~ /^\// && !($NF in seen) { seen[$NF] = 1; print $NF }' |
        grep -E "/($LIBRARIES)" | head -n 20 |
        while read -r path; do section "library $path" library "$path"; done
}

library() {
    [ -r "$1" ] || { echo 'duel: the file cannot be read'; return 1; }
    echo "bytes $(wc -c <"$1")"
    strings_of "$1"
}

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
