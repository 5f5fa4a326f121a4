#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counts what a run of ctest showed: the sentences of GoogleTest programs, of which one entry of ctest holds a suite, and one
for each other check. Reads the file of `ctest --output-junit`; prints how many passed, failed and were skipped."""
import collections
import re
import sys
import xml.etree.ElementTree


def count(case):
    """Passed, failed and skipped sentences of one entry of ctest."""
    output = case.findtext("system-out") or ""
    said = collections.Counter()  # a row of programs says it several times
    for word, number in re.findall(r"^\[  (PASSED|FAILED|SKIPPED) +\] (\d+) test", output, re.M):
        said[word] += int(number)
    if case.get("status") == "run" and case.find("skipped") is None:
        if said and not any(said.values()):
            return (0, 1, 0)  # what it was to run is no longer there
        return (said.get("PASSED", 1), 0, said.get("SKIPPED", 0))
    skipped = case.find("skipped")
    if skipped is not None and "Unable to find executable" in skipped.get("message", ""):
        return (0, 1, 0)  # nobody built it
    if skipped is not None or case.get("status") == "disabled":
        return (0, 0, 1)
    return (said.get("PASSED", 0), max(1, said.get("FAILED", 0)), said.get("SKIPPED", 0))


def main():
    suite = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
    counts = [count(case) for case in suite.iter("testcase")]
    print(*(sum(column) for column in zip(*counts)))
    return 0 if counts else 1


if __name__ == "__main__":
    sys.exit(main())
