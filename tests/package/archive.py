#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reads libverbatim.a, with --mpi libverbatim_mpi.a, or with --mpi --teams libverbatim_coll.a: what its members need, what they
define, and that nothing in them runs at load.

With all members joined (ld -r), what stays undefined must be in the C library: that is what lets `cc` alone link a C
program, however much of the archive it uses.
"""
import argparse
import re
import subprocess
import sys
import tempfile

# Made by the linker, not by a library.
LINKER_MADE = {"_GLOBAL_OFFSET_TABLE_", "__start_vbt_providers", "__stop_vbt_providers"}

# In the C library, and yet not for us: a static program cannot have them, or the host program's life is not ours to end.
UNWELCOME = {
    "dlopen": "loads code at run time", "dlsym": "loads code at run time", "dlclose": "loads code at run time",
    "dlerror": "loads code at run time",
    "getaddrinfo": "needs the resolver's shared parts", "gethostbyname": "needs the resolver's shared parts",
    "getpwnam": "needs the name service's shared parts", "getpwuid": "needs the name service's shared parts",
    "exit": "ends the host program", "_exit": "ends the host program", "abort": "ends the host program",
    "__assert_fail": "ends the host program", "quick_exit": "ends the host program",
    "fork": "copies the host program", "system": "starts a shell",
}

CPLUSPLUS = re.compile(r"_Z|__cxa_|__gxx_|_Unwind_|__dynamic_cast|__dso_handle")

# Who owns a global name. The two without a prefix of their own are the API's.
OURS = re.compile(r"_{0,3}ibv_|vbt_|verbs_provider_|mult_to_ibv_rate$|mbps_to_ibv_rate$"
                  r"|_Z(T[VISTC]|GV|Z|TAXtl)?N[KVrRO]*8verbatim")

# MPI's own names in C and Fortran, for tools too, and what Fortran's module is compiled to.
MPIS = re.compile(r"P?MPI_[A-Z]|p?mpi_\w+_$|__mpi\w*_MOD_|_Z(T[VISTC]|GV|Z|TAXtl)?N[KVrRO]*4vmpi"
                  r"|_ZN8verbatim12make_nothrowIN4vmpi")  # the runtime's, of one of its types

# Of collectives without MPI, which go into processes that run another MPI: not one name of MPI's.
TEAMS = re.compile(r"vbt_coll_|_Z(T[VISTC]|GV|Z|TAXtl)?N[KVrRO]*4vmpi|_ZN8verbatim12make_nothrowI(N4vmpi|\d+vbt_coll_)")

STANDARD_INLINE = re.compile(r"_ZN?[KVrRO]*(St|S[absiod]|9__gnu_cxx|10__cxxabiv1)|_Z[a-z]{2}S|_ZSt|_Zn[wa][jm]Pv$")

RUNS_AT_LOAD = re.compile(r"\.(preinit_array|init_array|fini_array|ctors|dtors|init|fini)(\.|$)")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(nm, *arguments):
    """(name, type) of each line of nm -P, without the member headings."""
    lines = (line.split() for line in output(nm, "-P", *arguments).splitlines())
    return {(words[0], words[1]) for words in lines if len(words) >= 2 and not words[0].endswith(":")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("archive", "compiler", "nm", "ld", "readelf"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--objcopy", default="objcopy")
    parser.add_argument("--mpi", help="the archive is MPI's; this is the one below it")
    parser.add_argument("--teams", action="store_true", help="and has none of MPI's functions")
    options = parser.parse_args()
    ours, always_there = (MPIS, "MPI_Init") if options.mpi else (OURS, "ibv_get_device_list")
    if options.teams:
        ours, always_there = TEAMS, "vbt_coll_create_team"
    if options.mpi:
        del UNWELCOME["_exit"]  # MPI_Abort ends the process
    wrong = []

    with tempfile.NamedTemporaryFile(suffix=".o") as joined, tempfile.TemporaryDirectory() as folder:
        machine_code = []
        for archive in filter(None, (options.archive, options.mpi)):
            # Of fat LTO objects beside others, ld -r leaves out the others.
            machine_code.append(f"{folder}/{len(machine_code)}.a")
            output(options.objcopy, "--wildcard", "--remove-section=.gnu.lto_*", archive, machine_code[-1])
        subprocess.run([options.ld, "-r", "--whole-archive", *machine_code, "-o", joined.name], check=True)
        undefined = {name for name, _ in symbols(options.nm, "--undefined-only", joined.name)} - LINKER_MADE

    libraries = [output(options.compiler, f"-print-file-name={name}").strip() for name in ("libc.a", "libgcc.a")]
    provided = {name for name, _ in symbols(options.nm, "--defined-only", "-g", *libraries)}
    for name in sorted(undefined):
        if CPLUSPLUS.match(name):
            wrong.append(f"needs the C++ runtime: {name}")
        elif name in UNWELCOME:
            wrong.append(f"calls {name}, which {UNWELCOME[name]}")
        elif name not in provided:
            wrong.append(f"needs {name}, which libc does not have")

    defined = symbols(options.nm, "--defined-only", "-g", options.archive)
    for name, kind in sorted(defined):
        # Whether an inline function of the standard headers stays out of line is the compiler's choice; weak, it hurts nobody.
        if kind in "WV" and STANDARD_INLINE.match(name):
            continue
        if not ours.match(name):
            wrong.append(f"defines the global name {name} ({kind})")

    member = ""
    for line in output(options.readelf, "-S", "-W", options.archive).splitlines():
        if line.startswith("File: "):
            member = line[len("File: "):]
        section = re.match(r"\s*\[\s*\d+\]\s+(\S+)", line)
        if section and RUNS_AT_LOAD.match(section.group(1)):
            wrong.append(f"has code that runs at load: {section.group(1)} in {member}")

    print(f"{len(defined)} global names; from the C library: {' '.join(sorted(undefined))}")
    for line in wrong:
        print(f"WRONG: the archive {line}")
    if not any(name == always_there for name, _ in defined):
        print(f"WRONG: {always_there} is not in the archive: was it read at all?")
        return 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
