#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's own programs, unmodified, on libibverbs.so.1 of the build: `programs.py --tool verbatim CASE`.

Each case is the command line that a user types, behind `verbatim exec`, in a fabric of its own. Programs of two sides run as
server and client. Exit status 77 (ctest: skipped) when a program's package is missing.
"""

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
LIMIT = 120  # seconds, for everything that a case starts at a time: most need one, -a on a busy machine a hundred
PACKAGES = {"ibv": "ibverbs-utils", "ib_": "perftest", "ucx": "ucx-utils", "fi_": "libfabric-bin", "mpirun.openmpi": "openmpi-bin",
            "mpicc.openmpi": "libopenmpi-dev", "mpiexec.hydra": "mpich", "mpicc.mpich": "libmpich-dev"}


class Skipped(Exception):
    pass


class Failed(Exception):
    pass


def need(program):
    if shutil.which(program) is None:
        package = next((p for prefix, p in PACKAGES.items() if program.startswith(prefix)), program)
        raise Skipped(f"{program} is missing (Debian package {package})")


def free_port():
    with socket.socket() as one:
        one.bind(("", 0))
        return one.getsockname()[1]


def is_listening(port):
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            _, local, _, state = line.split()[:4]
            if state == "0A" and int(local.rsplit(":", 1)[1], 16) == port:
                return True
    return False


class Fabric:
    """Processes that see one another and nobody else, and are ended whatever happens."""

    def __init__(self, tool, folder):
        self.tool, self.folder, self.started = tool, folder, []
        self.begin()

    def begin(self, limit=LIMIT):
        self.limit, self.deadline = limit, time.monotonic() + limit

    def start(self, command, environment=(), name="program"):
        need(command[0])
        log = open(Path(self.folder) / f"{name}.log", "w+", encoding="utf-8", errors="replace")
        process = self.popen([self.tool, "exec", "--", *command], log, dict(environment))
        process.command, process.log = " ".join(command), log
        self.started.append(process)
        return process

    def popen(self, command, log, environment):
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder,
                                env={**os.environ, "VERBATIM_FABRIC": self.folder, **environment})

    def await_listener(self, process, port):
        while not is_listening(int(port)):
            self.expect(process.poll() is None and time.monotonic() < self.deadline, process, "does not listen")
            time.sleep(0.01)

    def output(self, process):
        process.log.seek(0)
        return process.log.read()

    def expect(self, condition, process, what):
        if not condition:
            raise Failed(f"{process.command}: {what}\n{self.output(process)}")

    def finish(self, process, status=0):
        try:
            process.wait(max(0.1, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.expect(False, process, f"did not end within {self.limit} s")
        self.expect(process.returncode == status, process, f"ended with {process.returncode}, not {status}")
        return self.output(process)

    def run(self, *command, environment=(), status=0):
        return self.finish(self.start(command, environment), status)

    def pair(self, command, port_option="-p", environment=(), server=(), client=(), client_port_option=None, status=0):
        """The server, then the client, who end so; what both wrote."""
        port = str(free_port())
        first = self.start([*command, *server, port_option, port], environment, "server")
        self.await_listener(first, port)
        second = self.start([*command, *client, client_port_option or port_option, port, "127.0.0.1"], environment, "client")
        return self.finish(second, status), self.finish(first, status)

    def end(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
            process.log.close()
        self.started.clear()


CASES = {}


def case(name, function):
    assert name not in CASES, name
    CASES[name] = function


# What users type, as it is: the program and its options.

def pingpong(options, says=r"\d+ iters in [\d.]+ seconds = [\d.]+ usec/iter"):
    def play(fabric):
        command = options.split()
        for text in fabric.pair(command):
            if not re.search(says, text):
                raise Failed(f"{options} says nothing of {says}:\n{text}")
    return play


def ask_perftest(fabric, command):
    """What the client wrote. Where perftest is disturbed while it measures how fast the processor counts, it is asked again."""
    for left in (2, 1, 0):
        try:
            return fabric.pair([*command, "-d", "shm0"])[0]
        except Failed:
            if left == 0 or not any("Correlation coefficient" in fabric.output(process) for process in fabric.started):
                raise
            fabric.end()


def perftest(options):
    """Both sides end with 0; the client's rows have as many numbers as its head has columns."""
    def play(fabric):
        command = options.split()
        client = ask_perftest(fabric, command)
        heads = [line for line in client.splitlines() if line.strip().startswith("#bytes")]
        if not heads:
            raise Failed(f"{options}: no table\n{client}")
        columns = len(re.findall(r"#?[\w.%]+(?: percentile)?(?: average| peak)?\[[^]]+\]|#\w+|tps average", heads[-1]))
        rows = [line.split() for line in client.splitlines() if re.match(r"\s*\d+\s+\d+\s", line)]
        if not rows or any(len(row) != columns or any(float(n) < 0 for n in row) for row in rows):
            raise Failed(f"{options}: rows with other than {columns} columns\n{client}")
        if "-a" in command and len(rows) < (12 if "UD" in command else 23):
            raise Failed(f"{options}: {len(rows)} sizes\n{client}")
    return play


def ucx(test, transport, options=""):
    def play(fabric):
        environment = {"UCX_TLS": transport, "UCX_NET_DEVICES": "shm0:1"}
        client, _ = fabric.pair(["ucx_perftest", "-t", test, "-n", "2000", "-w", "100", *options.split()], environment=environment)
        if not re.search(r"Final:\s+2000\s", client):
            raise Failed(f"ucx_perftest {test} over {transport}:\n{client}")
    return play


def uct_atomic(test, size, refusal=None):
    """Verbs have two atomics, of 64 bits: UCX refuses others itself."""
    def play(fabric):
        command = ["ucx_perftest", "-t", test, "-x", "rc_verbs", "-d", "shm0:1", "-D", "short", "-s", str(size), "-n", "2000", "-w", "100"]
        client, _ = fabric.pair(command, environment={"UCX_TLS": "all", "UCX_NET_DEVICES": "shm0:1"}, status=255 if refusal else 0)
        if not re.search(f"does not support required {refusal}" if refusal else r"Final:\s+2000\s", client):
            raise Failed(f"ucx_perftest {test} of {size} bytes:\n{client}")
    return play


def fi(provider, endpoint):
    def play(fabric):
        client, _ = fabric.pair(["fi_pingpong", "-p", provider, "-e", endpoint, "-I", "100"], "-B", client_port_option="-P")
        if not re.search(r"^4k\s+100\s", client, re.M):
            raise Failed(f"fi_pingpong {provider}:\n{client}")
    return play


def mpi(compiler, launcher, ranks, environment=()):
    def play(fabric):
        need(compiler)
        need(launcher[0])
        program = str(Path(fabric.folder) / "exchange")
        subprocess.run([compiler, "-O1", str(HERE / "mpi_exchange.c"), "-o", program], check=True, timeout=LIMIT)
        text = fabric.run(*launcher, "-n", str(ranks), program, environment=environment)
        if f"exchanged among {ranks}" not in text:
            raise Failed(f"{' '.join(launcher)}:\n{text}")
    return play


def devinfo(fabric):
    text = fabric.run("ibv_devinfo", "-v")
    for line in (r"hca_id:\s+shm0", r"state:\s+PORT_ACTIVE", r"atomic_cap:\s+ATOMIC_HCA", r"vendor_id:\s+0x0*[1-9a-f]", r"GID\[\s*0\]:"):
        if not re.search(line, text):
            raise Failed(f"ibv_devinfo -v has no {line}:\n{text}")


def devices(fabric):
    if not re.search(r"shm0\s+[0-9a-f]{16}", fabric.run("ibv_devices")):
        raise Failed("ibv_devices does not list shm0")


def asyncwatch(fabric):
    watcher = fabric.start(["ibv_asyncwatch"])
    while "async event FD" not in fabric.output(watcher):
        fabric.expect(watcher.poll() is None and time.monotonic() < fabric.deadline, watcher, "does not watch")
        time.sleep(0.01)
    watcher.terminate()
    fabric.finish(watcher, -15)


def ucx_info(fabric):
    text = fabric.run("ucx_info", "-d")
    for transport in ("rc_verbs", "ud_verbs"):
        if not re.search(rf"Transport: {transport}\n#\s+Device: shm0:1", text):
            raise Failed(f"ucx_info -d has no {transport} on shm0:\n{text}")


def fi_info(fabric):
    """Programs that look through what there is do not want to hear of what there is not."""
    process = fabric.start(["sh", "-c", "fi_info -p verbs 2>&1 >list"])
    complaints = fabric.finish(process)
    text = (Path(fabric.folder) / "list").read_text()
    if complaints or "shm0-dgram" not in text:
        raise Failed(f"fi_info -p verbs complains: {complaints!r}, and lists:\n{text}")


def connection_manager(fabric):
    """Nobody waits for what does not come."""
    process = fabric.start(["ib_send_lat", "-R", "-d", "shm0"])
    if "rdma_create_id failed" not in fabric.finish(process, 1):
        raise Failed(f"ib_send_lat -R:\n{fabric.output(process)}")


PYTHON = "/usr/bin/python3"


def need_pyverbs():
    if subprocess.run([PYTHON, "-c", "import pyverbs.device"], stderr=subprocess.DEVNULL).returncode != 0:
        raise Skipped("pyverbs is missing (Debian package python3-pyverbs)")


def python(script, *told):
    """Ends with 0; `told` is said in the log."""
    def play(fabric):
        need_pyverbs()
        text = fabric.run(PYTHON, "-B", str(HERE / script), environment={"VERBATIM_LOG": "info"} if told else {})
        for words in told:
            if words not in text:
                raise Failed(f"{script}: nothing says '{words}':\n{text}")
    return play


def containers(fabric):
    """Two that share a folder and no namespace: nothing of --ipc=host or --pid=host is needed, and what that costs is said."""
    need_pyverbs()
    apart = ["unshare", "--pid", "--ipc", "--mount", "--net", "--uts", "--fork", "--mount-proc"]
    if subprocess.run([*apart, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        raise Skipped("namespaces cannot be made here")
    sides = [fabric.start([*apart, PYTHON, "-B", str(HERE / "pyverbs_containers.py"), side, fabric.folder], name=side) for side in "ab"]
    texts = [fabric.finish(side) for side in sides]
    if "exchanged by process" not in texts[0]:
        raise Failed(texts[0])
    for text in texts:
        if len(re.findall("of another pid namespace", text)) != 1 or "fix: let the containers share" not in text:
            raise Failed(f"not said, or not once, what separate containers cost:\n{text}")


case("ibv_devices", devices)
case("ibv_devinfo", devinfo)
case("ibv_asyncwatch", asyncwatch)
for options in ("", "-e", "-c", "-t", "-N", "-o", "-g 0 -s 100000"):
    case(f"ibv_rc_pingpong{options.replace(' ', '')}", pingpong(f"ibv_rc_pingpong {options}"))
for kind in ("uc", "ud", "srq"):
    case(f"ibv_{kind}_pingpong", pingpong(f"ibv_{kind}_pingpong"))
case("ibv_xsrq_pingpong", pingpong("ibv_xsrq_pingpong", "success"))

SHORT = "-n 1000"
for verb, transports in {"send": "RC UC UD XRC", "write": "RC UC XRC", "read": "RC XRC", "atomic": "RC XRC"}.items():
    for measure in ("lat", "bw"):
        for transport in transports.split():
            case(f"ib_{verb}_{measure}_{transport}", perftest(f"ib_{verb}_{measure} -c {transport} {SHORT}"))
for name, options in {
        "send_lat_a": "ib_send_lat -a -n 20", "write_bw_a": "ib_write_bw -a -n 5", "send_bw_a": "ib_send_bw -a -n 5",
        "read_lat_a": "ib_read_lat -a -n 20", "send_bw_qps": "ib_send_bw -q 8 -n 1000", "write_bw_qps": "ib_write_bw -q 8 -n 1000",
        "send_lat_events": "ib_send_lat -e -n 1000", "send_bw_events": "ib_send_bw -e -n 1000", "send_bw_srq": "ib_send_bw --use-srq -q 4 -n 1000",
        "send_lat_srq": "ib_send_lat --use-srq -n 1000", "send_lat_inline": "ib_send_lat -I 64 -s 64 -n 1000",
        "write_lat_inline": "ib_write_lat -I 64 -s 64 -n 1000", "send_bw_lists": "ib_send_bw -l 16 -n 1024",
        "write_bw_lists": "ib_write_bw -l 16 -n 1024", "send_bw_both": "ib_send_bw -b -n 1000", "write_bw_both": "ib_write_bw -b -n 1000",
        "read_bw_both": "ib_read_bw -b -n 1000", "write_bw_duration": "ib_write_bw -D 1", "send_bw_duration": "ib_send_bw -D 1",
        "write_bw_odp": "ib_write_bw --odp -n 1000", "write_bw_mr_per_qp": "ib_write_bw --mr_per_qp -q 4 -n 1000",
        "atomic_bw_cmp": "ib_atomic_bw -A CMP_AND_SWAP -n 1000", "atomic_lat_add": "ib_atomic_lat -A FETCH_AND_ADD -n 1000",
        "send_lat_gid": "ib_send_lat -x 0 -n 1000", "write_bw_cq_mod": "ib_write_bw -Q 16 -t 64 -n 1024",
        "send_lat_sleep": "ib_send_lat -e -s 64 -n 1000", "send_lat_sleep_long": "ib_send_lat -e -s 65536 -n 300"}.items():
    case(f"ib_{name}", perftest(options))
case("connection_manager", connection_manager)

case("ucx_info", ucx_info)
for test in ("tag_lat", "tag_bw", "stream_lat", "ucp_am_lat", "ucp_put_lat", "ucp_get", "ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap"):
    case(f"ucx_rc_{test}", ucx(test, "rc"))
for test in ("tag_lat", "tag_bw"):
    case(f"ucx_ud_{test}", ucx(test, "ud_verbs"))
case("ucx_rc_tag_bw_large", ucx("tag_bw", "rc", "-s 262144"))
for test, transport, layout in (("am_lat", "rc_verbs", "short"), ("put_lat", "rc_verbs", "short"), ("get", "rc_verbs", "bcopy"),
                                ("get", "rc_verbs", "zcopy"), ("am_lat", "ud_verbs", "short")):
    case(f"uct_{transport}_{test}_{layout}", ucx(test, "all", f"-x {transport} -d shm0:1 -D {layout} -s {4096 if layout == 'zcopy' else 8}"))
for test in ("add_lat", "add_mr", "fadd", "cswap"):
    case(f"uct_rc_verbs_{test}", uct_atomic(test, 8))
case("uct_rc_verbs_swap_refused", uct_atomic("swap", 8, "64-bit atomic: swap"))
case("uct_rc_verbs_fadd_32_refused", uct_atomic("fadd", 4, "32-bit atomic: fetch-add"))

case("fi_info", fi_info)
case("fi_pingpong_dgram", fi("verbs", "dgram"))
case("fi_pingpong_rxd", fi("verbs;ofi_rxd", "rdm"))

OPEN_MPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]
for ranks in (2, 4):
    case(f"openmpi_openib_{ranks}", mpi("mpicc.openmpi", [*OPEN_MPI, "--mca", "pml", "ob1", "--mca", "btl", "openib,self",
                                                         "--mca", "btl_openib_allow_ib", "1"], ranks))
    for name, transport in (("rc", "rc,self"), ("ud", "ud_verbs,self")):
        case(f"openmpi_ucx_{name}_{ranks}", mpi("mpicc.openmpi", [*OPEN_MPI, "--mca", "pml", "ucx", "--mca", "osc", "ucx"], ranks,
                                               {"UCX_TLS": transport}))
        case(f"mpich_{name}_{ranks}", mpi("mpicc.mpich", ["mpiexec.hydra"], ranks, {"UCX_TLS": transport}))

case("pyverbs_objects", python("pyverbs_objects.py"))
case("pyverbs_move", python("pyverbs_move.py"))
case("pyverbs_use", python("pyverbs_use.py"))
case("pyverbs_calls", python("pyverbs_calls.py"))
case("pyverbs_refused", python("pyverbs_refused.py", "create_flow is not supported by this provider (EOPNOTSUPP)",
                               "create_wq is not supported by this provider (EOPNOTSUPP)", "type 8 is not supported",
                               "shared receive queues are basic or XRC", "send_ops_flags 0x400"))
case("pyverbs_fork", python("pyverbs_fork.py"))
case("containers", containers)


def main(cases):
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("case", nargs="?")
    options = parser.parse_args()
    if options.list:
        print("\n".join(cases))
        return 0
    with tempfile.TemporaryDirectory(prefix="verbatim-test-") as folder:
        fabric = Fabric(options.tool, folder)
        try:
            cases[options.case](fabric)
        except Skipped as reason:
            print(f"skipped: {reason}")
            return 77
        except Failed as what:
            print(what)
            return 1
        finally:
            fabric.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(CASES))
