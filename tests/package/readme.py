#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Holds README.md to its word: its program compiles, links with cc alone and prints what is shown; what it names exists."""
import argparse
import os
import re
import subprocess
import sys
import tempfile


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("readme", "include", "archive", "cc"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    with open(options.readme, encoding="utf-8") as file:
        text = file.read()

    program = re.findall(r"^```c\n(.*?)^```\n", text, re.M | re.S)
    shown = re.findall(r"^```text\n(.*?)^```\n", text, re.M | re.S)
    if len(program) != 1 or len(shown) != 1:
        sys.exit(f"{len(program)} C programs and {len(shown)} outputs in the README, expected one of each")
    with tempfile.TemporaryDirectory(prefix="verbatim-readme-") as folder:
        source, binary = os.path.join(folder, "program.c"), os.path.join(folder, "program")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program[0])
        subprocess.run([options.cc, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{options.include}", source,
                        options.archive, "-o", binary], check=True)
        environment = {"PATH": os.environ["PATH"], "VERBATIM_FABRIC": os.path.join(folder, "fabric")}
        done = subprocess.run([binary], env=environment, capture_output=True, text=True, timeout=30)
        if done.returncode != 0 or done.stdout != shown[0]:
            sys.exit(f"exit {done.returncode}, printed {done.stdout!r}, shown {shown[0]!r}\n{done.stderr}")

    root = os.path.dirname(os.path.abspath(options.readme))
    named = set(re.findall(r"`([\w.]+/[\w./]*)`", text)) | set(re.findall(r"\]\(([\w./-]+)\)", text))
    missing = sorted(n for n in named if not os.path.exists(os.path.join(root, n)))
    if missing or len(named) < 5:
        sys.exit(f"the README names {sorted(named)}, of which these do not exist: {missing}")
    print(f"the program prints {done.stdout!r}; {len(named)} named places exist")


if __name__ == "__main__":
    main()
