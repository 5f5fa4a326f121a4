# SPDX-License-Identifier: BSD-2-Clause
"""A Python program that forks in the middle, as multiprocessing does, with a device open: the child makes one of its own."""

import multiprocessing

from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
import pyverbs.enums as e


def work(queue):
    context = Context(name="shm0")
    pd = PD(context)
    region = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
    region.write("child", 5)
    queue.put(region.read(5, 0))
    context.close()


def main():
    context = Context(name="shm0")
    pd = PD(context)
    region = MR(pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
    region.write("parent", 6)
    start = multiprocessing.get_context("fork")
    queue = start.Queue()
    child = start.Process(target=work, args=(queue,))
    child.start()
    assert queue.get(timeout=30) == b"child"
    child.join(30)
    assert child.exitcode == 0, child.exitcode
    assert region.read(6, 0) == b"parent"
    CQ(context, 16)
    context.close()


main()
