#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reads the machine code of a hot function and says what it may not contain.

  check_fast_path.py --file libverbatim.a --symbol 'verbatim::shm::post_send' \\
      --cold 'verbatim::shm::post_slowly' --cold 'verbatim::shm::ring_peer'

The function, its parts that the compiler split off, and whatever it leaves to by a plain jump (a tail call) are looked at together:
  - a call, or a jump into another function, may only go to a function named by --cold (a name without its arguments);
  - indirect calls and jumps (jump tables too) at most --indirect times: the one of the ABI lies in the caller;
  - system call instructions: none.
With --reach MNEMONIC, some way from the entry to a return must pass that instruction and no call at all: what a small message pays
(`--reach cmpxchg`: the send lock was really taken on that way). x86-64, GNU objdump.
"""
import argparse
import collections
import re
import subprocess
import sys

Instruction = collections.namedtuple("Instruction", "address mnemonic operands relocation text")
HEADER = re.compile(r"^([0-9a-f]+) <(.*)>:$")
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(.*)$")
RELOCATION = re.compile(r"^\s*[0-9a-f]+: (R_\S+)\s+(.*)$")
PREFIXES = {"lock", "notrack", "bnd", "rep", "repz", "repnz", "cs", "ds", "data16"}


def disassemble(objdump, path):
    """Function name -> list of instructions; one entry per definition."""
    text = subprocess.run([objdump, "-drC", "--no-show-raw-insn", path], check=True,
                          capture_output=True, text=True).stdout
    functions = collections.defaultdict(list)
    current = None
    for line in text.splitlines():
        header = HEADER.match(line)
        if header:
            current = []
            functions[header.group(2)].append(current)
            continue
        relocation = RELOCATION.match(line)
        if relocation and current:
            target = re.sub(r"[-+]0x[0-9a-f]+$", "", relocation.group(2))
            current[-1] = current[-1]._replace(relocation=target)
            continue
        code = LINE.match(line)
        if not code or current is None:
            continue
        words = code.group(2).split("#")[0].split()
        prefixes = [word for word in words if word in PREFIXES]
        words = [word for word in words if word not in PREFIXES]
        mnemonic = " ".join(prefixes + words[:1])
        current.append(Instruction(int(code.group(1), 16), mnemonic, " ".join(words[1:]), None, code.group(2)))
    return functions


def bare_name(symbol):
    """Without arguments, clone marks and offsets."""
    symbol = re.sub(r" \[clone [^]]*\]", "", symbol)
    symbol = re.sub(r"@plt$|\+0x[0-9a-f]+$", "", symbol)
    return symbol.split("(")[0]


def is_jump(mnemonic):
    return mnemonic.split()[-1].startswith("j") if mnemonic else False


def is_call(mnemonic):
    return bool(mnemonic) and mnemonic.split()[-1].startswith("call")


def target_of(instruction):
    """(symbol, address): the symbol by relocation or by objdump's comment, the address within the same section if plain."""
    if instruction.relocation:
        return instruction.relocation, None
    match = re.match(r"([0-9a-f]+) <(.*)>$", instruction.operands)
    if match:
        return re.sub(r"\+0x[0-9a-f]+$", "", match.group(2)), int(match.group(1), 16)
    return None, None


def is_indirect(instruction):
    return (is_call(instruction.mnemonic) or is_jump(instruction.mnemonic)) and instruction.operands.startswith("*")


class FastPath:
    def __init__(self, functions, symbol, cold, indirect):
        self.functions = functions
        self.cold = set(cold)
        self.indirect_allowed = indirect
        self.faults = []
        self.parts = {}
        self.counts = collections.Counter()
        entries = [name for name in functions if bare_name(name) == symbol and "[clone" not in name]
        if not entries:
            sys.exit(f"check_fast_path: no function {symbol}")
        self.entry = entries[0]
        self.add(self.entry)
        for name in functions:
            if bare_name(name) in {bare_name(part) for part in self.parts} and "[clone" in name:
                self.add(name)

    def add(self, name):
        if name in self.parts or name not in self.functions:
            return
        self.parts[name] = self.functions[name][0]
        for instruction in self.parts[name]:
            if is_jump(instruction.mnemonic) and not is_indirect(instruction):
                symbol, _ = target_of(instruction)
                if symbol and bare_name(symbol) not in self.cold and symbol in self.functions:
                    self.add(symbol)

    def check(self):
        own = {bare_name(name) for name in self.parts}
        indirect = []
        for name, code in self.parts.items():
            for instruction in code:
                self.counts["instructions"] += 1
                mnemonic = instruction.mnemonic
                if mnemonic.startswith("lock") or mnemonic.startswith("xchg"):
                    self.counts["locked"] += 1
                if mnemonic in ("syscall", "sysenter", "int"):
                    self.fault(name, instruction, "a system call")
                if is_indirect(instruction):
                    indirect.append((name, instruction))
                elif is_call(mnemonic):
                    symbol, _ = target_of(instruction)
                    self.counts["calls"] += 1
                    if symbol is None or bare_name(symbol) not in self.cold:
                        self.fault(name, instruction, f"a call of {symbol}, which is not cold")
                elif is_jump(mnemonic):
                    symbol, _ = target_of(instruction)
                    if symbol and not symbol.startswith(".text") and bare_name(symbol) not in own | self.cold:
                        self.fault(name, instruction, f"leaves to {symbol}, which is not cold")
        if len(indirect) > self.indirect_allowed:
            for name, instruction in indirect:
                self.fault(name, instruction, f"indirect branch ({len(indirect)} of them, {self.indirect_allowed} allowed)")

    def fault(self, name, instruction, what):
        self.faults.append(f"{bare_name(name)}+{instruction.address - self.parts[name][0].address:#x}: {what}: {instruction.text}")

    def reaches(self, wanted):
        """Is there a way entry -> return without a call that passes an instruction containing `wanted`?"""
        where = {}
        for name, code in self.parts.items():
            for index, instruction in enumerate(code):
                where[(name, instruction.address)] = index
        todo = [(self.entry, 0, False)]
        seen = set()
        while todo:
            state = todo.pop()
            if state in seen:
                continue
            seen.add(state)
            name, index, passed = state
            code = self.parts[name]
            if index >= len(code):
                continue
            instruction = code[index]
            mnemonic = instruction.mnemonic
            passed = passed or wanted in mnemonic
            if mnemonic.split()[-1].startswith("ret"):
                if passed:
                    return True
                continue
            if is_call(mnemonic) or is_indirect(instruction):
                continue
            if is_jump(mnemonic):
                symbol, address = target_of(instruction)
                if (name, address) in where:
                    todo.append((name, where[(name, address)], passed))
                elif symbol in self.parts and "[clone" not in symbol:
                    todo.append((symbol, 0, passed))
                if mnemonic.split()[-1] == "jmp":
                    continue
            todo.append((name, index + 1, passed))
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", required=True, help="archive, object or program")
    parser.add_argument("--symbol", required=True, help="demangled, without arguments")
    parser.add_argument("--cold", action="append", default=[], help="a function that may be called")
    parser.add_argument("--indirect", type=int, default=0)
    parser.add_argument("--reach", action="append", default=[], metavar="MNEMONIC")
    parser.add_argument("--objdump", default="objdump")
    options = parser.parse_args()

    path = FastPath(disassemble(options.objdump, options.file), options.symbol, options.cold, options.indirect)
    path.check()
    for wanted in options.reach:
        if not path.reaches(wanted):
            path.faults.append(f"no way without a call from the entry over '{wanted}' to a return")
    for fault in path.faults:
        print(f"{options.symbol}: {fault}")
    print(f"{options.symbol}: {path.counts['instructions']} instructions in {len(path.parts)} parts, "
          f"{path.counts['calls']} cold calls, {path.counts['locked']} locked: " + ("NOT ok" if path.faults else "ok"))
    return 1 if path.faults else 0


if __name__ == "__main__":
    sys.exit(main())
