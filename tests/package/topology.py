#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The private hwloc, as users' programs meet it: a fully static program that loads nothing, a program that has its own hwloc,
a shared library that shows none of it, the size of it all.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Asks for the machine twice over: the library's own way, and in `OWN_HWLOC` by the program's own hwloc, of which it counts
# the processors.
PROGRAM = r"""
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include "runtime/topo/host.hpp"
#ifdef OWN_HWLOC
#include <hwloc.h>
#endif
int main() {
  int devices = 0;
  ibv_device** list = ibv_get_device_list(&devices);
  ibv_context* context = list != nullptr && devices > 0 ? ibv_open_device(list[0]) : nullptr;
  if (context == nullptr) return 1;
  const verbatim::topo::Machine& machine = verbatim::topo::host_machine();
  printf("%zu nodes %zu processors\n", machine.nodes().size(), machine.pus().size());
#ifdef OWN_HWLOC
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0 || hwloc_topology_set_synthetic(topology, "numa:3 pu:5") != 0 ||
      hwloc_topology_load(topology) != 0)
    return 2;
  printf("own %d processors\n", hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU));
  hwloc_topology_destroy(topology);
#endif
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  int libraries = 0;
  while (fgets(line, sizeof line, maps) != nullptr) libraries += strstr(line, ".so") != nullptr;
  fclose(maps);
  printf("%d libraries\n", libraries);
  ibv_close_device(context);
  ibv_free_device_list(list);
  return 0;
}
"""
# With shared memory, topology, and stripped; and what a program needs besides.
SIZE_LIMIT = 1_820_000

failures = []


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def expect(condition, message):
    if not condition:
        failures.append(message)
        print(f"WRONG: {message}")


def opens(program, environment):
    """The calls of a program and its threads that open a file."""
    with tempfile.NamedTemporaryFile("r", prefix="verbatim-trace-") as trace:
        run("strace", "-f", "-qq", "-e", "trace=open,openat", "-o", trace.name, program,
            env={"PATH": os.environ["PATH"], **environment})
        return trace.read().splitlines()


def may_trace():
    """A sandbox may forbid it."""
    return subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True).returncode == 0


def names(*arguments):
    """The symbols of a file, by the last word of each of nm's lines."""
    return {line.split()[-1] for line in run("nm", *arguments).stdout.splitlines() if line.split()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("archive", "source", "cc", "cxx"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--topologies", required=True, help="machines in XML")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="verbatim-topology-") as folder:
        def place(name):
            return os.path.join(folder, name)

        def compile(name, *flags):
            with open(place("program.cpp"), "w", encoding="utf-8") as file:
                file.write(PROGRAM)
            run(options.cxx, "-std=c++20", "-O2", "-fPIC", "-fno-exceptions", "-fno-rtti", f"-I{options.source}",
                f"-I{options.source}/abi/include", *flags, "-c", place("program.cpp"), "-o", place(name))

        def says(program, **described):
            environment = {"PATH": os.environ["PATH"], "VERBATIM_FABRIC": place("fabric"), "XDG_RUNTIME_DIR": folder,
                           "VERBATIM_LOG": "info", **described}
            done = run(place(program), env=environment)
            expect(not done.stderr, f"{program} {described} complains: {done.stderr}")
            return done.stdout.splitlines()

        # A warning of the static linker is what users would see.
        compile("plain.o")
        for name in ("static", "static-pie"):
            run(options.cc, place("plain.o"), options.archive, f"-{name}", "-Wl,--gc-sections", "-Wl,--fatal-warnings",
                "-o", place(name))
            said = says(name)
            expect(said[1] == "0 libraries", f"{name}: {said}")
        for described, machine in (({}, rf"[1-9]\d* nodes {os.cpu_count()} processors"),
                                   ({"HWLOC_SYNTHETIC": "numa:4 pu:6"}, "4 nodes 24 processors"),
                                   ({"HWLOC_XMLFILE": f"{options.topologies}/eight_nodes.xml"}, "8 nodes 16 processors")):
            said = says("static", **described)
            expect(re.fullmatch(machine, said[0]), f"static {described}: says {said}")
            expect(said[1] == "0 libraries", f"static {described}: {said} in a static program")
        # Not even looked for: what is opened and not there is in no map.
        if shutil.which("strace") and may_trace():
            for described in ({}, {"HWLOC_SYNTHETIC": "numa:4 pu:6"}, {"HWLOC_XMLFILE": f"{options.topologies}/eight_nodes.xml"}):
                opened = opens(place("static"), {"VERBATIM_FABRIC": place(f"traced{len(described)}"), "XDG_RUNTIME_DIR": place("."),
                                                 **described})
                libraries = [line for line in opened if ".so" in line]
                expect(not libraries, f"static {described}: opens {libraries}")
        else:
            print("strace may not be used here: what is opened and not mapped was not looked at")

        run("strip", place("static"))
        size = os.path.getsize(place("static"))
        expect(size <= SIZE_LIMIT, f"the static program has {size} bytes, more than {SIZE_LIMIT}")
        print(f"static and stripped: {size} bytes")

        compile("own.o", "-DOWN_HWLOC")
        # What a fat archive holds besides was optimised anew for the static programs above.
        run(options.cc, "-fno-lto", place("own.o"), options.archive, "-lhwloc", "-o", place("own"))
        said = says("own", HWLOC_SYNTHETIC="numa:4 pu:6")
        if shutil.which("strace") and may_trace():
            opened = opens(place("own"), {"VERBATIM_FABRIC": place("traced"), "XDG_RUNTIME_DIR": place(".")})
            expect(any(".so" in line for line in opened), f"a program that loads libraries was not seen to: {opened}")
        expect(said[:2] == ["4 nodes 24 processors", "own 15 processors"], f"beside another hwloc: says {said}")

        run(options.cc, "-fno-lto", "-shared", "-Wl,--whole-archive", options.archive, "-Wl,--no-whole-archive", "-o", place("all.so"))
        shown = {name for name in names("-D", "--defined-only", place("all.so")) if "hwloc" in name or "udev" in name}
        expect(not shown, f"a shared library shows {sorted(shown)}")
        expect("ibv_open_device" in names("-D", "--defined-only", place("all.so")), "a shared library shows nothing at all")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
