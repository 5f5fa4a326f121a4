#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the headers promise, the archive has.

`--list`: exported_functions.txt is exactly the non-inline functions that the public headers declare.
`--archive`: the archive defines each as a global function.
`--names`: the names that infiniband/verbs.h gives a program are exactly those of names.txt.
`--pins`: every structure and member of the headers is pinned in layout_pins.inc.
Exit status 77 (ctest: skipped) when Clang, which reads the headers, is missing.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import header_facts

LIST = Path(__file__).with_name("exported_functions.txt")
NAMES = Path(__file__).with_name("names.txt")
# Spelling helpers of ours, and the guards of the parts.
OWN_NAMES = re.compile(r"vbt_|VBT_|(INFINIBAND_VERBS(_\w+)?|VERBS_API|IB_USER_IOCTL_VERBS)_H$")
HEADERS = ["infiniband/verbs.h", "verbatim/gid.h", "verbatim/map.h", "verbatim/memory.h", "verbatim/query.h"]


def listed() -> set[str]:
    return {line for line in LIST.read_text().split("\n") if line and not line.startswith("#")}


def check_list(include: str, clang: str) -> list[str]:
    facts = [header_facts.read(clang, header, ["-I", include]) for header in HEADERS]
    declared = {name for one in facts for name, function in one.functions.items() if not function.inline}
    return ([f"{name}: declared, not in {LIST.name}" for name in sorted(declared - listed())]
            + [f"{name}: in {LIST.name}, not declared" for name in sorted(listed() - declared)])


def check_names(include: str, clang: str) -> list[str]:
    listed_names: dict[str, set[str]] = {}
    for line in NAMES.read_text().splitlines():
        if line and not line.startswith("#"):
            kind, *names = line.split()
            listed_names.setdefault(kind, set()).update(names)
    facts = header_facts.read(clang, HEADERS[0], ["-I", include])
    declared = {"record": set(facts.records), "enum": facts.enums.keys() - {""}, "value": set(facts.enumerators()),
                "function": set(facts.functions), "macro": set(facts.macros)}
    failures = [f"{NAMES.name} has no names of kind {kind}" for kind in declared if not listed_names.get(kind)]
    for kind, names in declared.items():
        wanted = listed_names.get(kind, set())
        failures += [f"{kind} {name}: in {NAMES.name}, not in the header" for name in sorted(wanted - names)]
        failures += [f"{kind} {name}: in the header, not in {NAMES.name}" for name in sorted(names - wanted)
                     if not OWN_NAMES.match(name)]
    return failures


def check_archive(archive: str) -> list[str]:
    lines = subprocess.run(["nm", "--defined-only", "--extern-only", "--format=posix", archive],
                           stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
    defined = {line.split()[0] for line in lines if re.match(r"\S+ T ", line)}
    return [f"{name}: not a global function of {Path(archive).name}" for name in sorted(listed() - defined)]


def check_pins(include: str, clang: str, pins: Path) -> list[str]:
    facts = header_facts.read(clang, HEADERS[0], ["-I", include])
    # Ends in a structure of the kernel's, so the kernel decides its layout.
    declared = {name: record for name, record in facts.records.items() if name != "ib_uverbs_query_port_resp_ex"}
    text = pins.read_text()
    sizes = set(re.findall(r"^PIN_SIZE\(\w+ (\w+),", text, re.M))
    members = set(re.findall(r"^PIN\(\w+ (\w+), ([\w.]+),", text, re.M))
    wanted = {(name, path) for name, record in declared.items() for path in record.members}
    return ([f"{name}: size not pinned" for name in sorted(set(declared) - sizes)]
            + [f"{name}.{path}: offset not pinned" for name, path in sorted(wanted - members)])


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--include")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--names", action="store_true")
    parser.add_argument("--archive")
    parser.add_argument("--pins", type=Path)
    arguments = parser.parse_args()
    clang = shutil.which("clang") or shutil.which("clang-14")
    if clang is None and not arguments.archive:
        print("skipped: clang is missing, which reads the headers")
        return 77
    failures = []
    if len(listed()) < 70:
        failures.append(f"{LIST.name} has {len(listed())} names only")
    if arguments.list:
        failures += check_list(arguments.include, clang)
    if arguments.names:
        failures += check_names(arguments.include, clang)
    if arguments.archive:
        failures += check_archive(arguments.archive)
    if arguments.pins:
        failures += check_pins(arguments.include, clang, arguments.pins)
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
