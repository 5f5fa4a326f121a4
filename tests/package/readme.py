#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds README.md to its word: its program compiles, links with cc alone and prints what is shown;
parts of programs compile; what it names exists."""
import argparse
import os
import re
import subprocess
import sys
import tempfile

# Of what is part of a program only.
SURROUNDINGS = """#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <verbatim/coll.h>
#include <verbatim/explain.h>
#include <verbatim/memory.h>
int exchange(void *context, const void *mine, void *all, size_t bytes);
void compute(void);
void part(struct ibv_qp *qp, struct ibv_wc wc, unsigned rank);
void part(struct ibv_qp *qp, struct ibv_wc wc, unsigned rank) {
  (void)qp, (void)wc, (void)rank;
%s}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("readme", "include", "archive", "cc"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    with open(options.readme, encoding="utf-8") as file:
        text = file.read()

    blocks = re.findall(r"^```(c|text)\n(.*?)^```\n", text, re.M | re.S)
    programs = [i for i, (kind, body) in enumerate(blocks) if kind == "c" and "int main(" in body]
    if len(programs) != 1 or programs[0] + 1 == len(blocks) or blocks[programs[0] + 1][0] != "text":
        sys.exit(f"{len(programs)} C programs in the README, expected one, followed by what it prints")
    program, shown = blocks[programs[0]][1], blocks[programs[0] + 1][1]
    fragments = [body for kind, body in blocks if kind == "c" and "int main(" not in body]
    with tempfile.TemporaryDirectory(prefix="verbatim-readme-") as folder:
        compile_as = [options.cc, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{options.include}"]
        source, binary = os.path.join(folder, "program.c"), os.path.join(folder, "program")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program)
        subprocess.run([*compile_as, source, options.archive, "-o", binary], check=True)
        environment = {"PATH": os.environ["PATH"], "VERBATIM_FABRIC": os.path.join(folder, "fabric")}
        done = subprocess.run([binary], env=environment, capture_output=True, text=True, timeout=30)
        if done.returncode != 0 or done.stdout != shown:
            sys.exit(f"exit {done.returncode}, printed {done.stdout!r}, shown {shown!r}\n{done.stderr}")
        for fragment in fragments:
            with open(source, "w", encoding="utf-8") as file:
                file.write(SURROUNDINGS % fragment)
            subprocess.run([*compile_as, "-fsyntax-only", source], check=True)

    root = os.path.dirname(os.path.abspath(options.readme))
    named = set(re.findall(r"`([\w.]+/[\w./]*)`", text)) | set(re.findall(r"\]\(([\w./-]+)\)", text))
    missing = sorted(n for n in named if not os.path.exists(os.path.join(root, n)))
    if missing or len(named) < 5:
        sys.exit(f"the README names {sorted(named)}, of which these do not exist: {missing}")
    print(f"the program prints {done.stdout!r}; {len(named)} named places exist")


if __name__ == "__main__":
    main()
