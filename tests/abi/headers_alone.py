#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compiles every public header alone, twice included, with pedantic warnings as errors.

Also: verbs.h with each form of RDMA_STATIC_PROVIDERS, and all headers as on a system that has no
Linux kernel headers. `--installed` names the headers that the build installs: they must be all there
are. Exit status 77 (ctest: skipped) when the compiler is missing.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wcast-qual",
            "-Wundef", "-Wvla", "-Werror"]
CPP_WARNINGS = ["-Wold-style-cast", "-Wnon-virtual-dtor", "-Wextra-semi"]
CHOICES = ["shm", "shm,rxe", "all", "none", ",".join(f"p{i}" for i in range(20))]


def units(headers: list[str]) -> list[tuple[str, list[str]]]:
    # A unit needs a declaration of its own: ISO C has no empty ones.
    text = "#include <{0}>\n#include <{0}>\nextern int vbt_unit;\n"
    found = [(text.format(header), []) for header in headers]
    found += [(text.format("infiniband/verbs.h"), [f"-DRDMA_STATIC_PROVIDERS={choice}"]) for choice in CHOICES]
    found.append(("".join(f"#include <{header}>\n" for header in reversed(headers)), []))
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", type=Path, required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--standards", nargs="+", required=True)
    parser.add_argument("--installed", nargs="*", type=Path)
    arguments = parser.parse_args()
    if shutil.which(arguments.compiler) is None:
        print(f"skipped: {arguments.compiler} is missing")
        return 77

    headers = sorted(str(path.relative_to(arguments.include)) for path in arguments.include.rglob("*.h"))
    failures = []
    if len(headers) < 20:
        failures.append(f"only {len(headers)} headers below {arguments.include}")
    if arguments.installed is not None:
        installed = sorted(str(path.relative_to(arguments.include)) for path in arguments.installed)
        if installed != headers:
            failures.append(f"installed or not, but not both: {sorted(set(installed) ^ set(headers))}")

    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare"
        shutil.copytree(arguments.include, bare)
        hidden = 0
        for path in bare.rglob("*.h"):
            text, count = re.subn(r"__has_include\(<(linux|rdma)/[^)]*\)", "0", path.read_text())
            path.write_text(text)
            hidden += count
        if hidden != 2:
            failures.append(f"{hidden} places ask for kernel headers, 2 are known here")

        jobs = []
        for standard in arguments.standards:
            cpp = "++" in standard
            options = [f"-std={standard}", *WARNINGS, *(CPP_WARNINGS if cpp else [])]
            for include in (arguments.include, bare):
                for text, defines in units(headers):
                    source = Path(folder) / f"unit{len(jobs)}.{'cpp' if cpp else 'c'}"
                    source.write_text(text)
                    jobs.append(([arguments.compiler, *options, *defines, "-I", include, "-fsyntax-only", source],
                                 f"{text.splitlines()[0]} {' '.join(defines)} -std={standard}"
                                 f"{' without kernel headers' if include is bare else ''}"))

        def compile_one(job):
            done = subprocess.run(job[0], capture_output=True, text=True)
            return None if done.returncode == 0 else f"{job[1]}\n{done.stderr[:2000]}"

        with ThreadPoolExecutor(2) as pool:
            failures += [failure for failure in pool.map(compile_one, jobs) if failure]

    print(f"{len(headers)} headers, {len(jobs)} compilations")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
