#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What libverbatim_pmpi.so shows to others: the functions that it stands before, and nothing else; of an MPI it needs no name, so
that programs without one start with it. And what `verbatim exec --pmpi` sets."""

import argparse
import os
import subprocess
import sys

COLLECTIVES = ("Bcast", "Reduce", "Allreduce", "Allgather", "Alltoall")
ALL = ("Barrier", *COLLECTIVES, "Finalize")


def names(nm, library, kind):
    lines = subprocess.run([nm, "-D", kind, library], check=True, capture_output=True, text=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("nm", "library", "tool"):
        parser.add_argument(f"--{option}", required=True)
    options = parser.parse_args()
    wanted = {f"MPI_{name}" for name in ALL} | {f"MPI_{name}_c" for name in COLLECTIVES}
    for name in ALL:
        wanted |= {f"mpi_{name.lower()}_", f"ompi_{name.lower()}_f"}
    wanted |= {"mpi_barrier_f08_", "mpi_finalize_f08_"}
    shown = names(options.nm, options.library, "--defined-only")
    if shown != wanted:
        sys.exit(f"too much: {sorted(shown - wanted)}, missing: {sorted(wanted - shown)}")
    needed = {name for name in names(options.nm, options.library, "--undefined-only") if "mpi" in name.lower()}
    if needed:
        sys.exit(f"it needs {sorted(needed)}")

    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([options.tool, "exec", "--pmpi", "sh", "-c", 'echo "$LD_PRELOAD $LD_LIBRARY_PATH"'], capture_output=True,
                          text=True, check=True, env={**clean, "LD_LIBRARY_PATH": "/as/before"})
    folder, name = os.path.split(done.stdout.split()[0])
    if name != "libverbatim_pmpi.so" or not os.path.samefile(folder, os.path.dirname(options.library)):
        sys.exit(f"LD_PRELOAD is {done.stdout}")
    if done.stdout.split()[1:] != ["/as/before"] or done.stderr:
        sys.exit(f"other than it was: {done.stdout} {done.stderr}")
    show = subprocess.run([options.tool, "exec", "--pmpi", "--show"], capture_output=True, text=True, check=True, env=clean)
    if show.stdout != f"export LD_PRELOAD='{folder}/{name}'\n":
        sys.exit(f"--show prints {show.stdout}")


if __name__ == "__main__":
    main()
