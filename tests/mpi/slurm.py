#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Ranks started by Slurm itself: a controller and a node of our own, in a folder of their own, on ports of their own.

Usage: slurm.py <point_to_point> <program> ...

Needs neither root nor munge, control groups or systemd: requests carry no credentials (auth/none), and processes are
found by their parents (proctrack/linuxproc). Skipped (77) where Debian's packages slurmctld, slurmd and slurm-client are
not installed, or their daemons do not come up; the reason is said.
"""
import ctypes
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
SECONDS_TO_COME_UP = 20
SECONDS_OF_A_JOB = 40
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
DAEMONS = ("slurmctld", "slurmd")
wrong = []


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def find(program):
    found = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    return found or skip(f"{program} is not installed (Debian's packages slurmctld, slurmd and slurm-client)")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def configuration(folder):
    controller, node = free_ports(2)
    user = getpass.getuser()
    return f"""
ClusterName=verbatim
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
SelectType=select/linear
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
KillWait=2
NodeName=localhost NodeAddr=127.0.0.1 CPUs=16 State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES State=UP
"""


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def start(daemon, words, folder):
    log = open(f"{folder}/{daemon}.log", "wb")
    return subprocess.Popen([find(daemon), "-D", "-c", "-f", f"{folder}/slurm.conf", *words], stdin=subprocess.DEVNULL,
                            stdout=log, stderr=subprocess.STDOUT, preexec_fn=end_with_parent)


def collect_orphans():
    """What daemons have started and left to whoever collects it: us."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.02)
        except ChildProcessError:
            return
    wrong.append("a process that Slurm started has not ended")


def come_up(daemons, folder):
    until = time.monotonic() + SECONDS_TO_COME_UP
    state = ""
    while time.monotonic() < until and all(each.poll() is None for each in daemons):
        asked = subprocess.run([find("sinfo"), "-h", "-o", "%T"], capture_output=True, text=True, timeout=10)
        state = asked.stdout.strip()
        if state == "idle":
            return
        time.sleep(0.05)
    for daemon in DAEMONS:
        with open(f"{folder}/{daemon}.log", encoding="utf-8", errors="replace") as log:
            print(f"{daemon}: " + f"{daemon}: ".join(log.readlines()[-8:]), end="")
    skip(f"Slurm's daemons did not come up here in {SECONDS_TO_COME_UP} s (the node is '{state}'); the ends of their logs are above")


def run(options, *command):
    """Status, and all that was said."""
    done = subprocess.run([find("srun"), "--quiet", *options, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=SECONDS_OF_A_JOB)
    return done.returncode, done.stdout


def expect(holds, what, said):
    if not holds:
        wrong.append(what)
        print(said)


def jobs(point_to_point, programs):
    for program in programs:
        for ranks in (2, 4):
            status, said = run([f"-n{ranks}", "--mpi=pmi2"], program)
            expect(status == 0, f"{os.path.basename(program)} with {ranks} ranks: status {status}", said)
    for part in ("ring", "sizes"):
        status, said = run(["-n8", "--mpi=pmi2"], point_to_point, part)
        expect(status == 0 and said == "", f"{part} with 8 ranks: status {status}", said)
    status, said = run(["-n1", "--mpi=pmi2"], point_to_point, "sizes")
    expect(status == 0, f"one rank: status {status}", said)

    status, said = run(["-n3", "--mpi=pmi2"], point_to_point, "abort_of_one")
    # srun's own status is the highest of all tasks, those that it killed among them.
    expect(status != 0 and "task 0: Exited with exit code 42" in said, f"MPI_Abort: status {status}", said)

    status, said = run(["-n2", "--mpi=none"], point_to_point, "ring")
    expect(status != 0 and "use srun --mpi=pmi2" in said, f"without PMI: status {status}", said)
    _, known = run(["--mpi=list"])
    if "pmix" in known.split():
        status, said = run(["-n2", "--mpi=pmix"], point_to_point, "ring")
        expect(status != 0 and "speaks PMIx alone" in said, f"by PMIx: status {status}", said)


def main():
    point_to_point, *programs = sys.argv[1:]
    for each in (*DAEMONS, "srun", "sinfo"):
        find(each)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    with tempfile.TemporaryDirectory(prefix="verbatim_slurm_") as folder:
        for each in ("state", "spool"):
            os.mkdir(f"{folder}/{each}")
        with open(f"{folder}/slurm.conf", "w", encoding="ascii") as file:
            file.write(configuration(folder))
        os.environ["SLURM_CONF"] = f"{folder}/slurm.conf"
        daemons = []
        try:
            daemons = [start("slurmctld", [], folder), start("slurmd", ["-N", "localhost"], folder)]
            come_up(daemons, folder)
            jobs(point_to_point, programs)
        finally:
            for each in reversed(daemons):
                each.terminate()
            for each in reversed(daemons):
                try:
                    each.wait(10)
                except subprocess.TimeoutExpired:
                    each.kill()
                    each.wait()
            collect_orphans()
    for line in wrong:
        print(f"WRONG: {line}")
    sys.exit(1 if wrong else 0)


main()
