#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Says where the time of the last run of tests/run went: each preset's wall and processors' time beside its line of the budget,
what was compiled by target, and the longest tests. Reads what the run left in build/<preset>/: times, ninja_log.before, .ninja_log
and ctest.xml. Fails for nothing."""
import argparse
import collections
import dataclasses
import os
import re
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# A line of the budget is exceeded by so much before it is named: the same work differs by less from run to run.
TOLERANCE = 1.25


@dataclasses.dataclass
class Times:
    """Seconds of one preset: on the wall, and what the processors worked, for building and for testing."""
    built: float
    used_building: float
    tested: float
    used_testing: float

    def minutes(self):
        """What the budget counts: half of what the processors worked."""
        return (self.used_building + self.used_testing) / 2 / 60


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def times_of(folder):
    words = read(os.path.join(folder, "times")).split()
    return Times(*map(float, words)) if len(words) == 4 else None


def budget():
    """Minutes for each preset: the columns `build` and `tests` of the table in README.md."""
    rows = re.findall(r"^\| (\w+) \| ([\d.]+) \|[^|]*\| ([\d.]+) \|", read(os.path.join(ROOT, "tests", "README.md")), re.M)
    return {preset: float(build) + float(tests) for preset, build, tests in rows}


def compiled(folder):
    """Seconds by target, of what the last build ran: the lines of ninja's log that were not there before."""
    before = set(read(os.path.join(folder, "ninja_log.before")).splitlines())
    seconds = collections.Counter()
    for line in read(os.path.join(folder, ".ninja_log")).splitlines():
        fields = line.split("\t")
        if line in before or len(fields) != 5 or not fields[3].endswith(".o"):
            continue
        target = re.search(r"CMakeFiles/([^/]+)\.dir/", fields[3])
        seconds[target.group(1) if target else fields[3]] += (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def tests(folder):
    """Seconds and names of the entries of ctest."""
    path = os.path.join(folder, "ctest.xml")
    if not os.path.exists(path):
        return []
    suite = xml.etree.ElementTree.parse(path).getroot()
    return [(float(case.get("time") or 0), case.get("name")) for case in suite.iter("testcase")]


def in_columns(rows, columns=3):
    """Rows of (seconds, name), the longest first, some beside each other."""
    cells = [f"{seconds:7.1f}  {name}" for seconds, name in rows]
    width = max(map(len, cells), default=0)
    lines = -(-len(cells) // columns)
    for line in range(lines):
        print("".join(cell.ljust(width) for cell in cells[line::lines]).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--longest", type=int, default=20, help="how many tests and targets to name (20)")
    parser.add_argument("preset", nargs="*", help="by default, those of the last run")
    options = parser.parse_args()
    build = os.path.join(ROOT, "build")
    folders = {preset: os.path.join(build, preset) for preset in
               options.preset or read(os.path.join(build, "last-run")).split()}
    runs = {preset: times for preset, folder in folders.items() if (times := times_of(folder))}
    if not runs:
        print("no run has left its times")
        return

    objects = collections.Counter()
    for preset in runs:
        objects.update({f"{preset} {target}": spent for target, spent in compiled(folders[preset]).items()})
    print(f"\n== compiled, seconds by target (two at once), {sum(objects.values()):.0f} in all, the most:")
    in_columns([(spent, target) for target, spent in objects.most_common(options.longest)])

    longest = sorted(((spent, f"{preset} {name}") for preset in runs for spent, name in tests(folders[preset])), reverse=True)
    print(f"\n== the longest of {len(longest)} tests, seconds:")
    in_columns(longest[:options.longest], 2)

    lines = budget()
    print("\n== preset    build   tests  minutes on the wall; of two processors, and of them in the budget of tests/README.md")
    for preset, spent in runs.items():
        allowed = lines.get(preset)
        print(f"   {preset:8} {spent.built / 60:6.1f}  {spent.tested / 60:6.1f}  {spent.minutes():20.1f}"
              f"  {'none' if allowed is None else format(allowed, '.1f'):>18}")
    wall = sum(spent.built + spent.tested for spent in runs.values()) / 60
    print(f"   {'all':8} {wall:14.1f}  {sum(spent.minutes() for spent in runs.values()):20.1f}"
          f"  {sum(lines.get(preset, 0) for preset in runs):18.1f}")
    for preset, spent in runs.items():
        if preset in lines and spent.minutes() > lines[preset] * TOLERANCE:
            print(f"== {preset} takes {spent.minutes():.1f} minutes where its line of the budget says {lines[preset]:.1f}")


if __name__ == "__main__":
    main()
