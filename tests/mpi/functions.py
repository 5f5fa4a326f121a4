#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every function of mpi.h is in the archive once, as PMPI_X and as the weak name MPI_X; the list of those that are missing
shrinks by itself, and refuses a function that is defined twice or that mpi.h does not declare. Fortran has them too, but for
those of C's alone, in an archive that needs no library of Fortran's or of C++'s.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

failures = []


def expect(condition, message):
    if not condition:
        failures.append(message)
        print(f"WRONG: {message}")


def declared(include, leave_out=()):
    names = []
    for name in sorted(set(os.listdir(os.path.join(include, "mpi"))) - set(leave_out)):
        with open(os.path.join(include, "mpi", name), encoding="utf-8") as file:
            text = re.sub(r"//.*", "", file.read())
        names += re.findall(r"^\w+ (MPI_[A-Z]\w*)\(", text, re.M)
    return names


def archive_has(names, nm, archive):
    done = subprocess.run([nm, "--defined-only", archive], capture_output=True, text=True, check=True)
    symbols = {}
    for kind, name in re.findall(r"^[0-9a-f]+ (\w) (P?MPI_\w+)$", done.stdout, re.M):
        symbols.setdefault(name, []).append(kind)
    for name in names:
        expect(symbols.get(name) == ["W"], f"{name} is in the archive as {symbols.get(name)}, not as one weak name")
        expect(symbols.get("P" + name) == ["T"], f"P{name} is in the archive as {symbols.get('P' + name)}")
    more = set(symbols) - set(names) - {"P" + name for name in names}
    expect(not more, f"the archive has what mpi.h does not declare: {sorted(more)}")


def fortran_has(options):
    names = set(declared(options.include, leave_out=("languages.h", "large_counts.h")))
    done = subprocess.run([options.nm, "--defined-only", options.fortran], capture_output=True, text=True, check=True)
    symbols = dict((name, kind) for kind, name in re.findall(r"^[0-9a-f]+ (\w) (p?mpi_\w+)_$", done.stdout, re.M))
    for name in sorted(name.lower() for name in names):
        expect(symbols.get(name) == "W", f"Fortran's archive has {name}_ as {symbols.get(name)}, not as a weak name")
        expect(symbols.get("p" + name) == "T", f"Fortran's archive has p{name}_ as {symbols.get('p' + name)}")
    done = subprocess.run([options.nm, "--undefined-only", options.fortran], capture_output=True, text=True, check=True)
    foreign = set(re.findall(r" U (_gfortran\w*|_Zn\w+|_Zd\w+|__cxa\w*|_ZSt\w*|_ZNSt\w*)", done.stdout))
    expect(not foreign, f"Fortran's archive needs {sorted(foreign)}")


def list_shrinks(options, names, folder):
    def missing(*bodies):
        entries = []
        for number, body in enumerate(bodies):
            entries.append(os.path.join(folder, f"entry{number}.cpp"))
            with open(entries[-1], "w", encoding="utf-8") as file:
                file.write(body)
        written = os.path.join(folder, "missing.cpp")
        chapters = os.path.join(options.include, "mpi")
        headers = ";".join(os.path.join(chapters, name) for name in sorted(os.listdir(chapters)) if name.endswith(".h"))
        done = subprocess.run([options.cmake, "-D", f"written={written}", "-D", f"chapters={headers}",
                               "-D", f"entries={';'.join(entries)}", "-P", options.script], capture_output=True, text=True)
        if done.returncode != 0:
            return None, done.stderr
        with open(written, encoding="utf-8") as file:
            return re.findall(r"^VMPI_ENTRY\([^,]*, (\w+),", file.read(), re.M), done.stderr

    send = "VMPI_ENTRY(int, MPI_Send, (const void* buf)) {}\n"
    found, _ = missing("")
    expect(found is not None and sorted(found) == sorted(names), "without a function of ours, not all are missing")
    found, _ = missing(send + "VMPI_ENTRY(double, MPI_Wtime, ()) {}\n")
    expect(found is not None and set(names) - set(found) == {"MPI_Send", "MPI_Wtime"},
           "with two functions of ours, not all but two are missing")
    found, text = missing(send, send)
    expect(found is None and "MPI_Send is defined in" in text, f"a function that is defined twice is taken: {text}")
    found, text = missing("VMPI_ENTRY(int, MPI_Sned, ()) {}\n")
    expect(found is None and "MPI_Sned" in text, f"a function that mpi.h does not have is taken: {text}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("include", "archive", "fortran", "nm", "cmake", "script"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    names = declared(options.include)
    expect(len(names) > 600 and len(set(names)) == len(names), f"mpi.h declares {len(names)} functions, or some twice")
    archive_has(names, options.nm, options.archive)
    fortran_has(options)
    with tempfile.TemporaryDirectory(prefix="verbatim-mpi-") as folder:
        list_shrinks(options, names, folder)
    print(f"{len(names)} functions")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
