# Linux: everything is in /proc and /sys.

facts() {
    section os os
    section cpuinfo cpuinfo
    section cpu cpu_values
    section temperatures temperatures
    section memory values "$PROC/meminfo" "$SYS/kernel/mm/transparent_hugepage/enabled" \
        "$SYS/kernel/mm/transparent_hugepage/defrag" "$PROC/swaps"
    section mounts head_of "$PROC/mounts"
    section disks disks
    # It sets variables, so a section must not run its command in a child of this shell; a function it does not.
    section server find_server
    find_network "${ROOTS%% *}"
    section sysctl sysctls
    section links links
    section offloads offloads
    section routes routes
    section listening listening
    section firewall firewall
    section audit audit_rules
    # What is told of one process would not be true of several.
    case $ROOTS in *' '*) main_pid= ;; *) main_pid=$ROOTS ;; esac
    if [ -n "$main_pid" ]; then
        section process process "$main_pid"
        section arguments arguments "$main_pid"
        section environment environment "$main_pid"
        section limits head_of "$PROC/$main_pid/limits"
        section tracers tracers
        section other_limits other_limits "$main_pid"
        section workers workers
        # What the workers map is what serves; a master may map more.
        last=${MEMBERS##* }
        section maps maps "$last"
        libraries "$last"
        section cgroup_path cgroup_path "$last"
        find_cgroups "$last"
    else
        section cgroup_path cgroup_path self
        find_cgroups self
    fi
    section cgroup cgroup_limits
    find_sources
}

os() {
    uname -r
    uname -v
    uname -m
    head_of "$PROC/sys/kernel/hostname"
    grep -E '^(PRETTY_NAME|ID|VERSION_ID)=' /etc/os-release
    echo "command_line $(head_of "$PROC/cmdline")"
    echo "uptime $(head_of "$PROC/uptime")"
}

# The first CPU in full, then what may differ between them.
cpuinfo() {
    sed -n '1,/^$/p' "$PROC/cpuinfo" | head -c 32768
    echo "cpus $(grep -c '^processor' "$PROC/cpuinfo")"
    echo "models $(grep '^model name' "$PROC/cpuinfo" | sort -u | wc -l)"
    grep -E '^(cpu MHz|physical id|core id)' "$PROC/cpuinfo" | head -n 3072
}

cpu_values() {
    cpus=$SYS/devices/system/cpu
    clock=$SYS/devices/system/clocksource/clocksource0
    values "$cpus"/vulnerabilities/* "$cpus/online" "$cpus/smt/active" "$cpus/isolated" "$cpus/nohz_full" \
        "$cpus/cpu0/cpufreq/scaling_driver" "$cpus/cpu0/cpufreq/cpuinfo_max_freq" \
        "$cpus/cpu0/cpufreq/cpuinfo_min_freq" "$cpus/cpu0/cpufreq/scaling_max_freq" \
        "$cpus/cpu0/cpufreq/energy_performance_preference" "$cpus/cpufreq/boost" "$cpus/intel_pstate/no_turbo" \
        "$clock/current_clocksource" "$clock/available_clocksource" "$SYS/hypervisor/type" \
        "$SYS/class/dmi/id/sys_vendor" "$SYS/class/dmi/id/product_name" "$SYS/devices/system/node/online"
    for file in "$cpus"/cpu[0-9]*/cpufreq/scaling_governor; do
        [ -r "$file" ] && cat "$file"
    done | sort | uniq -c | sed 's/^ */governors /'
}

temperatures() {
    for file in "$SYS"/class/hwmon/hwmon*/temp*_input; do
        [ -r "$file" ] || continue
        read -r value <"$file" || continue
        label= name=
        [ -r "${file%_input}_label" ] && read -r label <"${file%_input}_label"
        [ -r "${file%/*}/name" ] && read -r name <"${file%/*}/name"
        echo "$value ${name:-hwmon} ${label:-${file##*/}}"
    done
    for zone in "$SYS"/class/thermal/thermal_zone*; do
        [ -r "$zone/temp" ] || continue
        read -r value <"$zone/temp" || continue
        read -r name <"$zone/type"
        echo "$value zone $name"
    done
}

# A server in a container has a network of its own. What is told of the network is then told of that one, or not at all.
find_network() {
    OWN_NETWORK=
    NETWORK=
    NET=$PROC/net
    [ -n "$1" ] && theirs=$(readlink "$PROC/$1/ns/net") && ours=$(readlink "$PROC/self/ns/net") &&
        [ "$theirs" != "$ours" ] || return 0
    OWN_NETWORK=yes
    NETWORK="nsenter --net=$PROC/$1/ns/net --"
    NET=$PROC/$1/net
} 2>/dev/null

# A command that looks at the server's network.
there() {
    # shellcheck disable=SC2086 # the prefix is several words, or none
    brief $NETWORK "$@"
}

can_look() {
    [ -z "$NETWORK" ] || $NETWORK true 2>/dev/null ||
        { echo 'duel: the server has a network of its own, and to enter it takes nsenter and root'; return 1; }
}

sysctls() {
    net=$PROC/sys/net
    can_look && there grep -H -a '' "$net"/ipv4/tcp_* "$net/ipv4/ip_local_port_range" "$net/core/somaxconn" \
        "$net/core/rmem_default" "$net/core/rmem_max" "$net/core/wmem_default" "$net/core/wmem_max" \
        "$net/netfilter/nf_conntrack_max" "$net/netfilter/nf_conntrack_count" 2>&1 | grep -v -a 'No such file'
    # Those below are the whole machine's.
    values "$net/core/netdev_max_backlog" "$net/core/netdev_budget" "$net/core/default_qdisc" \
        "$net/core/busy_poll" "$net/core/busy_read" \
        "$PROC"/sys/vm/swappiness "$PROC"/sys/vm/dirty_* "$PROC"/sys/vm/overcommit_memory "$PROC"/sys/vm/nr_hugepages \
        "$PROC"/sys/vm/zone_reclaim_mode "$PROC"/sys/kernel/numa_balancing "$PROC"/sys/kernel/sched_autogroup_enabled \
        "$PROC"/sys/kernel/randomize_va_space "$PROC"/sys/kernel/bpf_stats_enabled "$PROC"/sys/kernel/nmi_watchdog \
        "$PROC"/sys/fs/file-nr "$PROC"/sys/fs/file-max "$PROC"/sys/fs/nr_open
}

disks() {
    for disk in "$SYS"/block/*; do
        case ${disk##*/} in loop* | ram* | zram* | '*') continue ;; esac
        values "$disk/size" "$disk/queue/scheduler" "$disk/queue/rotational" "$disk/queue/read_ahead_kb" \
            "$disk/queue/nr_requests" "$disk/queue/write_cache" "$disk/queue/logical_block_size" \
            "$disk/queue/physical_block_size" "$disk/queue/wbt_lat_usec" "$disk/device/model"
    done 2>/dev/null | head -c 65536
}

# Runs a script with the folder of the network's links as $1. Which links /sys shows is a matter of where it was mounted. For a
# network of the server's own it is mounted anew, where nobody else sees it: what lies under that name among the server's
# mounts may be any file that its owner likes.
at_links() {
    if [ -z "$OWN_NETWORK" ]; then
        brief /bin/sh -c "$1" sh "$SYS/class/net"
    else
        # shellcheck disable=SC2086 # the prefix is several words
        brief $NETWORK unshare --mount /bin/sh -c 'mount -t sysfs -o ro sysfs /sys && exec /bin/sh -c "$1" sh /sys/class/net' \
            sh "$1" 2>/dev/null ||
            { echo 'duel: the server has a network of its own, whose links this machine does not show'; return 1; }
    fi
}

# The speed of a link that is down, or has none, cannot be read; that says enough.
links() {
    # shellcheck disable=SC2016 # for the other shell
    at_links 'for link in "$1"/*; do
            grep -H -a -s "" "$link/operstate" "$link/speed" "$link/duplex" "$link/mtu" "$link/tx_queue_len" 2>/dev/null
            queues=0
            for queue in "$link"/queues/rx-*; do queues=$((queues + 1)); done
            echo "$link/rx_queues:$queues"
            # Those of a virtual device are the ones of the PCI device around it.
            device="$link/device"
            [ -e "$device/msi_irqs" ] || device="$device/.."
            for irq in "$device"/msi_irqs/*; do
                { read -r cpus <"/proc/irq/${irq##*/}/effective_affinity_list"; } 2>/dev/null && echo "$link/interrupts:$cpus"
            done
        done; exit 0' | head -c 65536
}

# Physical links only: those of containers have none of their own. Whoever owns a container may give a link any name, of
# letters that mean something to a shell or to sed: such a name goes into no program and no pattern, and is left out.
offloads() {
    has ethtool || { echo 'duel: no ethtool here'; return 1; }
    can_look || return 1
    # shellcheck disable=SC2016 # for the other shell
    for link in $(at_links 'for link in "$1"/*; do [ ! -e "$link/device" ] || echo "${link##*/}"; done; exit 0' |
        grep -x '[A-Za-z0-9_][A-Za-z0-9._@-]*' | head -n 8); do
        there ethtool -k "$link" 2>/dev/null | while IFS= read -r line; do printf '%s %s\n' "$link" "$line"; done
    done
}

routes() {
    has ip || { echo 'duel: no ip here'; return 1; }
    can_look || return 1
    there ip -o route show | head -n 200
    if has tc; then there tc qdisc show | head -n 100; fi
}

listening() {
    has ss || { echo 'duel: no ss here'; return 1; }
    can_look || return 1
    there ss -l -t -n | head -n 500
}

# Looking must not load the module that it looks for.
has_nf_tables() {
    [ -e "$SYS/module/nf_tables" ] || grep -q nf_tables "/lib/modules/$(uname -r)/modules.builtin" 2>/dev/null ||
        { [ -r "$PROC/config.gz" ] && zcat "$PROC/config.gz" 2>/dev/null | grep -q '^CONFIG_NF_TABLES=y'; }
}

# Packets to a server in a network of its own pass the chains of the machine first.
firewall() {
    can_look || return 1
    filters ''
    if [ -n "$OWN_NETWORK" ]; then (NETWORK= NET=$PROC/net && filters machine.); fi
}

# The audit's rules, one to a line.
audit_rules() {
    has auditctl || { echo 'duel: no auditctl here'; return 1; }
    rules=$(brief auditctl -l 2>&1) || { echo "duel: $(printf '%s\n' "$rules" | head -n 1)"; return 1; }
    printf '%s\n' "$rules" | cut -c 1-200 | head -n 1000
}

# The rules of each filter, as "NAME RULES", or "duel: NAME: WHY" where they cannot be counted. $1 stands before the names.
filters() {
    nft_rules "$1"
    for family in ip ip6; do legacy_rules "$1" "$family"; done
}

nft_rules() {
    has_nf_tables || { echo "$1nft 0"; return; }
    has nft || { echo "duel: $1nft: no nft here"; return; }
    # With -a everything has a handle, and whatever is no rule opens a bracket before it.
    if rules=$(there nft -a -n -s list ruleset 2>&1); then
        echo "$1nft $(printf '%s\n' "$rules" | grep '# handle [0-9]*$' | grep -c -v '{ # handle [0-9]*$')"
    else
        echo "duel: $1nft: $(printf '%s\n' "$rules" | head -n 1)"
    fi
}

# The tables that iptables had before nft. Their list has no size, as no file in /proc has: only reading it tells whether it
# is empty.
legacy_rules() {
    names=$NET/$2_tables_names
    [ -e "$names" ] || { echo "$1$2tables 0"; return; }
    first=$(head -c 1 "$names" 2>/dev/null) || { echo "duel: $1$2tables: not permitted"; return; }
    [ -n "$first" ] || { echo "$1$2tables 0"; return; }
    for save in "$2tables-legacy-save" "$2tables-save"; do
        has "$save" || continue
        # Of this name there is also one that tells of nft's tables alone.
        case $("$save" -V 2>/dev/null) in *nf_tables*) continue ;; esac
        if rules=$(there "$save" 2>&1); then
            echo "$1$2tables $(printf '%s\n' "$rules" | grep -c '^-A')"
        else
            echo "duel: $1$2tables: $(printf '%s\n' "$rules" | head -n 1)"
        fi
        return
    done
    echo "duel: $1$2tables: no $2tables-legacy-save here"
}
