#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How jobs end that do not end well: their status, who is left, and what.

Usage: ends.py <verbatim> <point_to_point>

Under `verbatim run`, and under Hydra where it is installed; Open MPI's launcher is to be refused.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

tool, point_to_point = sys.argv[1:]
wrong = []
SECONDS = 20


def processes(folder):
    """{pid: rank} of those whose place to meet is the folder, the launcher's own but for a rank."""
    mark = f"VERBATIM_FABRIC={folder}".encode()
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if mark in words:
            ranks = [word[9:].decode() for word in words if word.startswith(b"PMI_RANK=")]
            found[int(pid)] = int(ranks[0]) if ranks else None
    return found


def until(what):
    end = time.monotonic() + SECONDS
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Job:
    def __init__(self, folder, launcher, ranks, *parts):
        self.folder = folder
        self.name = f"{os.path.basename(launcher[0])}, {ranks} ranks, {parts[0]}"
        environment = {**os.environ, "VERBATIM_FABRIC": folder, "VERBATIM_LOG": "off"}
        self.process = subprocess.Popen([*launcher, "-n", str(ranks), point_to_point, *parts], env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def rank(self, number):
        """Its process, when it has met others."""
        found = []

        def is_there():
            found[:] = [pid for pid, rank in processes(self.folder).items() if rank == number]
            return found and len([name for name in os.listdir(self.folder) if name.startswith("q")]) > number
        return found[0] if until(is_there) else None

    def kill_rank(self, number):
        pid = self.rank(number)
        if pid is None:
            wrong.append(f"{self.name}: rank {number} never came")
        else:
            os.kill(pid, signal.SIGKILL)

    def ends(self, statuses, *words, leaves_names=False):
        try:
            said, _ = self.process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            said, _ = self.process.communicate()
            wrong.append(f"{self.name}: it did not end; {said}")
        if self.process.returncode == 0 if statuses is None else self.process.returncode not in statuses:
            wrong.append(f"{self.name}: status {self.process.returncode}, not {statuses}; {said}")
        for word in words:
            if word not in said:
                wrong.append(f"{self.name}: '{word}' is not in: {said}")
        if not until(lambda: not processes(self.folder)):
            wrong.append(f"{self.name}: processes are left: {processes(self.folder)}")
        left = os.listdir(self.folder)
        if left and not leaves_names:
            wrong.append(f"{self.name}: files are left: {left}")
        # Names alone, which hold nothing.
        for name in left:
            if os.lstat(f"{self.folder}/{name}").st_size != 0:
                wrong.append(f"{self.name}: {name} is left, and not empty")


def main():
    run = [tool, "run"]
    long_work = ["crowd", "ring"] * 200
    with tempfile.TemporaryDirectory(prefix="verbatim_ends_") as folder:
        os.chmod(folder, 0o700)
        Job(folder, run, 3, "abort_of_one").ends({42}, "rank 0 of 3: MPI_Abort was called with code 42")
        Job(folder, run, 3, "fatal").ends({6}, "rank 2 of 3: MPI_Send: argument `dest` is 3")
        Job(folder, run, 4, "killed").ends({128 + signal.SIGABRT}, "rank 1 (pid", "was killed by signal 6")
        job = Job(folder, run, 4, *long_work)
        job.kill_rank(2)
        job.ends({128 + signal.SIGKILL}, "rank 2 (pid", "was killed by signal 9")
        job = Job(folder, run, 2, *long_work)
        job.rank(1)
        job.process.kill()  # the launcher itself: its ranks end, and the next job takes away their names
        job.ends({-signal.SIGKILL}, leaves_names=True)
        Job(folder, run, 2, "ring").ends({0})
        hydra = shutil.which("mpiexec.hydra")
        if hydra:
            Job(folder, [hydra], 3, "abort_of_one").ends({42}, "MPI_Abort was called with code 42", leaves_names=True)
            job = Job(folder, [hydra], 4, *long_work)
            job.kill_rank(2)
            job.ends(None, leaves_names=True)  # with a status of Hydra's own
            Job(folder, [hydra], 2, "ring").ends({0})
        else:
            print("mpiexec.hydra is not installed (Debian's package mpich): `verbatim run` alone was tried")
        openmpi = shutil.which("mpirun.openmpi")
        if openmpi:
            Job(folder, [openmpi, "--allow-run-as-root", "--oversubscribe"], 2, "ring").ends(None, "speaks PMIx alone")
    for line in wrong:
        print(f"WRONG: {line}")
    sys.exit(1 if wrong else 0)


main()
