# Linux: what is read for every sample, and the kernel's log.

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

# Within a namespace groups above its root are not shown, whatever they limit.
cgroup_path() {
    head_of "$PROC/$1/cgroup"
    if [ -e "$PROC/self/ns/cgroup" ]; then echo "namespace $(readlink "$PROC/self/ns/cgroup")"; fi
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
    # Of a network of its own this cannot be read from without.
    conntrack=$PROC/sys/net/netfilter/nf_conntrack_count
    [ -z "$OWN_NETWORK" ] || conntrack=
    for file in "$PROC/uptime" "$PROC/stat" "$PROC/loadavg" "$PROC/vmstat" "$PROC/meminfo" "$PROC/diskstats" \
        "$PROC/net/softnet_stat" \
        "$PROC/pressure/cpu" "$PROC/pressure/memory" "$PROC/pressure/io" $conntrack \
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
    # Lines for each device: of the server's own group alone, whose folder has the longest path.
    for file in io.stat blkio.throttle.io_service_bytes_recursive blkio.throttle.io_serviced_recursive; do
        own=
        for folder in $CGROUPS; do
            [ -r "$folder/$file" ] && [ ${#folder} -gt ${#own} ] && own=$folder
        done
        [ -z "$own" ] || SOURCES="$SOURCES $own/$file"
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
    net=$PROC/net
    if [ -n "$OWN_NETWORK" ]; then net=$PROC/${MEMBERS%% *}/net; fi
    set -- "$@" "$net/dev" "$net/snmp" "$net/netstat" "$net/snmp6" "$net/sockstat"
    echo "members:$MEMBERS"
    echo "roots:$ROOTS"
    echo "tasks:$tasks"
    # shellcheck disable=SC2086 # the list is split on purpose: none of its paths holds a blank
    grep -H -a -s -v -E '^(intr|softirq|nr_zone_|numa_|Cpus_|Mems_|Sig|Shd|Cap|Speculation|x86_)' $SOURCES "$@"
    return 0
}

# What each thread of the server sleeps in: the name of a kernel function, 0 of one that runs. Behind it "untimed" where that is a
# futex without a time-out, and "log" where it is in a write or a flush of the log of a database. Last, that system calls were told.
# Whoever may not trace the server is told 0 of all. Nothing is started for it, since it is looked at under load; of very many threads a
# look would take longer than they sleep.
sleeping() {
    [ -n "$MEMBERS" ] || return 1
    if [ -z "$FUTEX" ]; then
        # Numbers of the system calls futex, and of write, pwrite64, pwritev, pwritev2, fsync and fdatasync, by the kernel's tables.
        case $(uname -m) in
            x86_64) FUTEX=202 WRITES=' 1 18 296 328 74 75 ' ;;
            aarch64 | riscv64 | loongarch64) FUTEX=98 WRITES=' 64 68 70 287 82 83 ' ;;
            ppc64 | ppc64le) FUTEX=221 WRITES=' 4 180 321 381 118 148 ' ;;
            s390x) FUTEX=238 WRITES=' 4 181 329 377 118 148 ' ;;
            *) FUTEX=none WRITES= ;;
        esac
    fi
    threads=0
    calls=
    for pid in $MEMBERS; do
        for task in "$PROC/$pid/task"/[0-9]*; do
            threads=$((threads + 1))
            [ "$threads" -le 512 ] || { echo 'duel: too many threads'; return 1; }
            function= call= word= timeout=
            # The file ends without a line's end, for which read answers 1; a thread may have ended.
            { read -r function <"$task/wchan"; } 2>/dev/null
            case $function in
                # Whoever waits for what arrives neither writes nor waits for another thread.
                0 | *poll* | *nanosleep* | sk_wait* | *stream*_read* | *wait_woken*) ;;
                *)
                    { read -r call word operation value timeout rest <"$task/syscall"; } 2>/dev/null
                    if [ -n "$call" ] && [ "$FUTEX" != none ]; then calls=told; fi
                    case $call in
                        "$FUTEX") if [ "$timeout" = 0x0 ]; then function="$function untimed"; fi ;;
                        '') ;;
                        *) case $WRITES in *" $call "*) if is_log "$pid" "$word"; then function="$function log"; fi ;; esac ;;
                    esac
                    ;;
            esac
            echo "$function"
        done
    done
    if [ -n "$calls" ]; then echo 'calls are told'; fi
    return 0
}

# Whether a descriptor (in hexadecimal digits) of process $1 is a log of MySQL or MariaDB in its data folder, where these servers work:
# that of InnoDB, or a binary one.
is_log() {
    name=
    { read -r name <"$PROC/$1/comm"; } 2>/dev/null
    case $name in mariadbd | mysqld) ;; *) return 1 ;; esac
    case $2 in 0x*[!0-9a-f]* | '') return 1 ;; 0x?????*) return 1 ;; 0x*) ;; *) return 1 ;; esac
    descriptor=$(($2))
    data=$PROC/$1/cwd
    for file in "$data"/ib_logfile* "$data/#innodb_redo"/* "$data"/*.[0-9][0-9][0-9][0-9][0-9][0-9]; do
        # What a replica has fetched is none that transactions wait for.
        case $file in *relay*) continue ;; esac
        if [ "$PROC/$1/fd/$descriptor" -ef "$file" ]; then return 0; fi
    done
    return 1
}

# Connections that nobody has accepted yet, at sockets other than those on which requests to the server arrive: "tcp PORT CONNECTIONS" in
# hexadecimal digits, and "unix CONNECTIONS PATH". A Unix socket has a line for each of them, without an inode, in state 2 and under the path to which
# it leads. Sockets of TCP that listen come first in the kernel's tables, so that those of all connections are not read. Where it is not
# known which of them are the server's own, nothing is told of TCP.
queues() {
    [ -n "$MEMBERS" ] || return 1
    net=$PROC/net
    if [ -n "$OWN_NETWORK" ]; then net=$PROC/${MEMBERS%% *}/net; fi
    SOCKETS=$SOCKETS awk -v net="$net" '
        function tcp(file,  line, field, queue) {
            if ((getline line < file) > 0) seen = 1
            while ((getline line < file) > 0) {
                split(line, field, " ")
                # Older kernels tell of those that are being connected to beside each that listens.
                if (field[4] == "03") continue
                if (field[4] != "0A") break
                split(field[5], queue, ":")
                if (queue[2] != "00000000" && !(field[10] in own)) {
                    sub(/.*:/, "", field[2])
                    print "tcp", field[2], queue[2]
                }
            }
            close(file)
        }
        BEGIN {
            words = split(ENVIRON["SOCKETS"], word, " ")
            for (i = 1; i <= words; i += 2) own[word[i]]
            if (words) { tcp(net "/tcp"); tcp(net "/tcp6") }
            file = net "/unix"
            while ((getline line < file) > 0) {
                seen = 1
                # Names are told as they are: one with the end of a line in it may look like any line.
                if (line !~ /^[0-9a-f]+: [0-9A-F]+ 00000000 [0-9A-F]+ [0-9A-F]+ 02 +0 ./) continue
                for (i = 0; i < 7; i++) sub(/^ *[^ ]+/, "", line)
                waiting[substr(line, 2)]++
            }
            for (path in waiting) print "unix", waiting[path], path
            if (seen) print "looked"
        }' 2>/dev/null
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
    [ -n "$PORT" ] || { echo 'duel: sockets are found by port'; return 1; }
    can_look || return 1
    there ss -t -i -n state established "sport = :$PORT" | head -n 2000
}
