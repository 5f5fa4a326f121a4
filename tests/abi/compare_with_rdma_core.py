#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares our verbs headers with those of libibverbs-dev, in four ways.

1. Declarations: every record, member, enumerator, function and macro of theirs is in ours, with the
   same type, and what ours has besides is in appended.txt.
2. Numbers: one generated program, compiled against each, prints every sizeof, alignment, offset and
   value; the outputs are equal but for appended.txt. verbs_context is measured backwards from `context`.
3. Calls: one generated file that calls every function and macro compiles against both, and the two
   objects refer to the same symbols: a program finds the same names in either library.
4. Neighbours: their headers for single devices, and the kernel's, compile on top of ours.

Exit status 77 (ctest: skipped) when the headers or Clang are missing.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import header_facts

HEADER = "infiniband/verbs.h"
GUARD = re.compile(r"(INFINIBAND_VERBS(_\w+)?_H|VERBS_API_H|IB_USER_IOCTL_VERBS_H)$")
# Headers that stand on infiniband/verbs.h, or beside it with the same names.
NEIGHBOURS = ["infiniband/mlx5dv.h", "infiniband/mlx4dv.h", "infiniband/efadv.h", "infiniband/manadv.h",
              "infiniband/sa.h", "infiniband/opcode.h", "infiniband/tm_types.h", "rdma/ib_user_verbs.h",
              "rdma/ib_user_ioctl_verbs.h", "rdma/ib_user_ioctl_cmds.h", "rdma/rdma_user_ioctl.h"]
# Undefined again at the end of their header, or a compiler's detail of theirs.
NOT_API = {"__attribute_const"}

problems: list[str] = []


def expect(condition: bool, text: str) -> None:
    if not condition:
        problems.append(text)


class Appended:
    def __init__(self, path: Path):
        self.lines = [line.split() for line in path.read_text().splitlines()
                      if line.strip() and not line.startswith("#")]
        self.slot = next(int(line[1]) for line in self.lines if line[0] == "slot")

    def names(self, kind: str) -> set[str]:
        return {line[1] for line in self.lines if line[0] == kind}

    def members(self) -> dict[tuple[str, str], int]:
        return {(line[1], line[2]): int(line[3]) for line in self.lines if line[0] == "member"}

    def sizes(self) -> dict[str, tuple[int, int]]:
        return {line[1]: (int(line[2]), int(line[3])) for line in self.lines if line[0] == "size"}

    def values(self) -> dict[str, int]:
        return {line[1]: int(line[2]) for line in self.lines if line[0] == "value"}

    def macros(self) -> dict[str, int]:
        return {line[1]: int(line[2]) for line in self.lines if line[0] == "macro"}


def compare_sets(what: str, theirs: set, ours: set, appended: set) -> None:
    for name in sorted(theirs - ours):
        problems.append(f"{what} {name}: missing from our header")
    for name in sorted(ours - theirs - appended):
        problems.append(f"{what} {name}: only in our header, and not in appended.txt")
    for name in sorted(appended - (ours - theirs)):
        problems.append(f"{what} {name}: in appended.txt, but not an addition of ours")


def compare_declarations(theirs, ours, appended: Appended) -> None:
    new_records = appended.names("record")
    compare_sets("record", set(theirs.records), set(ours.records), new_records)
    compare_sets("enum", set(theirs.enums), set(ours.enums), appended.names("enum"))
    compare_sets("enumerator", set(theirs.enumerators()), set(ours.enumerators()), set(appended.values()))
    private = appended.names("vbt")
    compare_sets("function", set(theirs.functions), set(ours.functions),
                 appended.names("function") | {name for name in private if name in ours.functions})
    compare_sets("macro", {m for m in theirs.macros if not GUARD.match(m)} - NOT_API,
                 {m for m in ours.macros if not GUARD.match(m)},
                 private - set(ours.functions) | set(appended.macros()))

    for name, record in theirs.records.items():
        if name not in ours.records:
            continue
        mine = ours.records[name]
        expect(mine.tag == record.tag, f"{name}: {mine.tag} instead of {record.tag}")
        new = {path for owner, path in appended.members() if owner == name}
        compare_sets(f"member of {name}", set(record.members), set(mine.members), new)
        for path, kind in record.members.items():
            expect(mine.members.get(path) == kind,
                   f"{name}.{path}: type '{mine.members.get(path)}' instead of '{kind}'")
        kept = [path for path in mine.members if path not in new]
        expect(kept == list(record.members), f"{name}: members in another order")

    for name, function in theirs.functions.items():
        if name in ours.functions:
            expect(ours.functions[name] == function, f"{name}: {ours.functions[name]} instead of {function}")
    for name, values in theirs.enums.items():
        missing = set(values) - set(ours.enums.get(name, {}))
        expect(not missing, f"enum {name or '(unnamed)'}: {sorted(missing)} belong here")
    for name, (parameters, text) in theirs.macros.items():
        if name in ours.macros:
            arity = lambda p: None if p is None else p.count(",")
            expect(arity(ours.macros[name][0]) == arity(parameters), f"macro {name}: other parameters")
            if text in theirs.tags():  # an alias of a type name: it can only be compared as text
                expect(ours.macros[name][1] == text, f"macro {name}: '{ours.macros[name][1]}' instead of '{text}'")


def value_macros(facts) -> list[str]:
    return [name for name, (parameters, text) in facts.macros.items()
            if parameters is None and text and text not in facts.tags() and not GUARD.match(name)
            and name not in NOT_API and not name.startswith("VBT_")]


def numbers_program(facts) -> str:
    out = ["#include <infiniband/verbs.h>", "#include <stdio.h>",
           "#ifdef __cplusplus", "#define ALIGN_OF(t) alignof(t)", "#else", "#define ALIGN_OF(t) _Alignof(t)",
           "#endif", "#define SHOW(what, n) printf(\"%s %lld\\n\", what, (long long)(n))", "int main(void) {"]
    for name, record in facts.records.items():
        full = f"{record.tag} {name}"
        out.append(f'  SHOW("sizeof {name}", sizeof({full}));')
        out.append(f'  SHOW("alignof {name}", ALIGN_OF({full}));')
        for path in record.members:
            base = f"(long long)offsetof({full}, context) - " if name == "verbs_context" else ""
            out.append(f'  SHOW("offset {name}.{path}", {base}(long long)offsetof({full}, {path}));')
            out.append(f'  SHOW("sizeof {name}.{path}", sizeof((({full} *)0)->{path}));')
    for name, values in facts.enums.items():
        if name:
            out.append(f'  SHOW("sizeof enum {name}", sizeof(enum {name}));')
            out.append(f'  SHOW("signed enum {name}", (enum {name})-1 < (enum {name})0);')
        for value in values:
            out.append(f'  SHOW("value {value}", {value});')
            out.append(f'  SHOW("sizeof {value}", sizeof({value}));')
    for name in value_macros(facts):
        out.append(f'  SHOW("macro {name}", (uintptr_t)({name}));')
    out += ["  return 0;", "}", ""]
    return "\n".join(out)


def calls_file(facts, functions: list[str]) -> str:
    """Calls by name, through whatever macro stands before the name, as a program's source would."""
    out = ["#include <infiniband/verbs.h>"]
    for name in functions:
        function = facts.functions[name]
        result = function.type.split("(")[0].strip()
        # A function that answers void gives nothing to return.
        answer = "" if result == "void" else "return "
        arguments = ", ".join(f"a{i}" for i in range(len(function.parameters)))
        # The exported ibv_query_port has a parameter type that programs never name.
        types = [t.replace("_compat_ibv_port_attr", "ibv_port_attr") for t in function.parameters]
        parameters = ", ".join(f"{t} a{i}" for i, t in enumerate(types)) or "void"
        space = "" if result.endswith("*") else " "
        out.append(f"{result}{space}call_{name}({parameters});")
        out.append(f"{result}{space}call_{name}({parameters}) {{ {answer}{name}({arguments}); }}")
    # Which function a registration calls depends on what the compiler knows of the access bits.
    out += ["struct ibv_mr *constant_access(struct ibv_pd *p, void *a);",
            "struct ibv_mr *constant_access(struct ibv_pd *p, void *a) {",
            "  return ibv_reg_mr(p, a, 1, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);", "}",
            "struct ibv_mr *constant_access_at(struct ibv_pd *p, void *a);",
            "struct ibv_mr *constant_access_at(struct ibv_pd *p, void *a) {",
            "  return ibv_reg_mr_iova(p, a, 1, 0, IBV_ACCESS_LOCAL_WRITE);", "}", ""]
    return "\n".join(out)


class Toolbox:
    def __init__(self, folder: Path, ours: str):
        self.folder = folder
        self.ours = ours

    def run(self, compiler: str, standard: str, source: Path, side: str, output: Path, options: list[str]) -> bool:
        command = [compiler, f"-std={standard}", "-D_GNU_SOURCE", *options, "-o", str(output), str(source)]
        if side == "ours":
            command[1:1] = ["-I", self.ours]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            problems.append(f"{compiler} -std={standard} against {side}:\n{done.stderr[:3000]}")
        return done.returncode == 0

    def numbers(self, compiler: str, standard: str, program: str, side: str) -> dict[str, int]:
        suffix = "cpp" if "++" in standard else "c"
        source = self.folder / f"numbers_{side}.{suffix}"
        source.write_text(program)
        binary = self.folder / f"numbers_{side}"
        if not self.run(compiler, standard, source, side, binary, ["-w"]):
            return {}
        lines = subprocess.run([binary], stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
        return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}

    def references(self, compiler: str, standard: str, text: str, side: str) -> set[str]:
        suffix = "cpp" if "++" in standard else "c"
        source = self.folder / f"calls_{side}.{suffix}"
        source.write_text(text)
        binary = self.folder / f"calls_{side}.o"
        # Theirs is not clean under -Wpedantic; callers of ours must not be troubled.
        strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"] if side == "ours" else []
        if not self.run(compiler, standard, source, side, binary, ["-O1", "-c", *strict]):
            return set()
        lines = subprocess.run(["nm", "-u", binary], stdout=subprocess.PIPE, check=True, text=True).stdout
        return {line.split()[-1] for line in lines.splitlines()}


def compare_numbers(what: str, theirs: dict[str, int], ours: dict[str, int], appended: Appended) -> None:
    grown = appended.sizes()
    for key, value in theirs.items():
        expected = value
        if key == "sizeof verbs_context":
            expected = value + appended.slot
        elif key.startswith("sizeof ") and key.split()[1] in grown:
            before, expected = grown[key.split()[1]]
            expect(value == before, f"{what}: {key} is {value} in theirs, appended.txt says {before}")
        expect(ours.get(key) == expected, f"{what}: {key} is {ours.get(key)}, expected {expected}")


def compare_appended(what: str, ours: dict[str, int], appended: Appended) -> None:
    for name, value in appended.values().items():
        expect(ours.get(f"value {name}") == value, f"{what}: {name} is {ours.get(f'value {name}')}, not {value}")
    for name, value in appended.macros().items():
        expect(ours.get(f"macro {name}") == value, f"{what}: {name} is {ours.get(f'macro {name}')}, not {value}")
    context_at = ours["sizeof verbs_context"] - ours["sizeof ibv_context"] if ours else 0
    for (record, path), offset in appended.members().items():
        found = ours.get(f"offset {record}.{path}")
        if record == "verbs_context" and found is not None:
            found = context_at - found  # the program measures verbs_context backwards
        expect(found == offset, f"{what}: {record}.{path} lies at {found}, not {offset}")


def compare_neighbours(include: str, theirs: str) -> None:
    tried = 0
    for neighbour in NEIGHBOURS:
        if not Path(theirs, neighbour).exists():
            continue
        for first, second in ((neighbour, HEADER), (HEADER, neighbour)):
            for compiler, language, standard in (("gcc", "c", "gnu11"), ("g++", "c++", "gnu++20")):
                if shutil.which(compiler) is None:
                    continue
                command = [compiler, "-x", language, f"-std={standard}", "-w", "-I", include, "-I", theirs,
                           "-fsyntax-only", "-"]
                done = subprocess.run(command, input=f"#include <{first}>\n#include <{second}>\n",
                                      capture_output=True, text=True)
                expect(done.returncode == 0, f"{first} before {second}, {compiler}:\n{done.stderr[:1000]}")
                tried += 1
    expect(tried >= 20, f"only {tried} neighbours were there to try")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", required=True, help="our include folder")
    parser.add_argument("--theirs", default="/usr/include", help="where libibverbs-dev is")
    arguments = parser.parse_args()
    clang = shutil.which("clang") or shutil.which("clang-14")
    if not Path(arguments.theirs, HEADER).exists():
        print(f"skipped: {arguments.theirs}/{HEADER} is missing (package libibverbs-dev)")
        return 77
    if clang is None:
        print("skipped: clang is missing, which reads the headers")
        return 77

    appended = Appended(Path(__file__).with_name("appended.txt"))
    theirs = header_facts.read(clang, HEADER, ["-I", arguments.theirs])
    ours = header_facts.read(clang, HEADER, ["-I", arguments.include])
    # A reader that finds nothing would make every comparison succeed.
    expect(len(theirs.records) > 100 and len(theirs.enumerators()) > 500 and len(theirs.functions) > 150,
           f"read only {len(theirs.records)} records, {len(theirs.enumerators())} values, "
           f"{len(theirs.functions)} functions of theirs")
    compare_declarations(theirs, ours, appended)
    compare_neighbours(arguments.include, arguments.theirs)

    with tempfile.TemporaryDirectory() as folder:
        tools = Toolbox(Path(folder), arguments.include)
        shared = numbers_program(theirs)
        whole = numbers_program(ours)
        shared_calls = calls_file(theirs, sorted(f for f in theirs.functions if not f.startswith("__")))
        every_call = calls_file(ours, sorted(f for f in ours.functions if not f.startswith(("__", "vbt_"))))
        count = 0
        for compiler, standard in (("gcc", "c11"), ("g++", "c++20"), ("clang", "c11"), ("clang++", "c++20")):
            if shutil.which(compiler) is None:
                print(f"not here: {compiler}")
                continue
            what = f"{compiler} -std={standard}"
            mine = tools.numbers(compiler, standard, shared, "ours")
            count = len(mine)
            compare_numbers(what, tools.numbers(compiler, standard, shared, "theirs"), mine, appended)
            compare_appended(what, tools.numbers(compiler, standard, whole, "ours"), appended)
            wanted = tools.references(compiler, standard, shared_calls, "theirs")
            found = tools.references(compiler, standard, shared_calls, "ours")
            expect(len(wanted) > 60, f"{what}: the calls refer to {len(wanted)} symbols only")
            expect(wanted == found, f"{what}: only theirs refers to {sorted(wanted - found)}, "
                                    f"only ours to {sorted(found - wanted)}")
            tools.references(compiler, standard, every_call, "ours")
        print(f"{len(theirs.records)} records, {len(theirs.enumerators())} values, {len(theirs.functions)} "
              f"functions, {len(theirs.macros)} macros of theirs; {count} numbers each")
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
