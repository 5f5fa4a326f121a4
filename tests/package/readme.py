#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds README.md and the pages that it leads to to their word: its program compiles, links with cc alone and prints what is
shown; parts of programs compile; what they name and link to exists."""
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


def links_of(text):
    """What a page links to in this tree."""
    return re.findall(r"\]\(([\w./-]+)\)", text)


def pages_from(root):
    """README.md and every page that links lead to from there: {path from the root: text}"""
    pages, wanted = {}, ["README.md"]
    while wanted:
        page = wanted.pop()
        path = os.path.join(root, page)
        if page in pages or not page.endswith(".md") or not os.path.isfile(path):
            continue
        with open(path, encoding="utf-8") as file:
            pages[page] = file.read()
        wanted += [os.path.normpath(os.path.join(os.path.dirname(page), link)) for link in links_of(pages[page])]
    return pages


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("readme", "include", "archive", "cc"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    root = os.path.dirname(os.path.abspath(options.readme))
    pages = pages_from(root)
    text = pages["README.md"]

    blocks = re.findall(r"^```(c|text)\n(.*?)^```\n", text, re.M | re.S)
    programs = [i for i, (kind, body) in enumerate(blocks) if kind == "c" and "int main(" in body]
    if len(programs) != 1 or programs[0] + 1 == len(blocks) or blocks[programs[0] + 1][0] != "text":
        sys.exit(f"{len(programs)} C programs in the README, expected one, followed by what it prints")
    program, shown = blocks[programs[0]][1], blocks[programs[0] + 1][1]
    fragments = [(page, body) for page in pages for body in re.findall(r"^```c\n(.*?)^```\n", pages[page], re.M | re.S)
                 if "int main(" not in body]
    if len(fragments) < 4 or len(pages) < 8:
        sys.exit(f"{len(fragments)} parts of programs on the pages {sorted(pages)}: some are not reached any more")
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
        for page, fragment in fragments:
            with open(source, "w", encoding="utf-8") as file:
                file.write(SURROUNDINGS % fragment)
            if subprocess.run([*compile_as, "-fsyntax-only", source], check=False).returncode != 0:
                sys.exit(f"{page}: this part of a program does not compile:\n{fragment}")

    named, missing = set(), []
    for page, body in pages.items():
        folder = os.path.dirname(page)
        for name in re.findall(r"`([\w.]+/[\w./]*)`", body) if page == "README.md" else []:
            named.add(name)
            missing += [(page, name)] if not os.path.exists(os.path.join(root, name)) else []
        for link in links_of(body):
            named.add(os.path.normpath(os.path.join(folder, link)))
            missing += [(page, link)] if not os.path.exists(os.path.join(root, folder, link)) else []
    if missing or len(named) < 5:
        sys.exit(f"the pages name {sorted(named)}, of which these do not exist: {missing}")
    print(f"the program prints {done.stdout!r}; {len(pages)} pages, {len(fragments)} parts of programs, {len(named)} named places")


if __name__ == "__main__":
    main()
