# Linux: everything is in /proc and /sys.

facts() {
    section os os
    section cpuinfo cpuinfo
    section cpu cpu_values
    section temperatures temperatures
    section memory values "$PROC/meminfo" "$SYS/kernel/mm/transparent_hugepage/enabled" "$PROC/swaps"
    section sysctl sysctls
    section mounts head_of "$PROC/mounts"
    section disks disks
    section links links
    section offloads offloads
    section routes routes
    section listening listening
    section firewall firewall
    # It sets variables, so a section must not run its command in a child of this shell; a function it does not.
    section server find_server
    first=${MEMBERS%% *}
    if [ -n "$first" ]; then
        main_pid=${ROOTS%% *}
        section process process "$main_pid"
        section arguments arguments "$main_pid"
        section environment environment "$main_pid"
        section limits head_of "$PROC/$main_pid/limits"
        section workers workers
        # What the workers map is what serves; a master may map more.
        last=${MEMBERS##* }
        section maps maps "$last"
        libraries "$last"
        section cgroup_path head_of "$PROC/$last/cgroup"
        find_cgroups "$last"
    else
        section cgroup_path head_of "$PROC/self/cgroup"
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

sysctls() {
    net=$PROC/sys/net
    values "$net"/ipv4/tcp_* "$net/ipv4/ip_local_port_range" "$net/core/somaxconn" "$net/core/netdev_max_backlog" \
        "$net/core/netdev_budget" "$net/core/rmem_default" "$net/core/rmem_max" "$net/core/wmem_default" \
        "$net/core/wmem_max" "$net/core/default_qdisc" "$net/core/busy_poll" "$net/core/busy_read" \
        "$net/netfilter/nf_conntrack_max" "$net/netfilter/nf_conntrack_count" \
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

links() {
    for link in "$SYS"/class/net/*; do
        # The speed of a link that is down, or has none, cannot be read; that says enough.
        values "$link/operstate" "$link/speed" "$link/duplex" "$link/mtu" "$link/tx_queue_len" 2>/dev/null |
            grep -v 'Invalid argument'
        set -- "$link"/queues/rx-*
        echo "$link/rx_queues:$#"
    done | head -c 65536
}

# Physical links only: those of containers have none of their own.
offloads() {
    has ethtool || { echo 'duel: no ethtool here'; return 1; }
    count=0
    for link in "$SYS"/class/net/*; do
        [ -e "$link/device" ] || continue
        count=$((count + 1))
        [ "$count" -le 8 ] || break
        brief ethtool -k "${link##*/}" 2>/dev/null | sed "s|^|${link##*/} |"
    done
}

routes() {
    has ip || { echo 'duel: no ip here'; return 1; }
    brief ip -o route show | head -n 200
    if has tc; then brief tc qdisc show | head -n 100; fi
}

listening() {
    has ss || { echo 'duel: no ss here'; return 1; }
    brief ss -l -t -n | head -n 500
}

# Looking must not load the module that it looks for.
has_nf_tables() {
    [ -e "$SYS/module/nf_tables" ] || grep -q nf_tables "/lib/modules/$(uname -r)/modules.builtin" 2>/dev/null ||
        { [ -r "$PROC/config.gz" ] && zcat "$PROC/config.gz" 2>/dev/null | grep -q '^CONFIG_NF_TABLES=y'; }
}

firewall() {
    if has_nf_tables; then
        if has nft; then
            if rules=$(brief nft -n -s list ruleset 2>&1); then
                # A line that ends in a brace or a semicolon, or has only a comment, is no rule.
                echo "nft $(printf '%s\n' "$rules" | grep -c -v -E '[{};]$|^[[:space:]]*(#|$)|^[[:space:]]*(elements|comment|counter packets .* bytes [0-9]+$)')"
            else
                echo "duel: nft: $(printf '%s\n' "$rules" | head -n 1)"
            fi
        else
            echo 'duel: no nft here'
        fi
    else
        echo 'nft 0'
    fi
    for family in ip ip6; do
        if [ -s "$PROC/net/${family}_tables_names" ]; then
            if has "${family}tables-legacy-save"; then
                echo "${family}tables $(brief "${family}tables-legacy-save" 2>/dev/null | grep -c '^-A')"
            elif has "${family}tables-save"; then
                echo "${family}tables $(brief "${family}tables-save" 2>/dev/null | grep -c '^-A')"
            else
                echo "duel: no ${family}tables-save here"
            fi
        elif [ -e "$PROC/net/${family}_tables_names" ] && [ ! -r "$PROC/net/${family}_tables_names" ]; then
            echo "duel: ${family}tables: not permitted"
        else
            echo "${family}tables 0"
        fi
    done
}

# Inodes of the sockets that listen on the port: state 0A of the kernel's tables.
port_inodes() {
    hex=$(printf '%04X' "$SERVER")
    awk -v port=":$hex" '$4 == "0A" && substr($2, length($2) - 4) == port { print $10, $8 }' \
        "$PROC/net/tcp" "$PROC/net/tcp6" 2>/dev/null | head -n 1000
}

# Everybody who holds one of the sockets. Process 1 may hold it for socket activation, and serves nobody then.
port_pids() {
    inodes=$(port_inodes | awk '{ printf "%s%s", sep, $1; sep = "|" }')
    [ -n "$inodes" ] || return 0
    ls -l "$PROC"/[0-9]*/fd 2>/dev/null | awk -v proc="$PROC/" -v inodes="$inodes" '
        BEGIN { n = split(inodes, list, "|"); for (i = 1; i <= n; i++) wanted["socket:[" list[i] "]"] = 1 }
        index($0, proc) == 1 { split(substr($0, length(proc) + 1), part, "/"); pid = part[1]; next }
        NF > 2 && $(NF - 1) == "->" && ($NF in wanted) && !(pid in seen) { seen[pid] = 1; print pid }' |
        while read -r pid; do
            if [ "$pid" = 1 ]; then
                case $(head -n 1 "$PROC/1/comm") in systemd | init) continue ;; esac
            fi
            echo "$pid"
        done
}

port_state() {
    port_inodes | sed 's/^/socket /'
    if [ -r "$PROC/net/tcp" ]; then echo 'tables tcp'; fi
    echo "user $(id -u)"
}

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
    if [ -r "$PROC/$1/exe" ]; then strings_of "$PROC/$1/exe"; fi
    echo "descriptors $(ls "$PROC/$1/fd" 2>/dev/null | wc -l)"
    echo "net $(readlink "$PROC/$1/ns/net")"
    echo "our_net $(readlink "$PROC/self/ns/net")"
    values "$PROC/$1/oom_score_adj" "$PROC/$1/timerslack_ns" 2>/dev/null
    head_of "$PROC/$1/status" && head_of "$PROC/$1/stat"
}

arguments() { tr '\0' '\n' <"$PROC/$1/cmdline" | head -c 16384; }

# Only names that are known to change speed leave the host, and none that may hold a secret.
environment() {
    [ -r "$PROC/$1/environ" ] || { echo "duel: no permission to read the environment of process $1"; return 1; }
    # To show a title of its own, a process writes over what it was started with.
    tr '\0' '\n' <"$PROC/$1/environ" 2>/dev/null | grep -q -a '^[A-Za-z_][A-Za-z0-9_]*=' ||
        { echo "duel: process $1 has none, or has written over it"; return 1; }
    tr '\0' '\n' <"$PROC/$1/environ" | grep -a -E "^($ENVIRONMENT)=" |
        grep -a -v -i -E '^[^=]*(pass|secret|token|key|cred)[^=]*=' | head -c 16384
}

workers() {
    for pid in $MEMBERS; do
        read -r line <"$PROC/$pid/stat" && echo "$line"
    done 2>/dev/null
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

# Lines of text in a library that tell its version and how it was built. Of a huge file only the first 32 MiB.
strings_of() {
    head -c 33554432 "$1" | grep -a -o -E "$STRINGS" | sort | uniq -c | sort -rn | sed 's/^ *[0-9]* /string /' |
        cut -c 1-600 | head -n 60
}

# A library is read as the process sees it: in its own root, or, where the file was replaced, from its memory map.
libraries() {
    [ -r "$PROC/$1/maps" ] || return 0
    awk '$2 ~ /x/ && substr($6, 1, 1) == "/" && !($6 in seen) { seen[$6] = 1; print $1, $6, $7 }' "$PROC/$1/maps" \
        2>/dev/null | grep -E "/($LIBRARIES)" | head -n 20 |
        while read -r range path deleted; do
            file=$PROC/$1/root$path
            [ -z "$deleted" ] || file=$PROC/$1/map_files/$range
            section "library $path" library "$file" "$deleted"
        done
}

library() {
    echo "deleted ${2:-no}"
    [ -r "$1" ] || { echo 'duel: the file cannot be read'; return 1; }
    echo "bytes $(wc -c <"$1")"
    strings_of "$1"
}

# Folders of the cgroup and all above it, for each hierarchy: a limit anywhere holds.
find_cgroups() {
    CGROUPS=$(
        awk -v mounts="$PROC/mounts" '
            BEGIN {
                while ((getline line < mounts) > 0) {
                    split(line, field, " ")
                    if (field[3] == "cgroup2") unified = field[2]
                    if (field[3] == "cgroup") {
                        n = split(field[4], option, ",")
                        for (i = 1; i <= n; i++) folder[option[i]] = field[2]
                    }
                }
            }
            {
                split($0, part, ":")
                path = substr($0, length(part[1]) + length(part[2]) + 3)
                if (path ~ /\.\./ || path == "/") path = ""
                if (part[1] == 0) base = unified
                else { split(part[2], controller, ","); base = folder[controller[1]] }
                # An empty unified hierarchy beside the others tells of the whole host.
                if (part[1] == 0 && path == "" && ("cpu" in folder)) next
                if (base == "" || (part[1] != 0 && part[2] !~ /cpu|memory|blkio/)) next
                for (depth = 0; depth < 16; depth++) {
                    print base path
                    if (path == "") break
                    sub(/\/[^\/]*$/, "", path)
                }
            }' "$PROC/$1/cgroup" 2>/dev/null | grep -v '[[:space:]]' | sort -u
    )
}

cgroup_limits() {
    for folder in $CGROUPS; do
        values "$folder/cpu.max" "$folder/cpu.weight" "$folder/cpuset.cpus.effective" "$folder/memory.max" \
            "$folder/memory.high" "$folder/memory.swap.max" "$folder/io.max" "$folder/pids.max" \
            "$folder/cpu.cfs_quota_us" "$folder/cpu.cfs_period_us" "$folder/cpu.shares" \
            "$folder/cpuset.effective_cpus" "$folder/memory.limit_in_bytes" "$folder/memory.soft_limit_in_bytes" \
            "$folder/blkio.throttle.read_bps_device" "$folder/blkio.throttle.write_bps_device" \
            "$folder/blkio.throttle.read_iops_device" "$folder/blkio.throttle.write_iops_device"
    done | head -c 65536
}

# What every sample reads, besides processes. Files that are not there now will not be there later.
find_sources() {
    SOURCES=
    net=$PROC/net
    # The server may live in a network of its own; its counters are those of that network.
    if [ -n "${main_pid-}" ] && [ -r "$PROC/$main_pid/net/snmp" ]; then net=$PROC/$main_pid/net; fi
    for file in "$PROC/uptime" "$PROC/stat" "$PROC/loadavg" "$PROC/vmstat" "$PROC/meminfo" "$PROC/diskstats" \
        "$net/dev" "$net/snmp" "$net/netstat" "$net/sockstat" "$net/softnet_stat" \
        "$PROC/pressure/cpu" "$PROC/pressure/memory" "$PROC/pressure/io" "$PROC/sys/net/netfilter/nf_conntrack_count" \
        "$SYS"/devices/system/cpu/cpu[0-9]/thermal_throttle/*_throttle_count \
        "$SYS"/devices/system/cpu/cpu[0-9]/cpufreq/scaling_cur_freq \
        "$SYS"/devices/system/cpu/cpu1[0-5]/thermal_throttle/*_throttle_count \
        "$SYS"/devices/system/cpu/cpu1[0-5]/cpufreq/scaling_cur_freq; do
        [ -r "$file" ] && SOURCES="$SOURCES $file"
    done
    # A sensor on a slow bus takes milliseconds to read; those inside a CPU do not.
    for folder in "$SYS"/class/hwmon/hwmon*; do
        [ -r "$folder/name" ] && read -r name <"$folder/name" || continue
        case $name in coretemp | k10temp | zenpower | cpu_thermal) SOURCES="$SOURCES $(echo "$folder"/temp[1-9]_input)" ;; esac
    done
    for folder in $CGROUPS; do
        for file in cpu.stat cpuacct.usage memory.current memory.usage_in_bytes memory.events memory.failcnt \
            cpu.pressure memory.pressure io.pressure; do
            [ -r "$folder/$file" ] && SOURCES="$SOURCES $folder/$file"
        done
    done
}

# One process reads everything: its prefix of every line is what nothing in a file can forge. Long lines that are not
# used are left out. Threads are read for their time on the CPU and in the queue, if they are not too many.
sample() {
    set --
    tasks=0
    for pid in $MEMBERS; do
        set -- "$@" "$PROC/$pid/stat" "$PROC/$pid/status" "$PROC/$pid/io"
        for task in "$PROC/$pid/task"/[0-9]*; do
            tasks=$((tasks + 1))
            [ "$tasks" -gt 128 ] || set -- "$@" "$task/schedstat"
        done
    done
    echo "members:$MEMBERS"
    echo "roots:$ROOTS"
    echo "tasks:$tasks"
    # shellcheck disable=SC2086 # the list is split on purpose: none of its paths holds a blank
    grep -H -a -s -v -E '^(intr|softirq|nr_zone_|numa_|Cpus_|Mems_|Sig|Shd|Cap|Speculation|x86_)' $SOURCES "$@"
    return 0
}

follow_kernel_log() {
    section 'log 0' kernel_log
    if [ -r /dev/kmsg ] && [ "$PROC" = /proc ]; then
        cat /dev/kmsg >&2 </dev/null &
        KERNEL_LOG=$!
    fi
}

kernel_log() {
    brief dmesg 2>&1 | tail -n 60
}

sockets() {
    has ss || { echo 'duel: no ss here'; return 1; }
    [ "$SERVER_KIND" = port ] || { echo 'duel: sockets are found by port'; return 1; }
    brief ss -t -i -n state established "sport = :$SERVER" | head -n 2000
}
