#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What libibverbs.so.1 exports: exactly names.txt, and everything that Debian's library does, under the same versions.

Exit status 77 (ctest: skipped) where Debian's library is missing; the first half is checked all the same.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ANSWERS = {"entry", "own", "code", "null", "minus", "nothing", "word"}


def exported(library):
    """{(name, node, is the default version): kind of symbol}"""
    found = {}
    output = subprocess.run(["readelf", "--wide", "--dyn-syms", library], check=True, text=True, stdout=subprocess.PIPE).stdout
    for line in output.splitlines():
        words = line.split()
        if len(words) < 8 or not words[0].rstrip(":").isdigit() or words[6] == "UND" or words[4] != "GLOBAL":
            continue
        name, at, node = words[7].partition("@")
        if words[6] == "ABS":
            continue  # the nodes themselves
        found[name, node.lstrip("@"), node.startswith("@")] = words[3]
    return found


def listed(names, releases):
    """{(name, node): what is behind it}"""
    wanted = {(f"verbs_register_driver_{n}", f"IBVERBS_PRIVATE_{n}"): "nothing" for n in releases}
    for line in Path(names).read_text().splitlines():
        if line.startswith("#") or not line:
            continue
        node, kind, *some = line.split()
        assert kind in ANSWERS, line
        since = re.fullmatch(r"private-(\d+)", node)
        nodes = [f"IBVERBS_PRIVATE_{n}" for n in releases if n >= int(since[1])] if since else [node]
        wanted.update({(name, one): kind for name in some for one in nodes})
    return wanted


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--names", required=True)
    parser.add_argument("--releases", required=True, type=int, nargs="+")
    parser.add_argument("--theirs", default="/usr/lib/x86_64-linux-gnu/libibverbs.so.1")
    options = parser.parse_args()

    ours = exported(options.library)
    wanted = listed(options.names, options.releases)
    have = {(name, node) for name, node, _ in ours}
    failures = [f"{name}@{node} is listed and not exported" for name, node in sorted(wanted.keys() - have)]
    failures += [f"{name}@{node} is exported and not listed" for name, node in sorted(have - wanted.keys())]
    failures += [f"{name}@{node} is {kind}" for (name, node, _), kind in sorted(ours.items())
                 if kind != ("OBJECT" if wanted.get((name, node)) == "word" else "FUNC")]
    dynamic = subprocess.run(["readelf", "--wide", "--dynamic", options.library], check=True, text=True, stdout=subprocess.PIPE).stdout
    for fact in ("Library soname: [libibverbs.so.1]", "BIND_NOW", "NODELETE"):
        if fact not in dynamic:
            failures.append(f"no {fact}")
    for needed in re.findall(r"NEEDED.*\[(.*)\]", dynamic):
        if not re.fullmatch(r"(libc|libm|libpthread|libdl|ld-linux.*)\.so\.\d+", needed):
            failures.append(f"needs {needed}")
    skipped = not Path(options.theirs).exists()
    if not skipped:
        failures += [f"Debian's {name}{'@@' if default else '@'}{node} ({kind}) is ours as {ours.get((name, node, default))}"
                     for (name, node, default), kind in sorted(exported(options.theirs).items())
                     if ours.get((name, node, default)) != kind]
    print("\n".join(failures) or f"{len(ours)} names, all of them listed")
    if skipped:
        print(f"skipped: there is no {options.theirs} to compare with (Debian package libibverbs1)")
    return 1 if failures else 77 if skipped else 0


if __name__ == "__main__":
    sys.exit(main())
