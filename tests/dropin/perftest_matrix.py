#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every program of perftest, by every transport that it has, with every option and pair of options that it takes:
`perftest_matrix.py --tool verbatim CASE`, for the extended run. A case is an option, alone and with each of those after it.

What perftest itself refuses, whatever the device, is left out here and named beside the option.
"""

import itertools
import sys

import programs

LATENCY, BANDWIDTH = "lat", "bw"
LIMIT = 180  # seconds: for each size of -a a latency program measures what a tick of the processor is, which a busy machine delays
TRANSPORTS = {"send": ("RC", "UC", "UD", "XRC"), "write": ("RC", "UC", "XRC"), "read": ("RC", "XRC"), "atomic": ("RC", "XRC")}


class Option:
    def __init__(self, words, verbs="send write read atomic", measures=(LATENCY, BANDWIDTH), transports=("RC", "UC", "UD", "XRC"), apart=()):
        self.words, self.verbs, self.measures, self.transports, self.apart = words, verbs.split(), measures, transports, apart

    def is_taken(self, verb, measure, transport):
        return verb in self.verbs and measure in self.measures and transport in self.transports


OPTIONS = {
    "none": Option(""),
    # Its sizes are its own, so no -s; an atomic has 8 bytes.
    "all": Option("-a", verbs="send write read", apart=("duration", "inline")),
    "queues": Option("-q 4", measures=(BANDWIDTH,)),
    "events": Option("-e", verbs="send read atomic", apart=("duration",)),  # a target of WRITE hears of none
    "srq": Option("--use-srq", verbs="send"),
    "inline": Option("-I 64 -s 64", verbs="send write", apart=("all",)),
    "lists": Option("-l 16", measures=(BANDWIDTH,)),
    "both": Option("-b", measures=(BANDWIDTH,)),
    "duration": Option("-D 1", apart=("all", "events")),
    "odp": Option("--odp", verbs="send write read", transports=("RC", "UD", "XRC")),  # "ODP does not support UC", nor atomics
    "mr_per_qp": Option("--mr_per_qp -q 4", measures=(BANDWIDTH,), apart=("queues",)),
}


def command(verb, measure, transport, names):
    # perftest counts each completion as a hundred requests: with several queue pairs it ends where -n is a multiple.
    few, many = (5, 100) if measure == LATENCY else (16, 800)
    rounds = "" if "duration" in names else f"-n {few if 'all' in names else many}"
    words = [OPTIONS[name].words for name in names]
    return " ".join(" ".join([f"ib_{verb}_{measure} -c {transport}", *words, rounds]).split())


def lines(verb, measure, transport, first):
    """The command lines of a case."""
    taken = [name for name, option in OPTIONS.items() if option.is_taken(verb, measure, transport)]
    yield command(verb, measure, transport, [first])
    # A run of all sizes takes perftest some seconds: one transport has its pairs.
    if first == "none" or (first == "all" and transport != "RC"):
        return
    for second in taken[taken.index(first) + 1:]:
        if second not in OPTIONS[first].apart:
            yield command(verb, measure, transport, [first, second])


def play(all_lines):
    def play_each(fabric):
        for number, line in enumerate(all_lines):
            fabric.begin(LIMIT)
            programs.perftest(line)(fabric)
            fabric.end()
            print(f"{number + 1}: {line}")
    return play_each


def main():
    cases = {}
    for verb, measure, first in itertools.product(TRANSPORTS, (LATENCY, BANDWIDTH), OPTIONS):
        for transport in TRANSPORTS[verb]:
            if OPTIONS[first].is_taken(verb, measure, transport):
                cases[f"ib_{verb}_{measure}_{transport}_{first}"] = play(list(lines(verb, measure, transport, first)))
    return programs.main(cases)


if __name__ == "__main__":
    sys.exit(main())
