#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every function that <infiniband/verbs.h> declares, inline ones included, is called by a test of the suite.

What counts is a call in the code of this folder or of the harness that it uses, not a word in a comment or a string. Whether a
device comes by there is another matter: the verbs on objects that no device has are called by shm/lacking_test.cpp.
Exit status 77 (ctest: skipped) when Clang, which reads the header, is missing.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "abi"))
import header_facts  # noqa: E402

# What programs never name themselves: these stand behind a macro or an inline function of the public name.
BEHIND_ANOTHER_NAME = {"_ibv_query_gid_ex", "_ibv_query_gid_table", "_ibv_query_comp_cntr_caps", "___ibv_query_port", "__ibv_reg_mr", "__ibv_reg_mr_iova"}
# Of the layout, not of the API.
NOT_VERBS = re.compile(r"(__)?verbs_get_ctx|vbt_")


def code_of(path: Path) -> str:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(), flags=re.S)
    return re.sub(r'"(\\.|[^"\\\n])*"', '""', text)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", required=True)
    arguments = parser.parse_args()
    clang = shutil.which("clang") or shutil.which("clang-14")
    if clang is None:
        print("skipped: clang is missing, which reads the header")
        return 77
    facts = header_facts.read(clang, "infiniband/verbs.h", ["-I", arguments.include])
    declared = {name for name in facts.functions
                if name not in BEHIND_ANOTHER_NAME and not NOT_VERBS.match(name)}
    support = HERE.parent / "support"
    files = [*HERE.glob("*.cpp"), *HERE.glob("*.hpp"), *support.glob("endpoint*.cpp"), support / "device.cpp",
             support / "handles.cpp", support / "rc_fault.cpp",
             # A destroy verb may be called through the handle that owns the object.
             HERE.parent.parent / "perf" / "support" / "verbs_handles.hpp"]
    code = "\n".join(code_of(path) for path in files)
    called = set(re.findall(r"\b(\w+)\s*\(", code))
    missing = sorted(declared - called)
    for name in missing:
        print(f"{name}: declared, called by no test of the suite")
    if len(declared) < 160:
        print(f"only {len(declared)} functions were found in the header")
        return 1
    print(f"{len(declared)} functions, {len(missing)} not called")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
