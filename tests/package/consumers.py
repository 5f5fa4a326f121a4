#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Uses the library as its users do: installed and moved elsewhere, then through pkg-config, through find_package, and as a
subproject. Each program is built and run; C programs see the C compiler only.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "..", "registry", "list_devices.c")
SUFFIX = {"C": "c", "CXX": "cpp"}
WAYS = {"dynamic": ["-pie"], "static": ["-static"], "static-pie": ["-static-pie"]}
# What the program is told to carry, and the device list it then prints.
CHOICES = {None: ["shm0"], "shm": ["shm0"], "none": []}

failures = []


def run(*command, env=None, check=True, cwd=None):
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd, stdin=subprocess.DEVNULL)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done


def expect(condition, message):
    if not condition:
        failures.append(message)
        print(f"WRONG: {message}")


def prints(program, devices, what, folder, linked_as_c=True):
    environment = {"PATH": os.environ["PATH"], "VERBATIM_FABRIC": os.path.join(folder, "fabric")}
    done = run(program, env=environment, check=False)
    # 3: the program's way to say that it carries no provider, and was told so.
    expect(done.returncode == (0 if devices else 3) and done.stdout.split() == devices,
           f"{what}: exit {done.returncode}, prints {done.stdout.split()}, expected {devices}\n{done.stderr}")
    dynamic = run("readelf", "-d", "-W", program).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", dynamic))
    foreign = [n for n in needed if "verbs" in n or (linked_as_c and "stdc++" in n)]
    expect(not foreign, f"{what}: needs {foreign} to run")
    expect("static" not in what or not needed, f"{what}: is not static, needs {needed}")


def install(options, folder):
    first = os.path.join(folder, "first")
    environment = {k: v for k, v in os.environ.items() if k != "DESTDIR"}
    run("cmake", "--install", options.build, "--prefix", first, env=environment)
    prefix = os.path.join(folder, "moved")
    os.rename(first, prefix)
    texts = []
    for where, _, names in os.walk(prefix):
        texts += [os.path.join(where, n) for n in names if n.endswith((".cmake", ".pc", ".h")) or n.startswith("verbatim-mpi")]
    expect(len(texts) > 8, f"few files were installed: {texts}")
    for text in texts:
        with open(text, encoding="utf-8") as file:
            content = file.read()
        for place in (first, options.build, options.source):
            expect(place not in content, f"{text} names {place}, where it will not be")
    return prefix


def links_with(options, language, providers):
    """A fat archive is optimised anew once for each way; the links of the other choices take its machine code."""
    return ["-fno-lto"] if options.lto and (language, providers) != ("C", None) else []


def pkg_config(options, prefix, folder):
    found = [w for w, _, names in os.walk(prefix) if "verbatim.pc" in names]
    expect(len(found) == 1, f"verbatim.pc installed in {found}")
    environment = {**os.environ, "PKG_CONFIG_PATH": found[0]}
    version = run("pkg-config", "--modversion", "verbatim", env=environment).stdout.strip()
    expect(version == options.version, f"verbatim.pc says version {version}")
    for way, flags in WAYS.items():
        static = ["--static"] if way != "dynamic" else []
        words = run("pkg-config", "--cflags", "--libs", *static, "verbatim", env=environment).stdout.split()
        for language in SUFFIX:
            # C++ sources too are linked by the C compiler: compile, then link.
            compiler = {"C": [options.cc, "-x", "c"], "CXX": [options.cxx, "-x", "c++"]}[language]
            for providers, devices in CHOICES.items():
                define = [] if providers is None else [f"-DRDMA_STATIC_PROVIDERS={providers}"]
                what = f"pkg-config, {way}, {language}, providers {providers}"
                unit, program = os.path.join(folder, "unit.o"), os.path.join(folder, "program")
                cflags = [w for w in words if not w.startswith(("-l", "-L"))]
                run(*compiler, "-fPIE", *define, *cflags, "-c", PROGRAM, "-o", unit)
                run(options.cc, *flags, *links_with(options, language, providers), unit, *words, "-o", program)
                prints(program, devices, what, folder)


def as_libibverbs(options, prefix, folder):
    """By the names of libibverbs: only where a user puts the folder first, and then before one that the system has."""
    names = {name: [w for w, _, there in os.walk(prefix) if name in there] for name in ("libibverbs.pc", "libibverbs.a")}
    places = {place for found in names.values() for place in found}
    expect(len(places) == 1, f"the names of libibverbs are in {names}")
    if len(places) != 1:
        return
    compat, include = places.pop(), os.path.join(prefix, "include")
    expect(compat.endswith("/verbatim/compat"), f"the names of libibverbs are in {compat}, where linkers look anyway")

    environment = {**os.environ, "PKG_CONFIG_PATH": compat}
    version = run("pkg-config", "--modversion", "libibverbs", env=environment).stdout.strip()
    expect(re.fullmatch(r"1\.\d+\.\d+\.0", version), f"libibverbs.pc says version {version}")
    done = run("pkg-config", "--atleast-version=1.14", "libibverbs", env=environment, check=False)
    expect(done.returncode == 0, f"libibverbs.pc says version {version}, older than that of rdma-core 44")
    program = os.path.join(folder, "program")
    for way, flags in WAYS.items():
        static = ["--static"] if way != "dynamic" else []
        words = run("pkg-config", "--cflags", "--libs", *static, "libibverbs", env=environment).stdout.split()
        for what, arguments in (("pkg-config libibverbs", words), ("-libverbs", ["-I", include, "-L", compat, "-libverbs"])):
            run(options.cc, "-fPIE", *flags, PROGRAM, *arguments, "-o", program)
            prints(program, ["shm0"], f"{what}, {way}", folder)

    # As the find modules of programs look for it, and CMake's own module for pkg-config.
    build = project(options, folder, "find_libibverbs", "C", [
        "find_path(header infiniband/verbs.h REQUIRED)", "find_library(library NAMES ibverbs REQUIRED)",
        "add_executable(by_file main.c)", "target_include_directories(by_file PRIVATE ${header})",
        "target_link_libraries(by_file PRIVATE ${library})",
        "find_package(PkgConfig REQUIRED)", f"set(ENV{{PKG_CONFIG_PATH}} {compat})",
        "pkg_check_modules(IBVERBS REQUIRED IMPORTED_TARGET libibverbs)",
        "add_executable(by_module main.c)", "target_link_libraries(by_module PRIVATE PkgConfig::IBVERBS)",
    ], [f"-DCMAKE_LIBRARY_PATH={compat}", f"-DCMAKE_INCLUDE_PATH={include}"])
    for target in ("by_file", "by_module"):
        prints(os.path.join(build, target), ["shm0"], f"a find module, {target}", folder)


def project(options, folder, name, language, lines, more=()):
    """Builds a user's project of one language; returns its build folder."""
    source, build = os.path.join(folder, name), os.path.join(folder, name, "build")
    os.makedirs(source)
    shutil.copy(PROGRAM, os.path.join(source, f"main.{SUFFIX[language]}"))
    text = ["cmake_minimum_required(VERSION 3.25)", f"project(user LANGUAGES {language})", "enable_testing()", *lines]
    with open(os.path.join(source, "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(text) + "\n")
    run("cmake", "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_C_COMPILER={options.cc}",
        f"-DCMAKE_CXX_COMPILER={options.cxx}", *more)
    run("cmake", "--build", build)
    return build


def find_package(options, prefix, folder):
    for language, suffix in SUFFIX.items():
        lines = ["find_package(Verbatim 0.1 REQUIRED)"]
        programs = {}
        for way, flags in WAYS.items():
            for providers, devices in CHOICES.items():
                target = f"{way}_{providers}"
                programs[target] = devices
                lines += [f"add_executable({target} main.{suffix})",
                          f"set_target_properties({target} PROPERTIES POSITION_INDEPENDENT_CODE ON)",
                          f"target_link_libraries({target} PRIVATE Verbatim::verbs)",
                          f"target_link_options({target} PRIVATE {' '.join([*flags, *links_with(options, language, providers)])})"]
                if providers is not None:
                    lines.append(f"target_compile_definitions({target} PRIVATE RDMA_STATIC_PROVIDERS={providers})")
        build = project(options, folder, f"find_{language}", language, lines, [f"-DCMAKE_PREFIX_PATH={prefix}"])
        for target, devices in programs.items():
            # A C++ compiler may add its runtime to whatever it links.
            prints(os.path.join(build, target), devices, f"find_package, {language}, {target}", folder, language == "C")

    with open(os.path.join(folder, "find_C", "CMakeLists.txt"), "w", encoding="utf-8") as file:
        file.write("cmake_minimum_required(VERSION 3.25)\nproject(user C)\nfind_package(Verbatim 99 REQUIRED)\n")
    done = run("cmake", "-S", os.path.join(folder, "find_C"), "-B", os.path.join(folder, "find_C", "build"), check=False)
    expect(done.returncode != 0, "find_package(Verbatim 99) found something")


def with_mpi(options, prefix, folder):
    """By the compiler wrappers, by pkg-config, and by CMake: our target, and the module that asks any MPI's wrapper."""
    wrappers = os.path.join(prefix, "bin")
    done = run(sys.executable, "-B", os.path.join(HERE, "..", "mpi", "wrappers.py"), "--bin", wrappers, "--cc", options.cc,
               "--cxx", options.cxx, *(["--fc", "gfortran"] if shutil.which("gfortran") else []), check=False)
    expect(done.returncode == 0, f"the installed wrappers:\n{done.stdout}{done.stderr}")

    source, program = os.path.join(folder, "mpi.c"), os.path.join(folder, "program")
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <mpi.h>\nint main(void) {\n  int version, subversion;\n"
                   "  return MPI_Get_version(&version, &subversion) != MPI_SUCCESS || version != MPI_VERSION;\n}\n")
    found = [w for w, _, names in os.walk(prefix) if "verbatim-mpi.pc" in names]
    expect(len(found) == 1, f"verbatim-mpi.pc installed in {found}")
    for way, flags in WAYS.items():
        static = ["--static"] if way != "dynamic" else []
        words = run("pkg-config", "--cflags", "--libs", *static, "verbatim-mpi",
                    env={**os.environ, "PKG_CONFIG_PATH": found[0]}).stdout.split()
        run(options.cc, "-fPIE", *flags, source, *words, "-o", program)
        expect(run(program, check=False).returncode == 0, f"pkg-config verbatim-mpi, {way}: the program fails")

    build = project(options, folder, "find_mpi", "C", [
        "find_package(Verbatim REQUIRED)", f"add_executable(by_target {source})",
        "target_link_libraries(by_target PRIVATE Verbatim::verbs Verbatim::mpi)",
        "find_package(MPI REQUIRED)", f"add_executable(by_module {source})",
        "target_link_libraries(by_module PRIVATE MPI::MPI_C)",
    ], [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DMPI_C_COMPILER={os.path.join(wrappers, 'verbatim-mpicc')}",
        "-DMPI_SKIP_MPICXX=ON"])
    for target in ("by_target", "by_module"):
        done = run(os.path.join(build, target), check=False)
        expect(done.returncode == 0, f"CMake, {target}: the program exits with {done.returncode}\n{done.stderr}")


def with_coll(options, prefix, folder):
    """Collectives without MPI: the archive before the other one, by hand and by the target."""
    source, program = os.path.join(folder, "coll.c"), os.path.join(folder, "program")
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <verbatim/coll.h>\nint main(void) {\n"
                   "  struct vbt_coll_team_attr attr = {.size = 1};\n  struct vbt_coll_team *team;\n  int one = 1, sum = 0;\n"
                   "  if (vbt_coll_create_team(&attr, sizeof attr, &team) != 0) return 1;\n"
                   "  if (vbt_coll_allreduce(team, &one, &sum, 1, VBT_COLL_INT32, VBT_COLL_SUM) != 0) return 2;\n"
                   "  return vbt_coll_destroy_team(team) != 0 || sum != 1;\n}\n")
    found = [w for w, _, names in os.walk(prefix) if "verbatim.pc" in names]
    expect(len(found) == 1, f"verbatim.pc installed in {found}")
    for way, flags in WAYS.items():
        static = ["--static"] if way != "dynamic" else []
        words = run("pkg-config", "--cflags", "--libs", *static, "verbatim",
                    env={**os.environ, "PKG_CONFIG_PATH": found[0]}).stdout.split()
        run(options.cc, "-fPIE", *flags, source, "-lverbatim_coll", *words, "-o", program)
        expect(run(program, check=False).returncode == 0, f"-lverbatim_coll, {way}: the program fails")
    build = project(options, folder, "find_coll", "C", [
        "find_package(Verbatim REQUIRED)", f"add_executable(by_target {source})",
        "target_link_libraries(by_target PRIVATE Verbatim::coll)",
    ], [f"-DCMAKE_PREFIX_PATH={prefix}"])
    done = run(os.path.join(build, "by_target"), check=False)
    expect(done.returncode == 0, f"Verbatim::coll: the program exits with {done.returncode}\n{done.stderr}")


def subproject(options, folder, *more):
    """In debug mode, so that the promises of the archive are also kept by unoptimised objects."""
    build = project(options, folder, "subproject", "C", [
        f"add_subdirectory({options.source} verbatim)",
        "add_executable(program main.c)",
        "target_link_libraries(program PRIVATE Verbatim::verbs)",
        "install(TARGETS program)",
    ], ["-DCMAKE_BUILD_TYPE=Debug", *more])
    prints(os.path.join(build, "program"), ["shm0"], "add_subdirectory", folder)

    tests = run("ctest", "--show-only=human", cwd=build).stdout
    expect("Total Tests: 0" in tests, f"a subproject brings its tests along:\n{tests}")
    stage = os.path.join(folder, "stage")
    run("cmake", "--install", build, "--prefix", stage)
    installed = [os.path.join(w, n) for w, _, names in os.walk(stage) for n in names]
    expect([os.path.basename(i) for i in installed] == ["program"], f"a subproject installs {installed}")
    done = run(os.path.join(HERE, "archive.py"), "--archive", os.path.join(build, "verbatim", "libverbatim.a"),
               "--compiler", options.cc, "--nm", "nm", "--ld", "ld", "--readelf", "readelf", check=False)
    expect(done.returncode == 0, f"the debug archive:\n{done.stdout}{done.stderr}")
    return os.path.join(build, "verbatim", "libverbatim.a")


def without_hwloc(options, folder):
    """The subproject without hwloc. Where memory and processors are is unknown, and said so; nothing fails for it."""
    archive = subproject(options, folder, "-DVERBATIM_HWLOC=OFF")
    symbols = run("nm", archive).stdout
    expect("ibv_open_device" in symbols and "hwloc_topology" not in symbols, "the archive without hwloc has hwloc")

    program, tool = os.path.join(folder, "program"), os.path.join(folder, "verbatim")
    run(options.cc, "-std=c11", "-D_GNU_SOURCE", f"-I{options.source}/abi/include", os.path.join(HERE, "without_hwloc.c"),
        archive, "-static", "-o", program)
    with open(options.tool_objects, encoding="utf-8") as file:
        run(options.cxx, *file.read().split(), archive, "-static", "-Wl,--fatal-warnings", "-o", tool)

    environment = {"PATH": os.environ["PATH"], "VERBATIM_FABRIC": os.path.join(folder, "fabric"), "XDG_RUNTIME_DIR": folder}

    def says(*command, **more):
        done = run(*command, env={**environment, **more})
        expect(not done.stderr, f"{command} complains: {done.stderr}")
        return done.stdout

    # Refusing a node that is not there is a line of the log, and meant to be.
    lines = says(program, VERBATIM_LOG="off").splitlines()
    expect(len(lines) == 2 * 5 * 4, f"vbt_alloc without hwloc: {lines}")
    unknown = 4  # VBT_FALLBACK_UNKNOWN
    for line in lines:
        kind, where, _, _, _, _, fallbacks, _, pages = line.split()
        # The thread's node is what nobody knows; the kernel tells which nodes there are.
        expect(where not in ("0", "2") or int(fallbacks) & unknown, f"vbt_alloc claims to know: {line}")
        expect(int(pages) in (25, 26), f"vbt_query_mr: {line}")

    for more in ({}, {"HWLOC_SYNTHETIC": "numa:4 pu:6"}):
        text = says(tool, "topo", **more)
        expect(text.startswith("machine    unknown: built without hwloc\n"), f"topo: {text}")
        expect("device     shm0: as near to one node as to another\n" in text, f"topo: {text}")
    expect(json.loads(says(tool, "topo", "--json"))["machine"] is None, "topo --json knows the machine")
    done = run(tool, "topo", "--svg", "-", env=environment, check=False)
    expect(done.returncode == 1 and not done.stdout and "built without hwloc" in done.stderr, f"topo --svg: {done}")
    findings = json.loads(says(tool, "doctor", "--json"))["findings"]
    machine = [finding for finding in findings if finding["topic"] == "NUMA"]
    expect(len(machine) == 1 and machine[0]["verdict"] == "WARN" and "built without hwloc" in machine[0]["cause"],
           f"doctor: {machine}")
    expect(any(finding["topic"] == "cores" for finding in findings), "doctor says nothing of cores")
    expect("shm0" in says(tool, "devinfo"), "devinfo without hwloc")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("installed", "subproject", "without_hwloc"))
    for name in ("build", "source", "version", "cc", "cxx"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--lto", action="store_true", help="the archive holds LTO's objects too")
    parser.add_argument("--tool-objects", help="a file that names the objects of the tool")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="verbatim-package-") as folder:
        if options.what == "installed":
            prefix = install(options, folder)
            pkg_config(options, prefix, folder)
            as_libibverbs(options, prefix, folder)
            find_package(options, prefix, folder)
            if os.path.exists(os.path.join(prefix, "bin", "verbatim-mpicc")):
                with_mpi(options, prefix, folder)
                with_coll(options, prefix, folder)
        elif options.what == "without_hwloc":
            without_hwloc(options, folder)
        else:
            subproject(options, folder)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
