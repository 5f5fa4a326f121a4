# SPDX-License-Identifier: BSD-2-Clause
"""All ranks of a job choose algorithms of collectives by the costs that rank 0 has: by the user's word, over
what processes of the host keep for each other, which nobody believes unseen.

    agreed_costs.py <verbatim> <program>     a program of collectives, for 4 ranks
"""
import os
import re
import subprocess
import sys
import tempfile

TOOL, PROGRAM = sys.argv[1:3]
CHOSEN = re.compile(r"algorithms of collectives are chosen by (\S+)")


def run(arguments, folder, **variables):
    environment = {**os.environ, "XDG_RUNTIME_DIR": folder, **variables}
    environment = {name: value for name, value in environment.items() if value is not None}
    return subprocess.run([TOOL, *arguments], env=environment, capture_output=True, text=True, timeout=100,
                          check=False)


def job(folder, before="", **variables):
    """Of 4 ranks, all of whose collectives go by messages, and by algorithms of the table."""
    script = before + 'exec "$0" "$@"'
    done = run(["run", "-n", "4", "sh", "-c", script, PROGRAM, "--gtest_filter=Collective/0.*", "--gtest_brief=1"],
               folder, VERBATIM_COLL_HOST="off", VERBATIM_LOG="debug", **variables)
    return done.returncode, done.stdout + done.stderr


def agreed(ended):
    status, said = ended
    assert status == 0, said[-4000:]
    chosen = CHOSEN.findall(said)
    assert len(chosen) == 4, said[-4000:]
    assert len(set(chosen)) == 1, chosen
    return chosen[0]


def note_in(folder):
    found = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names
             if name.startswith(".coll-costs-")]
    assert len(found) == 1, found
    return found[0]


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="latin-1") as file:
        file.write(text)


def check_that_they_are_kept(folder):
    agreed(job(folder))
    path = note_in(folder)
    # Where the processors were busy they are measured again, until they are known; then they are only read.
    for _ in range(200):
        explained = run(["mpi", "--explain", "barrier"], folder)
        assert explained.returncode == 0, explained.stderr
        if "measured since the host started" in explained.stdout:
            break
        assert f"measured now and kept in {path}" in explained.stdout, explained.stdout
    else:
        raise AssertionError(explained.stdout)
    before = os.stat(path)
    first = read(path)
    assert agreed(job(folder)) == first
    assert os.stat(path).st_ino == before.st_ino
    assert os.stat(path).st_mode & 0o777 == 0o600
    # Nobody measures again: a number that nothing else would come to.
    other = re.sub(r"near\.latency:[0-9.]+m?", "near.latency:77.123m", first)
    write(path, other)
    assert agreed(job(folder)) == other
    explained = run(["mpi", "--explain", "allreduce", "4096"], folder)
    assert explained.returncode == 0, explained.stderr
    assert re.search(r"near\.latency +77\.123 ns +measured", explained.stdout), explained.stdout
    assert f"measured since the host started ({path})" in explained.stdout, explained.stdout
    # Of a job whose kernel may copy nothing it is known otherwise, which is kept for no other.
    chosen = agreed(job(folder, VERBATIM_SHM_CMA="off"))
    told = dict(each.split(":") for each in chosen.replace("m,", ",").rstrip("m").split(","))
    assert float(told["host.kernel"]) > 0.9 * (float(told["host.put"]) + float(told["host.fetch"])), chosen
    assert read(path) == other
    # Of what could not be measured it is tried again.
    write(path, re.sub(r"near\.latency:[0-9.]+m", "near.latency:60.000", first))
    before = os.stat(path).st_ino
    agreed(job(folder))
    assert os.cpu_count() < 2 or os.stat(path).st_ino != before
    write(path, other)
    return path


def check_that_they_are_not_believed(folder, path):
    good = read(path)
    for wrong in ("", "nonsense", good[:-9], good + "x", good.replace("77.123", "0.001"), "\xff" * 100, "a" * 5000,
                  good.replace(",", "\0", 1)):
        write(path, wrong)
        said = job(folder)
        assert agreed(said) == read(path) != wrong, wrong
        assert "is not used" in said[1], said[1][-3000:]
    # Neither what others may write, nor what leads elsewhere.
    write(path, good)
    os.chmod(path, 0o666)
    assert "77.123" not in agreed(job(folder))
    elsewhere = os.path.join(folder, "elsewhere")
    write(elsewhere, good)
    os.chmod(elsewhere, 0o600)
    os.unlink(path)
    os.symlink(elsewhere, path)
    assert "77.123" not in agreed(job(folder))
    os.unlink(path)
    os.mkdir(path)
    assert "77.123" not in agreed(job(folder))
    os.rmdir(path)


def check_the_users_word(folder):
    # Each rank is told otherwise, by far; rank 0's counts.
    each = 'export VERBATIM_COLL_COSTS="far.latency:$((PMI_RANK * 100000 + 50)),host.put:0.0$((PMI_RANK + 2))";'
    chosen = agreed(job(folder, each))
    assert "far.latency:50.000," in chosen and "host.put:0.020," in chosen, chosen
    chosen = agreed(job(folder, VERBATIM_COLL_COSTS="built-in"))
    assert "m," not in chosen and chosen.startswith("near.latency:60.000,"), chosen
    for wrong, why in (("fast", "names no cost"), ("net.byte:fast", "no time from 0.002 to 100 ns"),
                       ("net.byte:0.1,", "names no cost"), ("net.gap:1,net.gap:1", "net.gap is there twice")):
        status, said = job(folder, VERBATIM_COLL_COSTS=wrong)
        assert status != 0 and why in said and "MPI_Init" in said, said
        explained = run(["mpi", "--explain", "barrier"], folder, VERBATIM_COLL_COSTS=wrong)
        assert explained.returncode != 0 and why in explained.stderr, explained
    explained = run(["mpi", "--explain", "barrier"], folder, VERBATIM_COLL_COSTS="net.gap:123.5")
    assert re.search(r"net\.gap +123\.500 ns +user's", explained.stdout), explained.stdout


def check_without_a_folder(folder):
    nowhere = os.path.join(folder, "file")
    write(nowhere, "")
    # Where nothing can be kept it is measured for this job.
    user = os.path.join(folder, f"verbatim-{os.getuid()}")
    os.rename(user, user + "-aside")
    write(user, "")
    explained = run(["mpi", "--explain", "barrier"], folder)
    assert explained.returncode == 0 and "Costs, measured now:" in explained.stdout, explained
    os.unlink(user)
    os.rename(user + "-aside", user)


with tempfile.TemporaryDirectory() as place:
    kept = check_that_they_are_kept(place)
    check_that_they_are_not_believed(place, kept)
    check_the_users_word(place)
    check_without_a_folder(place)
print("all ranks agreed")
