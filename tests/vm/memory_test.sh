#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Memory where it is real: a machine of two nodes, where vbt_alloc's choices are compared with the kernel's answers, and a device
# that pins what is registered, under a limit of locked memory. Runs inside tests/vm/run --nodes 2.
#
#   memory_test.sh PROGRAM      memory.cpp, built
memory=$(realpath "$1") || exit 1
cd "$(dirname "$0")" || exit 1
. ./fabric.sh

# Of a user without any right, whose limit is 256 KiB and may be raised to HARD.
limited() {  # limited HARD COMMAND ...
  local hard=$1
  shift
  prlimit --memlock=262144:"$hard" setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all "$@"
}
# says WORD ... -- COMMAND ...: COMMAND ends well and says every WORD in one line of its own.
says() {
  local words=() said word
  while [[ $1 != -- ]]; do words+=("$1"); shift; done
  shift
  said=$("$@" 2>&1) || { echo "$said"; return 1; }
  echo "$said"
  for word in "${words[@]}"; do
    said=$(grep -F -- "$word" <<<"$said") || { echo "not said: $word"; return 1; }
  done
  [[ $(wc -l <<<"$said") -eq 1 ]]
}
silent() {
  local said
  said=$("$@" 2>&1) && [[ -z $said ]] || { echo "$said"; return 1; }
}
only_node_0() {
  { mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup; } &&
    echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control && mkdir /sys/fs/cgroup/one &&
    echo 0 >/sys/fs/cgroup/one/cpuset.mems
}
reserve_huge_pages() {
  local pages=/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages
  echo 8 >"$pages" && grep -qx 8 "$pages"
}
on_node_0() { (echo 0 >/sys/fs/cgroup/one/cgroup.procs && exec "$@"); }

check "the machine has two nodes" grep -qx 0-1 /sys/devices/system/node/online || exit
check "memory lies where it is asked for" silent "$memory" placed
check "a pool in spread memory gives each thread what is on its node" silent "$memory" pool
check "memory near a device is on the device's node" silent "$memory" near shm0
check "8 huge pages are reserved on node 1" reserve_huge_pages
check "huge pages are got where they are, and what is too much is told" \
  says 'vbt_alloc: too few free pages of 2 MiB (raise vm.nr_hugepages)' -- "$memory" huge
check "a node without room is told" silent "$memory" full
check "a control group has node 0 alone" only_node_0
check "a node that is not ours is refused and shunned" says 'node 1: this process may not use that node' -- on_node_0 "$memory" forbidden

check "two rxe devices over a line" rxe_pair || exit
check "a region is asked about, and warned of where it is remote" \
  says 'is registered by a thread on NUMA node 0, and most of it lies on node 1' 'numactl --cpunodebind=1' -- "$memory" region rxe0
words=('cannot register 1024 KiB (Cannot allocate memory)' 'memlock limit 256 KiB (RLIMIT_MEMLOCK)' '64 KiB pinned already'
  '1088 KiB needed' "raise 'ulimit -l'" limits.conf LimitMEMLOCK=infinity '--ulimit memlock=-1')
check "a limit of locked memory is told, with the ways to raise it" says "${words[@]}" -- limited 262144 "$memory" limit rxe0
check "also what the user may raise it to" says "${words[@]}" "'ulimit -l 1088' is allowed" -- limited unlimited "$memory" limit rxe0
check "a low limit is told when the device is opened" \
  says 'RLIMIT_MEMLOCK is 262144 bytes: this will severely limit memory registrations on rxe0' -- limited 262144 "$memory" limit rxe0
check "root has no limit" silent prlimit --memlock=262144 "$memory" lifted rxe0
check "the root of a user namespace has" says "${words[@]}" -- \
  prlimit --memlock=262144 unshare --user --map-root-user "$memory" limit rxe0
verdict
