# Linux: the sockets on which connections to the server arrive, and who holds them.

# Sockets as "INODE USER" in SOCKETS, who holds one of them in HOLDERS, and in ARRIVAL how they were found.
find_sockets() {
    ARRIVAL=port
    if [ -n "$ADDRESS" ]; then
        ARRIVAL=translated
        for network in $(networks_of_address); do
            ARRIVAL=address
            SOCKETS="$SOCKETS
$(listeners "$network" "$PORT" "$ADDRESS")"
        done
    fi
    case $ARRIVAL in
        translated) if is_near; then ARRIVAL=elsewhere; else SOCKETS=$(listeners self "$PORT" ''); fi ;;
        port) SOCKETS=$(listeners self "$PORT" '') ;;
    esac
    HOLDERS=$(holders "$(echo "$SOCKETS" | cut -d ' ' -f 1)")
}

# Who holds any socket that listens in the network of a process. Where connections are made to no port, as far as is known, it may be a
# Unix socket.
any_holders() {
    holders "$(
        listeners "$1" '' '' | cut -d ' ' -f 1
        if [ -z "$PORT" ]; then unix_listeners "$1"; fi
    )"
}

# Inodes of Unix sockets that listen: streams (type 1) that take connections (flag __SO_ACCEPTCON).
unix_listeners() {
    awk '$4 == "00010000" && $5 == "0001" && ++count <= 4096 { print $7 }' "$(net_of "$1")/unix" 2>/dev/null
}

# Where the files of a process's network are.
net_of() {
    case $1 in self) echo "$PROC/net" ;; *) echo "$PROC/$1/net" ;; esac
}

# A process of each network where connections to the address end. Where it is one of our own network, there they end; other
# networks on this machine may have it, too. None where it is translated on the way.
networks_of_address() {
    case $IP in
        127.* | ::1)
            # The loopback of another machine says nothing about this one: a tunnel leads here.
            if is_near; then echo self; fi
            return
            ;;
    esac
    if has_address self; then
        echo self
        return
    fi
    for process in $(other_networks); do
        if has_address "$process"; then echo "$process"; fi
    done
}

# One process of each network that is not ours.
other_networks() {
    ls -l "$PROC"/[0-9]*/ns/net 2>/dev/null | awk -v proc="$PROC/" -v ours="$(readlink "$PROC/self/ns/net")" '
        BEGIN { seen[ours] = 1 }
        $(NF - 1) == "->" && !($NF in seen) {
            seen[$NF] = 1
            split(substr($(NF - 2), length(proc) + 1), part, "/")
            print part[1]
        }' | head -n 256
}

# Whether the address is one of the network's own.
has_address() {
    case $IP in
        *:*) grep -q -s -i "^$ADDRESS " "$(net_of "$1")/if_inet6" ;;
        *)
            # A line with the address, and below it what is so of it.
            awk -v address="$IP" '
                $1 == "|--" { last = $2 }
                $1 == "/32" && $2 == "host" && $3 == "LOCAL" && last == address { found = 1; exit }
                END { exit !found }' "$(net_of "$1")/fib_trie" 2>/dev/null
            ;;
    esac
}

# listeners NETWORK PORT ADDRESS: sockets that listen (state 0A of the kernel's tables) and get connections to the address, as
# the kernel prefers them: the address itself, then all of its family, then all of both. Without an address, all of the
# port; without a port, all.
listeners() {
    net=$(net_of "$1")
    port=
    if [ -n "$2" ]; then port=$(printf '%04X' "$2"); fi
    awk -v port="$port" -v address="$3" -v big="$(printf '\1\0' | od -A n -t d2 2>/dev/null | tr -d ' ')" \
        -v ipv6_only="$(ipv6_only "$1" "$3")" '
        # An address as it is sent: the kernel prints words of four bytes as numbers of its own CPU.
        function as_sent(hex,  i, word, sent) {
            for (i = 1; i <= length(hex); i += 8) {
                word = substr(hex, i, 8)
                if (big != 256)
                    word = substr(word, 7, 2) substr(word, 5, 2) substr(word, 3, 2) substr(word, 1, 2)
                sent = sent word
            }
            return length(sent) == 8 ? mapped sent : sent
        }
        BEGIN {
            mapped = "00000000000000000000FFFF"
            none = "00000000000000000000000000000000"
            is_ipv4 = substr(address, 1, 24) == mapped
            best = 9
        }
        $4 == "0A" {
            at = index($2, ":")
            if (port != "" && substr($2, at + 1) != port) next
            bound = as_sent(substr($2, 1, at - 1))
            if (address == "" || bound == address) rank = 1
            else if (bound == (is_ipv4 ? mapped "00000000" : none)) rank = 2
            else if (is_ipv4 && bound == none && !index(ipv6_only, " " $10 " ")) rank = 3
            else next
            if (rank < best) { best = rank; found = "" }
            if (rank == best && ++count < 4096) found = found $10 " " $8 "\n"
        }
        END { printf "%s", found }' "$net/tcp" "$net/tcp6" 2>/dev/null
}

# Inodes, between blanks, of sockets that get no connections of IPv4; only ss tells, and it is asked only for IPv4.
ipv6_only() {
    case $2 in 00000000000000000000FFFF*) ;; *) return 0 ;; esac
    has ss || return 0
    enter=
    if [ "$1" != self ]; then enter="nsenter --net=$PROC/$1/ns/net --"; fi
    # shellcheck disable=SC2086 # the prefix is several words, or none
    brief $enter ss -l -t -n -e 2>/dev/null |
        sed -n 's/.* ino:\([0-9]*\) .* v6only:1.*/\1/p' | awk '{ printf " %s ", $1 }'
}

# Processes that hold one of these sockets. A listing of all descriptors tells who seems to: a name of an open file may hold
# line ends and pose as the rest of a line, or as another process. What a single descriptor is cannot be forged.
holders() {
    [ -n "$1" ] || return 0
    ls -l "$PROC"/[0-9]*/fd 2>/dev/null | awk -v proc="$PROC/" -v inodes="$(echo "$1" | tr '\n' ' ')" '
        BEGIN { n = split(inodes, list, " "); for (i = 1; i <= n; i++) wanted["socket:[" list[i] "]"] = 1 }
        index($0, proc) == 1 { split(substr($0, length(proc) + 1), part, "/"); pid = part[1]; next }
        NF > 2 && $(NF - 1) == "->" && ($NF in wanted) { print pid, $(NF - 2), $NF }' | {
        sure=' '
        while read -r pid descriptor socket; do
            case $pid$descriptor in '' | *[!0-9]*) continue ;; esac
            case $sure in *" $pid "*) continue ;; esac
            [ "$(readlink "$PROC/$pid/fd/$descriptor")" = "$socket" ] || continue
            sure="$sure$pid "
            # Process 1 may hold it for socket activation, and serves nobody then.
            if [ "$pid" = 1 ]; then
                case $(head -n 1 "$PROC/1/comm") in systemd | init) continue ;; esac
            fi
            echo "$pid"
        done
    } 2>/dev/null
}

port_state() {
    if [ -n "$PORT" ]; then echo "$SOCKETS" | sed -n 's/^[0-9]/socket &/p'; fi
    if [ -r "$PROC/net/tcp" ]; then echo 'tables tcp'; fi
    echo "user $(id -u)"
}
