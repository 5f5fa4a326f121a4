#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Links programs with choices of providers, in the ways that users link, then runs them and reads their symbols.

One run covers one compiler with one linker. What a choice does to a program is decided by the archive's members and by their
sections, so with --every-choice each goes with the three ways that treat these differently: all of a member, its used sections,
and no boundaries at all. What a way does is decided by the tools, so each goes with one of three choices, of which each compiler
and linker begins with another one; over all of them, each way has met each of the three. --matrix is every choice in every way.
What the tools cannot do is left out by name in has(), nowhere else.
"""
import argparse
import dataclasses
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclasses.dataclass(frozen=True)
class Choice:
    name: str
    units: tuple  # RDMA_STATIC_PROVIDERS of the main and the second unit; None: not defined
    devices: tuple = ()
    undefined: str = ""  # the link must fail, naming this symbol
    absent: str = ""  # no symbol of the program may match, unless the whole archive was linked
    telling: bool = False  # one of the three that show what a way does: nothing is said, one is left out, two lists are joined


SHM_ONLY = r"verbs_provider_(?!shm$)|vbt_compiled_in_providers|verbatim(4fake|3rxe|3siw|6uverbs|7rdma_cm)"
NOT_CHOSEN = r"verbs_provider_(shm|rxe|siw)|verbatim3(shm|rxe|siw)|verbatim6uverbs|verbatim7rdma_cm"
CHOICES = (
    Choice("default", (None, None), ("shm0",), absent=r"verbs_provider_(all|none|fake)", telling=True),
    Choice("shm", ("shm", None), ("shm0",), absent=SHM_ONLY, telling=True),
    Choice("shm in the other unit", (None, "shm"), ("shm0",), absent=SHM_ONLY),
    # Without a device that they drive, and with nothing said about it.
    Choice("rxe and siw beside shm", ("rxe,siw,shm", None), ("shm0",), absent=r"verbs_provider_(all|none|fake)"),
    Choice("shm in both units", ("shm", "shm"), ("shm0",), absent=SHM_ONLY),
    Choice("none", ("none", None), (), absent=NOT_CHOSEN),
    Choice("none in both units", ("none", "none"), (), absent=NOT_CHOSEN),
    Choice("all", ("all", None), ("shm0",), absent=r"verbs_provider_(none|fake)"),
    Choice("unknown", ("foo", None), undefined="verbs_provider_foo"),
    Choice("unknown beside a known one", ("shm,foo", None), undefined="verbs_provider_foo"),
    Choice("one that is not ours", ("fake", None), ("fake0",), absent=NOT_CHOSEN),
    Choice("two in one list", ("shm,fake", None), ("fake0", "shm0")),
    Choice("two units, two lists", ("shm", "fake"), ("fake0", "shm0"), telling=True),
    Choice("two units, lists that overlap", ("shm,fake", "fake,shm"), ("fake0", "shm0")),
    Choice("none in one of two units", ("none", "shm"), ("shm0",)),
    Choice("all in one of two units", ("all", "fake"), ("fake0", "shm0")),
)


@dataclasses.dataclass(frozen=True)
class Way:
    name: str
    compile: tuple = ("-fPIE",)
    link: tuple = ("-pie",)
    language: str = "c"
    whole: bool = False
    with_every_choice: bool = False
    also: tuple = ()  # choices that it meets beside its own, by the compiler and linker that most users have


LTO = ("-flto=auto",)
GC = ("-Wl,--gc-sections",)


WAYS = (
    Way("pie"),
    Way("no-pie", ("-fno-pie",), ("-no-pie",)),
    Way("static", ("-fno-pie",), ("-static",), with_every_choice=True),
    Way("static-pie", link=("-static-pie",)),
    Way("gc", ("-fPIE", "-ffunction-sections", "-fdata-sections"), ("-pie", *GC), with_every_choice=True),
    Way("whole", whole=True),
    Way("whole static", ("-fno-pie",), ("-static",), whole=True),
    Way("whole static-pie gc", link=("-static-pie", *GC), whole=True),
    Way("C++ pie", language="c++"),
    Way("C++ static", ("-fno-pie",), ("-static",), "c++"),
    Way("C++ whole", language="c++", whole=True),
    Way("lto gc", ("-fPIE", "-O2", *LTO), ("-pie", "-O2", *LTO, *GC), with_every_choice=True),
    Way("lto gc static", ("-fno-pie", "-O2", *LTO), ("-static", "-O2", *LTO, *GC)),
    Way("lto gc static-pie", ("-fPIE", "-O2", *LTO), ("-static-pie", "-O2", *LTO, *GC)),
    Way("lto gc whole", ("-fPIE", "-O2", *LTO), ("-pie", "-O2", *LTO, *GC), whole=True),
    # The linker compares the types of the archive's symbols with those that the program's C++ unit declares: all, none.
    Way("C++ lto gc", ("-fPIE", "-O2", *LTO), ("-pie", "-O2", *LTO, *GC), "c++", also=("all", "none")),
)


COMPILERS = ("gcc", "clang")
LINKERS = ("bfd", "gold", "lld")


def has(compiler, linker, way):
    """Whether the tools have it: gold knows no static-pie, and lld reads LLVM's LTO objects only."""
    if linker == "gold" and "-static-pie" in way.link:
        return False
    return (compiler, linker) != ("gcc", "lld") or LTO[0] not in way.link


def pairs(options):
    """Ways, each with the choices that it meets here."""
    telling = [choice for choice in CHOICES if choice.telling]
    first = 2 * COMPILERS.index(options.compiler) + LINKERS.index(options.linker)
    for number, way in enumerate(WAYS, first):
        if not has(options.compiler, options.linker, way):
            continue
        if options.matrix or options.every_choice and way.with_every_choice:
            yield way, CHOICES
        else:
            also = [choice for choice in CHOICES if first == 0 and choice.name in way.also]
            yield way, [telling[number % len(telling)], *also]


MOST_SHOWN = 10

# How the program exits when it carries no provider.
NO_PROVIDER = 3


class Failed(Exception):
    pass


def run(*command, env=None):
    return subprocess.run(command, capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL)


def must(*command):
    done = run(*command)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    if done.stderr:
        raise Failed(f"not silent: {' '.join(command)}\n{done.stderr}")
    return done.stdout


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.objects = {}

    def compiler(self, language):
        return {"gcc": {"c": "gcc", "c++": "g++"}, "clang": {"c": "clang", "c++": "clang++"}}[
            self.options.compiler][language]

    def object(self, way, source, providers):
        key = (way.compile, way.language, source, providers)
        if key not in self.objects:
            path = os.path.join(self.folder, f"{len(self.objects)}.o")
            define = [] if providers is None else [f"-DRDMA_STATIC_PROVIDERS={providers}"]
            standard = "-std=c11" if way.language == "c" else "-std=c++20"
            must(self.compiler(way.language), "-x", way.language, standard, "-Wall", "-Wextra", "-Wpedantic",
                 f"-I{self.options.include}", *way.compile, *define, "-c", os.path.join(HERE, source), "-o", path)
            self.objects[key] = path
        return self.objects[key]

    def link(self, way, choice):
        program = os.path.join(self.folder, "program")
        # Always by the C compiler, also for objects from C++: the archive must not need more.
        archives = [self.options.archive]
        if way.whole:
            archives = ["-Wl,--whole-archive", self.options.archive, "-Wl,--no-whole-archive"]
        # Told nothing, the linker's plugin would optimise a fat archive again in each of these links.
        lto = [] if LTO[0] in way.link else ["-fno-lto"]
        command = [self.compiler("c"), f"-fuse-ld={self.options.linker}", *lto, *way.link,
                   self.object(way, "list_devices.c", choice.units[0]),
                   self.object(way, "second_unit.c", choice.units[1]),
                   self.options.fake, *archives, "-o", program]
        if not choice.undefined:
            must(*command)
            return program
        done = run(*command)
        if done.returncode == 0:
            raise Failed(f"linked, though {choice.undefined} does not exist: {' '.join(command)}")
        if choice.undefined not in done.stderr:
            raise Failed(f"the failed link does not name {choice.undefined}:\n{done.stderr}")
        return None

    def look(self, way, choice):
        program = self.link(way, choice)
        if program is None:
            return
        environment = {"PATH": os.environ["PATH"], "VERBATIM_FABRIC": os.path.join(self.folder, "fabric")}
        done = run(program, env=environment)
        if done.returncode != (0 if choice.devices else NO_PROVIDER):
            raise Failed(f"exit {done.returncode}\n{done.stdout}{done.stderr}")
        devices = tuple(sorted(done.stdout.split()))
        if devices != choice.devices:
            raise Failed(f"devices {devices}, expected {choice.devices}\n{done.stderr}")
        explained = "RDMA_STATIC_PROVIDERS" in done.stderr
        if explained != (not devices):
            raise Failed(f"an empty list is to be explained, and only an empty one; stderr: {done.stderr!r}")

        symbols = must("nm", "--defined-only", "--format=just-symbols", program).split()
        wrong = [s for s in symbols if choice.absent and not way.whole and re.search(choice.absent, s)]
        if wrong:
            raise Failed(f"carries what was not chosen: {wrong}")
        dynamic = must("readelf", "-d", "-W", program)
        foreign = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic)) - {"libc.so.6", "ld-linux-x86-64.so.2"}
        if self.options.linker == "gold" and LTO[0] in way.link:
            # gold decides what --as-needed leaves out before it has seen what LTO makes of the objects.
            foreign -= {"libgcc_s.so.1"}
        if foreign:
            raise Failed(f"needs {foreign} to run")
        if "static" in way.name and "NEEDED" in dynamic:
            raise Failed("is not static")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True, choices=COMPILERS)
    parser.add_argument("--linker", required=True, choices=LINKERS)
    for name in ("archive", "fake", "include"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--every-choice", action="store_true", help="all choices with the ways that treat an archive differently")
    parser.add_argument("--matrix", action="store_true", help="every choice in every way")
    options = parser.parse_args()
    for path in (options.archive, options.fake):
        if not os.path.exists(path):
            parser.error(f"{path} does not exist")

    combinations = failures = 0
    with tempfile.TemporaryDirectory(prefix="verbatim-registry-") as folder:
        bench = Bench(options, folder)
        for way, choices in pairs(options):
            for choice in choices:
                combinations += 1
                try:
                    bench.look(way, choice)
                except Failed as failure:
                    failures += 1
                    if failures > MOST_SHOWN:
                        continue
                    print(f"{options.compiler} {options.linker}, {way.name}, {choice.name}: {failure}\n")
    print(f"{combinations} combinations, {failures} wrong")
    return 1 if failures or not combinations else 0


if __name__ == "__main__":
    sys.exit(main())
