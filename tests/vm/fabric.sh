# SPDX-License-Identifier: BSD-2-Clause
# For scripts that run inside the machine (tests/vm/run): RDMA devices over a pair of virtual Ethernet devices, a line that
# loses, and servers that are waited for. To be sourced by bash.
# shellcheck shell=bash

[[ ${VERBATIM_IN_VM:-} == 1 ]] || { echo "this belongs into tests/vm/run" >&2; exit 1; }

# Counts what failed and goes on: one boot tells all that is wrong. The last line of a script is `verdict`. What everything
# after it stands on is said as `check ... || exit`.
vm_failures=0
check() {  # check NAME COMMAND [ARGUMENT ...]
  local name=$1 log begin=$EPOCHREALTIME status=0
  shift
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    printf 'ok      %s (%d ms)\n' "$name" $(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))
    [[ -z ${vm_says:-} ]] || sed 's/^/        /' "$log"
  else
    printf 'FAILED  %s: %s\n' "$name" "$*"
    sed 's/^/        /' "$log"
    vm_failures=$((vm_failures + 1))
    status=1
  fi
  rm -f "$log"
  return $status
}
# The same for what has figures to tell: they are shown when all is well, too.
say() {  # say NAME COMMAND [ARGUMENT ...]
  vm_says=1 check "$@"
}
verdict() {
  echo "$vm_failures failed"
  [[ $vm_failures -eq 0 ]]
}

# diagnosed TOOL LINE ...: so begin lines of the doctor's, as grep -E has it.
diagnosed() {
  local said line
  said=$("$1" doctor)
  shift
  for line; do
    grep -qE "^$line" <<<"$said" || { printf "no line '%s' in:\n%s\n" "$line" "$said"; return 1; }
  done
}

# until_true SECONDS COMMAND ...: asks again and again, for what another process or the kernel is about to do.
until_true() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [[ $SECONDS -lt $end ]] || { echo "still not true: $*" >&2; return 1; }
    sleep 0.02
  done
}

# v0 and v1, the two ends of a line, in one namespace: rxe 6.1 opens its socket in the first one. The settings keep the kernel
# from answering for the other end itself.
veth_pair() {
  modprobe -a veth sch_netem || return 1
  sysctl -q net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 net.ipv4.conf.all.accept_local=1 \
    net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 || return 1
  ip link add v0 type veth peer name v1 &&
    ip address add 10.2.0.1/24 dev v0 && ip address add 10.2.0.2/24 dev v1 &&
    ip link set v0 up && ip link set v1 up
}

# rxe0 over v0, rxe1 over v1, both active. GID index 1 is the IPv4 one on each.
rxe_pair() {
  modprobe -a ib_uverbs rdma_ucm rdma_rxe && veth_pair &&
    rdma link add rxe0 type rxe netdev v0 && rdma link add rxe1 type rxe netdev v1 &&
    for device in rxe0 rxe1; do
      until_true 10 grep -q ACTIVE "/sys/class/infiniband/$device/ports/1/state" &&
        until_true 10 grep -q 0000:ffff:0a02 "/sys/class/infiniband/$device/ports/1/gids/1" || return 1
    done
}

# siw_device MODULE: siw0 over v0, active.
siw_device() {
  modprobe -a ib_uverbs rdma_ucm iw_cm libcrc32c && insmod "$1" && veth_pair && rdma link add siw0 type siw netdev v0 &&
    until_true 10 grep -q ACTIVE /sys/class/infiniband/siw0/ports/1/state
}

# What the functions above made, and what a script did to it, is gone: the next one begins as in a machine of its own.
no_fabric() {
  local device
  for device in /sys/class/infiniband/*; do
    [[ ! -e $device ]] || rdma link delete "${device##*/}"
  done
  ip link delete v0 2>/dev/null
  modprobe -r siw 2>/dev/null
  return 0
}

# netem loss 1%, netem loss 5% delay 1ms reorder 25%, ...: what each direction of the line does to packets. Without: nothing.
netem() {
  local end
  for end in v0 v1; do
    tc qdisc del dev "$end" root 2>/dev/null
    [[ $# -eq 0 ]] || tc qdisc add dev "$end" root netem "$@" || return 1
  done
}

lost_packets() {  # since the last netem, in either direction
  { tc -s qdisc show dev v0; tc -s qdisc show dev v1; } | tee /dev/stderr | grep -q 'dropped [1-9]'
}

listening() {  # listening PORT
  grep -qi ":$(printf %04X "$1") 0\{8,32\}:0000 0A" /proc/net/tcp /proc/net/tcp6
}

listening_or_gone() { listening "$1" || ! kill -0 "$2"; }

# calibrated COMMAND [ARGUMENT ...]: again where Debian's perftest has found that the clock of a busy machine is not to be told.
calibrated() {
  local log tries status
  log=$(mktemp)
  for tries in 1 2 3; do
    status=0
    "$@" >"$log" 2>&1 || status=$?
    cat "$log"
    [[ $status -ne 0 ]] || break
    grep -q 'Correlation coefficient' "$log" || break
    echo "try $tries: the clock could not be told"
  done
  rm -f "$log"
  return $status
}

# between PORT SERVER-COMMAND -- CLIENT-COMMAND: the client starts when the server listens on PORT; both must end well.
between() {
  local port=$1 server=() process status=0 result
  shift
  while [[ $1 != -- ]]; do server+=("$1"); shift; done
  shift
  "${server[@]}" &
  process=$!
  until_true 20 listening_or_gone "$port" "$process"
  if listening "$port"; then
    "$@" || { status=$?; echo "client: status $status"; }
  else
    status=1
  fi
  [[ $status -eq 0 ]] || kill "$process" 2>/dev/null  # it would wait for a client that has gone
  wait "$process" || { result=$?; [[ $status -ne 0 ]] || { status=$result; echo "server: status $status"; }; }
  return "$status"
}
