#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Fortran programs, made by verbatim-mpifort and run by `verbatim run`; skipped where there is no gfortran."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fortran")
# Without interfaces a compiler sees buffers of two types in calls of one function, and warns.
PROGRAMS = {"messages.f": ["-w"], "collectives.f90": ["-Wall", "-Werror", "-Wno-unused-dummy-argument"]}
# Both in fixed and in free form.
LINES = ("program both", "implicit none", "include 'mpif.h'", "print *, MPI_VERSION", "end program")
INCLUDES = "".join(f"      {line}\n" for line in LINES)
failures = []


def expect(condition, message):
    if not condition:
        failures.append(message)
        print(f"WRONG: {message}")


def run(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                          timeout=60)


def without_module(options, folder):
    """A wrapper whose module is not there says what to do, after what the compiler said."""
    wrapper = os.path.join(folder, "verbatim-mpifort")
    with open(options.mpifort, encoding="utf-8") as file:
        text = file.read()
    include = [w for w in run(options.mpifort, "-showme:incdirs").stdout.split() if os.path.exists(os.path.join(w, "mpif.h"))][0]
    other = os.path.join(folder, "include")
    os.makedirs(other)
    for name in ("mpif.h", "mpi.f90"):
        shutil.copy(os.path.join(include, name), other)
    with open(wrapper, "w", encoding="utf-8") as file:
        file.write(text.replace(include, other))
    os.chmod(wrapper, 0o755)
    program = os.path.join(folder, "program")
    command = [wrapper, os.path.join(HERE, "collectives.f90"), "-J", folder, "-o", program]
    done = run(*command, VERBATIM_FC=options.fc)
    expect(done.returncode != 0 and "there is no mpi.mod for 'use mpi'" in done.stderr, f"without the module: {done.stderr}")
    done = run("sh", "-c", done.stderr.strip().splitlines()[-1])
    expect(done.returncode == 0, f"what the wrapper tells to do fails: {done.stderr}")
    done = run(*command, VERBATIM_FC=options.fc)
    expect(done.returncode == 0 and not done.stderr, f"with the module made: {done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpifort", required=True)
    parser.add_argument("--tool", required=True, help="the program verbatim")
    parser.add_argument("--fc", default="", help="gfortran; empty: none here")
    options = parser.parse_args()
    if not options.fc:
        print("skipped: there is no gfortran here")
        return 77
    with tempfile.TemporaryDirectory(prefix="verbatim-mpi-") as folder:
        program = os.path.join(folder, "program")
        for source, words in PROGRAMS.items():
            done = run(options.mpifort, *words, os.path.join(HERE, source), "-J", folder, "-o", program, VERBATIM_FC=options.fc)
            expect(done.returncode == 0 and not done.stderr, f"{source} does not compile in silence: {done.stderr}")
            for ranks in ("1", "2", "4") if done.returncode == 0 else ():
                done = run(options.tool, "run", "-n", ranks, program)
                expect(done.returncode == 0 and done.stdout == "all is well\n",
                       f"{source} of {ranks} ranks ends with {done.returncode}: {done.stdout}{done.stderr}")
        source = os.path.join(folder, "both.f90")
        with open(source, "w", encoding="utf-8") as file:
            file.write(INCLUDES)
        for form in ("-ffree-form", "-ffixed-form"):
            done = run(options.mpifort, form, "-fsyntax-only", "-Wall", "-Wno-unused", source, VERBATIM_FC=options.fc)
            expect(done.returncode == 0 and not done.stderr, f"mpif.h in {form}: {done.stderr}")
        without_module(options, folder)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
