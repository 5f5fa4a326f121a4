#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's programs on libibverbs.so.1 where something is not as usual: `conditions.py --tool verbatim CASE`.

Users without privileges, and two of them; containers of which one is killed; programs that ask for what is not there.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import programs
from programs import HERE, PYTHON, Failed, Skipped

NOBODY, ANOTHER = 65534, 65533


class UnprivilegedFabric(programs.Fabric):
    """An ordinary user who has set nothing, not even HOME: where processes meet is the user's own default."""

    def __init__(self, fabric, user, folder=None):
        super().__init__(str(installed(fabric)), fabric.folder)
        self.user, self.fabric_folder = user, folder
        self.deadline = fabric.deadline

    def popen(self, command, log, environment):
        kept = {name: value for name, value in os.environ.items() if name not in ("HOME", "VERBATIM_FABRIC", "XDG_RUNTIME_DIR")}
        if self.fabric_folder is not None:
            kept["VERBATIM_FABRIC"] = str(self.fabric_folder)
        becomes = {"user": self.user, "group": self.user, "extra_groups": []} if os.geteuid() == 0 else {}
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd="/",
                                env={**kept, **environment}, **becomes)


def installed(fabric):
    """The tool and its libraries where every user may read them; the tool's path."""
    place = Path(fabric.folder)
    tool = place / "perf" / "cli" / "verbatim"
    if not tool.exists():
        built = Path(fabric.tool).resolve()
        os.chmod(place, 0o755)
        tool.parent.mkdir(parents=True)
        shutil.copy(built, tool)
        shutil.copytree(built.parent.parent.parent / "dropin", place / "dropin", symlinks=True)
    return tool


def unprivileged(play):
    def play_as_nobody(fabric):
        user = UnprivilegedFabric(fabric, NOBODY)
        try:
            play(user)
        finally:
            user.end()
    return play_as_nobody


def two_users(fabric):
    """Whose folder it is, is told to everybody else: to those who may not look into it, to root, and to its owner when others may."""
    if os.geteuid() != 0:
        raise Skipped("only root can become two users")
    programs.need("ibv_devinfo")
    installed(fabric)
    shared = Path(fabric.folder) / "shared"
    shared.mkdir()
    for mode, user, words in ((0o700, NOBODY, None), (0o700, ANOTHER, f"it belongs to user {NOBODY}, not to us ({ANOTHER})"),
                              (0o700, 0, f"it belongs to user {NOBODY}, not to us (0)"), (0o777, NOBODY, "it is open to others (mode 777)"),
                              (0o777, ANOTHER, f"it belongs to user {NOBODY}, not to us ({ANOTHER})")):
        os.chown(shared, NOBODY, NOBODY)
        os.chmod(shared, mode)
        asks = UnprivilegedFabric(fabric, user, shared)
        text = asks.run("ibv_devinfo", status=0 if words is None else 1)
        asks.end()
        if words is not None and (f"cannot use the folder {shared}: {words}" not in text or "VERBATIM_FABRIC" not in text):
            raise Failed(f"user {user} is not told why (mode {mode:o}):\n{text}")


def two_users_apart(fabric):
    """Each has a fabric of his own: the client hears that nobody has the server's queue pair there, and what to do."""
    if os.geteuid() != 0:
        raise Skipped("only root can become two users")
    server, client = UnprivilegedFabric(fabric, NOBODY), UnprivilegedFabric(fabric, ANOTHER)
    port = str(programs.free_port())
    try:
        first = server.start(["ibv_rc_pingpong", "-n", "10", "-p", port], name="server")
        server.await_listener(first, port)
        text = client.run("ibv_rc_pingpong", "-n", "10", "-p", port, "127.0.0.1", status=1)
        if "no process has QP" not in text or "both use the same VERBATIM_FABRIC" not in text:
            raise Failed(f"the client is not told why:\n{text}")
    finally:
        server.end()
        client.end()


# Containers.

APART = ["unshare", "--pid", "--ipc", "--mount", "--net", "--uts", "--fork", "--mount-proc"]


class Containers:
    """Two that exchange messages; /dev/shm is another folder in them."""

    def __init__(self, fabric):
        programs.need_pyverbs()
        if subprocess.run([*APART, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            raise Skipped("namespaces cannot be made here")
        folder = Path(fabric.folder)
        self.fabric, self.meeting, self.memory = fabric, folder / "fabric", folder / "dev-shm"
        self.meeting.mkdir(0o700)
        self.memory.mkdir()
        script = f"mount --bind {self.memory} /dev/shm && exec {PYTHON} -B {HERE}/pyverbs_containers.py $0 {folder} until-killed"
        self.sides = {side: fabric.start([*APART, "sh", "-c", script, side], {"VERBATIM_FABRIC": str(self.meeting)}, side) for side in "ab"}
        while not all((folder / f"{side}.running").exists() for side in self.sides):
            for side in self.sides.values():
                fabric.expect(side.poll() is None and time.monotonic() < fabric.deadline, side, "does not exchange anything")
            time.sleep(0.01)

    def kill(self, *names):
        for name in names:
            # The first process of the container: all others end with it.
            pid = self.sides[name].pid
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
        for name in names:
            self.sides[name].wait(max(0.1, self.fabric.deadline - time.monotonic()))

    def expect_next_leaves_nothing(self):
        command = [PYTHON, "-B", str(HERE / "pyverbs_objects.py")]
        self.fabric.finish(self.fabric.start(command, {"VERBATIM_FABRIC": str(self.meeting)}, "next"))
        if left := sorted(os.listdir(self.memory)):
            raise Failed(f"left in /dev/shm: {left}")
        if left := sorted(os.listdir(self.meeting)):
            raise Failed(f"left in the folder: {left}")


def killed_container(fabric):
    """Of two containers one is killed: the other one ends in order, and is told why."""
    containers = Containers(fabric)
    begin = time.monotonic()
    containers.kill("b")
    text = fabric.finish(containers.sides["a"])
    if time.monotonic() - begin > 20:
        raise Failed(f"only after {time.monotonic() - begin:.0f} s:\n{text}")
    if "its process has ended" not in text or not re.search("after some rounds: .*(retry|flush)", text, re.I):
        raise Failed(f"the survivor is not told why:\n{text}")
    containers.expect_next_leaves_nothing()


def killed_containers(fabric):
    """Nobody is left to tidy up: the next process that starts there does it."""
    containers = Containers(fabric)
    containers.kill("a", "b")
    if not os.listdir(containers.meeting):
        raise Failed("nothing was left in the folder: they were not killed in the middle")
    containers.expect_next_leaves_nothing()


CASES = {
    "user_pingpong": unprivileged(programs.pingpong("ibv_rc_pingpong -n 100")),
    "user_ib_send_bw": unprivileged(programs.perftest("ib_send_bw -n 1000")),
    "user_ucx_tag_lat": unprivileged(programs.ucx("tag_lat", "rc")),
    "two_users_one_folder": two_users,
    "two_users_apart": two_users_apart,
    "killed_container": killed_container,
    "killed_containers": killed_containers,
}

if __name__ == "__main__":
    sys.exit(programs.main(CASES))
