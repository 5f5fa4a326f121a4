# SPDX-License-Identifier: BSD-2-Clause
"""Everything that an archive calls of the C library is made to fail, or left out with a reason.

Usage: every_call_is_judged.py <nm> <archive> <calls.txt>
Reads the undefined symbols of the archive's own objects (not of its private copy of hwloc).
"""

import re
import subprocess
import sys

OURS = re.compile(r"_Z|vbt_|ibv_|verbs_|mult_to_|mbps_to_|__aarch64_|P?MPI_|p?mpi_")


def judged(path):
    names = {}
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        verdict, _, rest = line.partition(" ")
        called, _, reason = rest.partition(":")
        if verdict not in ("fails", "left") or (verdict == "left") != bool(reason.strip()):
            sys.exit(f"{path}:{number}: neither 'fails name ...' nor 'left name ...: reason'")
        for name in called.split():
            if name in names:
                sys.exit(f"{path}:{number}: {name} is judged twice")
            names[name] = verdict
    return names


def imported(nm, archive):
    listing = subprocess.run([nm, "-A", "-u", archive], capture_output=True, text=True, check=True)
    names = {}
    for line in listing.stdout.splitlines():
        where, _, symbol = line.rpartition(" ")
        name = symbol.split("@")[0]
        if ":hwloc.o:" in where or OURS.match(name):
            continue
        # What fortified headers make of a call.
        name = re.sub(r"^__(\w+)_chk$", r"\1", name)
        names.setdefault(name, where.split(":")[-2])
    return names


def main():
    nm, archive, path = sys.argv[1:]
    known = judged(path)
    called = imported(nm, archive)
    if not {"malloc", "free", "poll"} <= called.keys():
        sys.exit(f"{archive}: its symbols cannot be read")
    strangers = {name: where for name, where in called.items() if name not in known}
    for name, where in sorted(strangers.items()):
        print(f"{name}, called by {where}, has no line in {path}")
    idle = sorted(n for n, verdict in known.items() if verdict == "fails" and n not in called)
    for name in idle:
        print(f"{name} is made to fail, and nothing calls it")
    sys.exit(1 if strangers or idle else 0)


main()
