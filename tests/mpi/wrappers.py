#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The compiler wrappers, as users and their build systems call them: `verbatim-mpicc app.c -o app` makes a static program."""
import argparse
import os
import subprocess
import sys
import tempfile

PROGRAM = """#include <mpi.h>
#include <stdio.h>
int main(void) {
  int version, subversion;
  MPI_Get_version(&version, &subversion);
  printf("MPI %d.%d " TEXT "\\n", version, subversion);
  return 0;
}
"""
FORTRAN = """program app
  {0}
  {1}
  integer :: version, subversion, ierror
  call MPI_Get_version(version, subversion, ierror)
  print '(a,i0,a,i0)', 'MPI ', version, '.', subversion
end program
"""
failures = []


def expect(condition, message):
    if not condition:
        failures.append(message)
        print(f"WRONG: {message}")


def run(*command, folder, **environment):
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env={**os.environ, **environment},
                          stdin=subprocess.DEVNULL)


def makes(folder, expected, static, *command, **environment):
    program = os.path.join(folder, "app")
    if os.path.exists(program):
        os.remove(program)
    done = run(*command, "-o", "app", folder=folder, **environment)
    expect(done.returncode == 0, f"{command}: {done.stderr}")
    if done.returncode == 0:
        ran = run(program, folder=folder)
        expect(ran.stdout.strip() == expected, f"{command} made what prints {ran.stdout!r}, not {expected!r}")
        dynamic = run("readelf", "-d", program, folder=folder).stdout
        expect(("NEEDED" in dynamic) == (not static), f"{command}: static is to be {static}, and is not")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, help="the folder of the wrappers")
    for name in ("cc", "cxx", "fc"):
        parser.add_argument(f"--{name}", default="", help="the compiler; empty: none here")
    options = parser.parse_args()
    mpicc, mpicxx, mpifort = (os.path.join(options.bin, f"verbatim-mpi{name}") for name in ("cc", "cxx", "fort"))
    with tempfile.TemporaryDirectory(prefix="verbatim-mpi-") as folder:
        for name, text in (("app.c", PROGRAM), ("app.cpp", PROGRAM), ("app.f90", FORTRAN.format("use mpi", "implicit none")),
                           ("old.f90", FORTRAN.format("implicit none", "include 'mpif.h'"))):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)

        spaced = ["-D", 'TEXT="two words"']
        makes(folder, "MPI 5.0 two words", True, mpicc, *spaced, "app.c", VERBATIM_CC=options.cc)
        makes(folder, "MPI 5.0 two words", True, mpicxx, *spaced, "app.cpp", VERBATIM_CXX=options.cxx)
        makes(folder, "MPI 5.0 two words", False, mpicc, f"-cc={options.cc}", *spaced, "app.c", VERBATIM_MPI_STATIC="no")
        makes(folder, "MPI 5.0 two words", True, mpicc, *spaced, "-fPIE", "-static-pie", "app.c", OMPI_CC=options.cc)
        if options.fc:
            makes(folder, "MPI 5.0", True, mpifort, "old.f90", VERBATIM_FC=options.fc)
            makes(folder, "MPI 5.0", True, mpifort, "app.f90", VERBATIM_FC=options.fc)
        # In two steps, the objects of the first one being whatever the compiler makes without the wrapper's libraries.
        done = run(mpicc, *spaced, "-c", "app.c", "-o", "app.o", folder=folder)
        expect(done.returncode == 0 and not done.stderr, f"-c: {done.stderr}")
        makes(folder, "MPI 5.0 two words", True, mpicc, "app.o")

        def says(*words):
            done = run(mpicc, *words, folder=folder)
            expect(done.returncode == 0, f"{words}: {done.stderr}")
            return done.stdout.strip()

        include, libraries = says("-showme:compile"), says("-showme:link")
        expect(all(word.startswith("-I") for word in include.split()) and include, f"-showme:compile says {include}")
        expect(libraries.startswith("-static -L") and libraries.endswith("-lverbatim_mpi -lverbatim -pthread"),
               f"-showme:link says {libraries}")
        expect(says("-show", "app.c", "-o", "app") == f"cc {include} app.c -o app {libraries}", "-show of a link")
        expect(says("-show", "-c", "app.c") == f"cc {include} -c app.c", "-show of a compilation")
        expect(says("-show") == f"cc {include} {libraries}", "-show alone")
        expect(says("-showme:incdirs").split() == [word[2:] for word in include.split()], "-showme:incdirs")
        expect(says("-showme:libs") == "verbatim_mpi verbatim", "-showme:libs")
        expect(says("-compile-info") == f"cc {include}" and says("-link-info") == f"cc {libraries}", "MPICH's -compile-info")
        expect("lverbatim" not in says("--version"), "--version is the compiler's")
        done = run("sh", "-c", f"echo 'int main(void) {{ return 0; }}' | {mpicc} -x c - -o app", folder=folder)
        expect(done.returncode == 0 and says("-show", "-x", "c", "-").endswith(libraries), f"a program from a pipe: {done.stderr}")
        expect(says("-help").startswith("Compiles and links") and "-showme:compile" in says("--help"), "-help")
        done = run(mpicc, "-showme:nonsense", folder=folder)
        expect(done.returncode == 1 and "-showme:nonsense is unknown" in done.stderr, "-showme:nonsense is taken")
        done = run(mpicc, "absent.c", folder=folder)
        expect(done.returncode != 0, "the compiler's failure is lost")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
