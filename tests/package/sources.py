#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Rules of the tree that no compiler sees: includes from the root, licences, no traces of a machine, no hidden build inputs."""
import argparse
import os
import re
import sys

CODE = (".cpp", ".hpp", ".c", ".h", ".inc")
BUILD = (".cmake", "CMakeLists.txt", "CMakePresets.json")
LIBRARY = ("runtime/", "providers/", "static_registry/", "abi/entry/", "mpi_shim/core/", "mpi_shim/coll/", "mpi_shim/api/",
           "mpi_shim/fortran/", "mpi_shim/teams/")

# What a file may not contain: (files it holds for, pattern, reason).
RULES = (
    (lambda p: p.endswith(CODE), r'#\s*include\s*"\.\.?/', "includes are written from the repository root"),
    (lambda p: p.endswith(CODE) and p.startswith(LIBRARY),
     r"#\s*include\s*<(string|vector|map|set|unordered_map|functional|mutex|shared_mutex|condition_variable|thread|future"
     r"|iostream|sstream|fstream|filesystem|regex|format)>", "needs libstdc++ when linked; the archive must not"),
    (lambda p: True, r"(?<![\w.])/(?:home|root|Users|work)/", "names a place of one machine"),
    (lambda p: p.endswith(BUILD), r"file\s*\(\s*GLOB", "a new file must show in the build, and a stray one must not"),
    (lambda p: p.endswith(BUILD), r"-march=native", "what we ship runs on other machines"),
    (lambda p: p.endswith(BUILD), r"\b(add_compile_options|add_definitions|link_libraries|include_directories)\s*\(",
     "flags belong to targets"),
)

# Which folders a room may include from, beside its own and abi/include. CMake gives each room of the library just the folders
# it asks for, and this is what it may ask for; tests see the whole tree.
ARROWS = (
    ("abi/include/", ()),
    ("abi/entry/", ("runtime/",)),
    ("abi/kernel/", ()),
    ("runtime/base/", ()),
    ("runtime/sync/", ("runtime/base/",)),
    ("runtime/memory/", ("runtime/base/", "runtime/sync/", "runtime/topo/")),
    ("runtime/time/", ("runtime/base/",)),
    ("runtime/topo/", ("runtime/base/",)),
    ("runtime/verbs/", ("runtime/",)),
    # providers/uverbs is the one parent that providers share.
    ("providers/", ("runtime/", "abi/kernel/", "abi/wire/", "providers/uverbs/")),
    ("static_registry/", ("providers/", "runtime/verbs/provider.hpp", "runtime/verbs/provider_registry.hpp")),
    # The verbs API's first user: of the runtime only what lies below the verbs. Its headers include each other as installed.
    ("mpi_shim/include/", ("mpi/",)),
    ("mpi_shim/core/", ("runtime/base/", "runtime/sync/", "runtime/time/", "runtime/topo/")),
    ("mpi_shim/coll/", ("mpi_shim/core/", "runtime/base/", "runtime/sync/", "runtime/topo/")),
    ("mpi_shim/api/", ("mpi_shim/core/", "mpi_shim/coll/", "runtime/base/", "runtime/sync/")),
    ("mpi_shim/fortran/", ("mpi_shim/core/", "runtime/base/", "runtime/sync/")),
    ("mpi_shim/teams/", ("mpi_shim/core/", "mpi_shim/coll/", "runtime/base/", "runtime/sync/")),
    # The suite says what verbs promise, whoever the provider is: nothing of one provider's tests, nothing behind the API.
    ("tests/conformance/", ("tests/support/",)),
)
LICENSED = CODE + BUILD[:2] + (".py",)


def sources(root):
    for where, folders, names in os.walk(root):
        relative = os.path.relpath(where, root)
        if relative == ".":
            # Build trees and the version control's own.
            folders[:] = [f for f in folders if not f.startswith("build") and f not in (".git", ".cache")]
            names = [n for n in names if n != ".git"]  # of a second worktree
        folders[:] = [f for f in folders if f != "__pycache__"]
        for name in names:
            yield os.path.normpath(os.path.join(relative, name))


def wrong_arrow(path, line):
    """Why this line of this file may not include what it does, or None."""
    included = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
    if not included:
        return None
    for room, allowed in ARROWS:
        if path.startswith(room):
            # A provider is a room of its own.
            own = "/".join(path.split("/")[:2]) + "/" if room == "providers/" else room
            if not included.group(1).startswith((own, "abi/include/", *allowed)):
                return f"{own} may not include {included.group(1)}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True)
    options = parser.parse_args()
    files = wrong = 0
    for path in sorted(sources(options.source)):
        try:
            with open(os.path.join(options.source, path), encoding="utf-8") as file:
                text = file.read()
        except UnicodeDecodeError:
            continue  # recorded data
        files += 1
        complaints = []
        scripted = text.startswith("#!")
        if (path.endswith(LICENSED) or scripted) and "SPDX-License-Identifier: BSD-2-Clause" not in text[:200]:
            complaints.append((1, "has no SPDX line at its head"))
        if path == os.path.join("tests", "package", "sources.py"):
            text = ""  # these patterns themselves
        for number, line in enumerate(text.splitlines(), 1):
            complaints += [(number, why) for applies, pattern, why in RULES if applies(path) and re.search(pattern, line)]
            complaints += [(number, why) for why in [wrong_arrow(path, line)] if why]
        for number, why in complaints:
            wrong += 1
            print(f"{path}:{number}: {why}")
    print(f"{files} files, {wrong} complaints")
    return 1 if wrong or files < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
