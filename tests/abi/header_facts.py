# SPDX-License-Identifier: BSD-2-Clause
"""What a verbs header declares, read with Clang: records, members, enumerators, functions, macros.

The tests of this folder ask Clang instead of a list, so that nothing in a header can be forgotten.
Only declarations in files below an `infiniband` or `verbatim` include folder are reported: the
kernel's own headers are the same for both sides of a comparison.
"""

import json
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

OURS = re.compile(r"(^|/)(infiniband|verbatim)/")


@dataclass
class Record:
    tag: str  # "struct" or "union"
    members: dict[str, str | None] = field(default_factory=dict)  # path "a.b" -> type; None: unnamed type


@dataclass
class Function:
    type: str
    parameters: list[str]
    inline: bool


@dataclass
class Facts:
    records: dict[str, Record] = field(default_factory=dict)
    enums: dict[str, dict[str, str]] = field(default_factory=dict)  # name or "" -> enumerator -> ""
    functions: dict[str, Function] = field(default_factory=dict)
    macros: dict[str, tuple[str | None, str]] = field(default_factory=dict)  # name -> (parameters, text)

    def enumerators(self) -> list[str]:
        return [name for values in self.enums.values() for name in values]

    def tags(self) -> set[str]:
        return set(self.records) | {name for name in self.enums if name}


class Reader:
    """Walks Clang's tree. A location names its file only when that differs from the one before."""

    def __init__(self, facts: Facts):
        self.facts = facts
        self.file = ""

    def place(self, location: dict) -> str:
        for key in ("spellingLoc", "expansionLoc"):
            if key in location:
                self.place(location[key])
        self.file = location.get("file", self.file)
        return self.file

    def walk(self, node: dict, top: bool) -> None:
        wanted = OURS.search(self.place(node.get("loc", {}))) is not None
        bounds = node.get("range", {})
        self.place(bounds.get("begin", {}))
        self.place(bounds.get("end", {}))
        if top and wanted:
            self.take(node)
        for child in node.get("inner", []):
            # extern "C" holds declarations of the top level.
            self.walk(child, node["kind"] in ("TranslationUnitDecl", "LinkageSpecDecl"))

    def take(self, node: dict) -> None:
        kind, name = node["kind"], node.get("name", "")
        if kind == "FunctionDecl":
            parameters = [p["type"]["qualType"] for p in node.get("inner", []) if p["kind"] == "ParmVarDecl"]
            inline = node.get("inline", False) or node.get("storageClass") == "static"
            self.facts.functions[name] = Function(node["type"]["qualType"], parameters, inline)
        elif kind == "EnumDecl":
            values = self.facts.enums.setdefault(name, {})
            for child in node.get("inner", []):
                if child["kind"] == "EnumConstantDecl":
                    values[child["name"]] = ""
        elif kind == "RecordDecl" and node.get("completeDefinition"):
            record = Record(node["tagUsed"])
            members(node, "", record.members)
            self.facts.records[name] = record


def members(node: dict, prefix: str, out: dict[str, str | None]) -> None:
    unnamed = None
    for child in node.get("inner", []):
        if child["kind"] == "RecordDecl" and "name" not in child:
            unnamed = child
        elif child["kind"] == "FieldDecl":
            name = child.get("name")
            if unnamed is not None:
                if name:
                    out[prefix + name] = None
                members(unnamed, prefix + name + "." if name else prefix, out)
                unnamed = None
            else:
                out[prefix + name] = child["type"]["qualType"]


def macros_of(lines: str) -> dict[str, tuple[str | None, str]]:
    found: dict[str, tuple[str | None, str]] = {}
    file = ""
    for line in lines.splitlines():
        if marker := re.match(r'# \d+ "([^"]*)"', line):
            file = marker[1]
        elif OURS.search(file):
            if define := re.match(r"#define (\w+)(\([^)]*\))?(?: (.*))?$", line):
                found[define[1]] = (define[2], define[3] or "")
            elif undef := re.match(r"#undef (\w+)", line):
                found.pop(undef[1], None)
    return found


def read(clang: str, header: str, options: list[str]) -> Facts:
    facts = Facts()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "unit.c"
        source.write_text(f"#include <{header}>\n")
        command = [clang, "-std=c11", "-D_GNU_SOURCE", *options, str(source)]
        tree = subprocess.run([*command, "-fsyntax-only", "-Xclang", "-ast-dump=json"],
                              stdout=subprocess.PIPE, check=True).stdout
        text = subprocess.run([*command, "-E", "-dD"], stdout=subprocess.PIPE, check=True, text=True).stdout
    Reader(facts).walk(json.loads(tree), False)
    facts.macros = macros_of(text)
    return facts
