#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What goes over a line between two rxe devices: that nothing is lost or doubled whatever the line does, which addresses are
# picked, and what is told when the line goes. Runs inside tests/vm/run.
#
#   line_test.sh LINE TOOL      the built `line` and `verbatim`
line=$(realpath "$1") || exit 1
tool=$(realpath "$2") || exit 1
cd "$(dirname "$0")" || exit 1
. ./fabric.sh
scratch=$(mktemp -d)

has_gid() { cat "/sys/class/infiniband/$1/ports/1/gids/"* 2>/dev/null | grep -qi "$2"; }
has_no_gid() { ! has_gid "$@"; }
both() { "$1" rxe0 "$2" && "$1" rxe1 "$2"; }
address() {  # address add|delete ADDRESS-OF-V0 ADDRESS-OF-V1 GID: until the devices know
  local nodad=
  [[ $1 == add && $2 == *:* ]] && nodad=nodad
  ip address "$1" "$2" dev v0 $nodad && ip address "$1" "$3" dev v1 $nodad || return 1
  if [[ $1 == add ]]; then until_true 10 both has_gid "$4"; else until_true 10 both has_no_gid "$4"; fi
}
# Both addresses are this machine's, so IPv6 would go by the loopback device: what leaves by an end of the line is asked first.
ipv6_by_the_line() {
  ip -6 rule add pref 100 lookup local && ip -6 rule del pref 0 &&
    ip -6 rule add pref 1 oif v0 lookup 101 && ip -6 route add fd00:2::2/128 dev v0 table 101 &&
    ip -6 rule add pref 2 oif v1 lookup 102 && ip -6 route add fd00:2::1/128 dev v1 table 102
}
told() { grep -q "$2" "$scratch/$1"; }
in_state() { grep -q "$2" "/sys/class/infiniband/$1/ports/1/state"; }
gone() { ! kill -0 "$1" 2>/dev/null; }

check "two rxe devices over a line" rxe_pair || exit
check "the doctor finds devices, ports, addresses and packets that could be larger" diagnosed "$tool" \
  'OK +kernel device +rxe0 \(uverbs0\): ' 'OK +kernel device +rxe1 \(uverbs1\): ' 'OK +device +rxe0: opened' \
  'OK +port +rxe0 port 1: PORT_ACTIVE' 'OK +GID +rxe0 port 1: use GID index 1: ::ffff:10\.2\.0\.1 \(RoCE v2\)' \
  'WARN +MTU +rxe0 port 1: active MTU 1024, max 4096'
check "numbers over a whole line" timeout 100 "$line" numbers 200 whole
check "the line loses 1 %" netem loss 1%
say "numbers over a line that loses" timeout 100 "$line" numbers 200 lossy
check "packets were lost" lost_packets
check "the line loses 5 % and reorders" netem loss 5% delay 1ms reorder 25%
say "numbers over a line that loses and reorders" timeout 100 "$line" numbers 200 lossy
check "packets were lost" lost_packets
check "the line is whole again" netem

check "IPv4 is picked before link-local" timeout 30 "$line" gids ipv4
check "IPv6 beside it" address add fd00:2::1/64 fd00:2::2/64 fd00:0002
check "which goes by the line" ipv6_by_the_line
check "the first of them that is routable is picked" timeout 30 "$line" gids ipv4
check "no IPv4 any more" address delete 10.2.0.1/24 10.2.0.2/24 ffff:0a02
check "IPv6 is picked before link-local" timeout 30 "$line" gids ipv6
check "no IPv6 but link-local" address delete fd00:2::1/64 fd00:2::2/64 fd00:0002
check "link-local is picked when it is all there is" timeout 30 "$line" gids link

"$line" events rxe0 "$scratch/events" &
listener=$!
"$tool" asyncwatch -d rxe0 >"$scratch/watched" &
watcher=$!
check "somebody listens" until_true 20 told events watching
check "somebody watches" until_true 20 told watched 'async event FD'
check "an address comes" address add 10.2.0.1/24 10.2.0.2/24 ffff:0a02
check "that is told" until_true 20 told events 'GID'
check "asyncwatch shows it" until_true 20 told watched 'IBV_EVENT_GID_CHANGE (18), port 1'
check "the line goes" ip link set v0 down
check "that is told" until_true 20 told events 'port error'
check "and is so" until_true 10 in_state rxe0 DOWN
check "the doctor warns of it" diagnosed "$tool" 'OK +device +rxe0: opened' 'WARN +port +rxe0 port 1: PORT_DOWN'
check "the line comes back" ip link set v0 up
check "that is told" wait $listener
check "asyncwatch shows that the line went" until_true 10 told watched 'IBV_EVENT_PORT_ERR (10), port 1'
check "and that it came back" until_true 10 told watched 'IBV_EVENT_PORT_ACTIVE (9), port 1'
kill -TERM $watcher
check "asyncwatch ends when it is told to" until_true 10 gone $watcher
rm -rf "$scratch"
verdict
