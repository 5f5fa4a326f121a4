#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Programs of Open MPI and MPICH, unmodified, behind `verbatim exec --pmpi`:

    pmpi.py --tool verbatim --program pmpi_openmpi --mpi openmpi --ranks 3 elements

The program's parts are in program.c. Each job has a fabric of its own. Exit status 77 (ctest: skipped) when the launcher is
missing.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

LIMIT = 100  # seconds; MPICH's ranks that share a processor wait for time slices
LAUNCHERS = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"],
    "mpich": ["mpiexec.hydra", "-n"],
}
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
COLLECTIVES = ("barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall")
# Whatever else a part does, all that it does with all of them is taken.
PARTS = {
    "elements": set(COLLECTIVES) - {"barrier"},
    "communicators": {"barrier", "bcast", "allreduce"},
    "threads": {"barrier", "bcast", "allreduce"},
    "rest": {"barrier", "allreduce"},
}


class Failed(Exception):
    pass


def expect(condition, what, output):
    if not condition:
        raise Failed(f"{what}\n{output}")


def run(options, part, environment=(), launcher_options=(), before=("exec", "--pmpi", "--")):
    """The exit status and all that was printed."""
    launcher, *rest = LAUNCHERS[options.mpi]
    if shutil.which(launcher) is None:
        print(f"{launcher} is missing")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="pmpi-") as folder:
        command = [launcher, *launcher_options, *rest, str(options.ranks), options.program, part]
        if before:
            command = [options.tool, *before, *command]
        settings = {"VERBATIM_FABRIC": folder, "TMPDIR": folder, "VERBATIM_LOG": "info", **dict(environment)}
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", start_new_session=True, env={**os.environ, **settings}) as job:
            try:
                output, _ = job.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGTERM)  # so that the launcher ends its ranks
                try:
                    output, _ = job.communicate(timeout=5)
                except subprocess.TimeoutExpired:
                    os.killpg(job.pid, signal.SIGKILL)
                    output, _ = job.communicate()
                raise Failed(f"{' '.join(command)} did not end within {LIMIT} s\n{output}") from None
    return job.returncode, output


def table_of(options, output):
    """collective -> (calls taken, bytes, calls passed on, {reason: calls}), as rank 0 tells it once."""
    heads = re.findall(r"^verbatim: collectives of the (\d+) ranks of (.*), calls of all ranks together:$", output, re.M)
    expect(len(heads) == 1, "there is not one table", output)
    expect(int(heads[0][0]) == options.ranks and heads[0][1].startswith(NAMES[options.mpi]), f"the table is of {heads[0]}", output)
    rows = {}
    for name, taken, moved, passed, why in re.findall(r"^verbatim: (\w+) +(\d+) +(\d+) +(\d+) *(.*)$", output, re.M):
        reasons = {word: int(count) for count, word in re.findall(r"(\d+) ([a-z ]+)", why)}
        expect(sum(reasons.values()) == int(passed), f"{name}: the reasons are not those of {passed} calls", output)
        rows[name] = (int(taken), int(moved), int(passed), reasons)
    expect(tuple(rows) == COLLECTIVES, f"the table has rows for {list(rows)}", output)
    return rows


def all_is_right(options, output, status):
    expect(status == 0, f"exit status {status}", output)
    if "no such threads" in output:
        print("this MPI has no MPI_THREAD_MULTIPLE")
        sys.exit(77)
    expect(f"all is right at {options.ranks} ranks" in output, "not all is right", output)
    expect(": error" not in output and "transport retry" not in output, "something is complained of", output)


def check_part(options, part):
    status, output = run(options, part)
    all_is_right(options, output, status)
    rows = table_of(options, output)
    for collective in PARTS[part]:
        expect(rows[collective][0] > 0, f"no {collective} was taken", output)
    allowed = {"one rank", "intercommunicator", "operation", "arguments"} if part != "elements" else set()
    for collective, (_, _, _, reasons) in rows.items():
        expect(set(reasons) <= allowed, f"{collective} was passed on: {reasons}", output)


def check_counted(options):
    """Each call of call_counted() in program.c is in the table, where it belongs."""
    status, output = run(options, "counted")
    all_is_right(options, output, status)
    rows = table_of(options, output)
    n = options.ranks
    wanted = {
        "barrier": (10 * n, 0, {"one rank": 2 * n}),
        "bcast": (11 * n, 11 * n * 32, {}),
        "reduce": (12 * n, 12 * n * 16, {"operation": 4 * n}),
        "allreduce": (13 * n, 13 * n * 8, {"operation": 3 * n}),
        "allgather": (14 * n, 14 * n * 24, {}),
        "alltoall": (15 * n, 15 * n * 5 * n, {}),
    }
    for name, (taken, moved, reasons) in wanted.items():
        expect(rows[name] == (taken, moved, sum(reasons.values()), reasons), f"{name} is {rows[name]}", output)


def check_fortran(options):
    """All calls of program.f90 come there, of either module, which of them have buffers and which not."""
    status, output = run(options, "fortran")
    all_is_right(options, output, status)
    rows = table_of(options, output)
    calls = {name: (taken + passed) / options.ranks for name, (taken, _, passed, _) in rows.items()}
    wanted = {"barrier": 3, "bcast": 1, "reduce": 1, "allreduce": 4, "allgather": 1, "alltoall": 1}
    expect(calls == wanted, f"of each rank came {calls}", output)
    for name, (_, _, _, reasons) in rows.items():
        expect(set(reasons) <= {"one rank"}, f"{name} was passed on: {reasons}", output)


def check_untaken(options):
    """Without the library the same program tells no table, and is as right."""
    status, output = run(options, "counted", before=())
    all_is_right(options, output, status)
    expect("verbatim:" not in output, "something was taken", output)


def check_not_of_a_team(options):
    """Where ranks share no memory all is the MPI's own, and the table says so."""
    status, output = run(options, "counted", environment={"VERBATIM_COLL_HOST": "off"})
    all_is_right(options, output, status)
    for name, (taken, _, _, reasons) in table_of(options, output).items():
        expect(taken == 0 and reasons.get("no team", 0) > 0, f"{name} was taken", output)


def check_progress(options):
    """Messages that wait for their sender go on while it is in a collective that was taken."""
    slow = ["--mca", "btl_vader_single_copy_mechanism", "none"] if options.mpi == "openmpi" else []
    status, output = run(options, "rest", launcher_options=slow)
    all_is_right(options, output, status)


def check_standard_abi(options):
    """An MPI that shows the standard ABI, whose handles are others than its own, has all its calls."""
    status, output = run(options, "counted", environment={"LD_PRELOAD": options.standard_abi})
    all_is_right(options, output, status)
    expect("takes no collectives of" in output and "standard ABI" in output, "it does not say why it takes nothing", output)
    expect("calls of all ranks together" not in output, "something was taken", output)


def check_some_without(options):
    """Where some ranks have the library and another has not, one of them says what they wait for, and the job can be ended."""
    launcher, *rest = LAUNCHERS[options.mpi]
    if shutil.which(launcher) is None:
        print(f"{launcher} is missing")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="pmpi-") as folder:
        command = [launcher, *rest, str(options.ranks - 1), options.tool, "exec", "--pmpi", "--", options.program, "nothing", ":",
                   "-n", "1", options.program, "nothing"]
        settings = {"VERBATIM_FABRIC": folder, "TMPDIR": folder}
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", start_new_session=True, env={**os.environ, **settings}) as job:
            ends = [threading.Timer(LIMIT, os.killpg, (job.pid, signal.SIGKILL))]
            ends[0].start()
            output = ""
            told = False
            for line in job.stdout:
                output += line
                if not told and "in MPI_Finalize: " in line and "started without libverbatim_pmpi.so" in line:
                    told = job.poll() is None
                    # The others have waited as long, and could say so meanwhile.
                    for seconds, number in ((1, signal.SIGTERM), (11, signal.SIGKILL)):
                        ends.append(threading.Timer(seconds, os.killpg, (job.pid, number)))
                        ends[-1].start()
            for end in ends:
                end.cancel()
    says = output.count(f"of a communicator of {options.ranks} has waited")
    expect(told and says != 0, "nobody says what is waited for", output)
    expect(says == 1, "several ranks say the same", output)


def check_killed(options):
    """A rank that dies ends the job, as it does without the library: soon, and not well."""
    status, output = run(options, "killed")
    expect(status != 0, "the job ended well", output)
    told = re.search(r"verbatim: MPI_Allreduce of rank \d among \d: .*; the job is ended", output)
    expect(told or "illed" in output, "nobody says why the job ended", output)
    expect("all is right" not in output, "something was right", output)


def check_differ(options):
    """Ranks that name different lengths are told so, at all ranks."""
    status, output = run(options, "differ")
    all_is_right(options, output, status)
    said = re.findall(r"MPI_Allreduce of rank (\d) among \d: .*disagree", output)
    expect(set(said) == {str(rank) for rank in range(options.ranks)}, f"only ranks {said} say so", output)


CASES = {"counted": check_counted, "fortran": check_fortran, "untaken": check_untaken, "not_of_a_team": check_not_of_a_team, "progress": check_progress,
         "killed": check_killed, "standard_abi": check_standard_abi, "some_without": check_some_without, "differ": check_differ}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--mpi", choices=LAUNCHERS, required=True)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--standard-abi", help="a library that shows the standard ABI")
    parser.add_argument("case", choices=[*CASES, *PARTS])
    options = parser.parse_args()
    try:
        if options.case in CASES:
            CASES[options.case](options)
        else:
            check_part(options, options.case)
    except Failed as failed:
        print(failed)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
