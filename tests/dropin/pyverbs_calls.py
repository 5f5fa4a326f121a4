# SPDX-License-Identifier: BSD-2-Clause
"""pyverbs on libibverbs.so.1: requests posted by the calls of ibv_wr_*, and an extended queue that is polled by its calls."""

import os
import socket
import sys

from pyverbs.addr import AH
from pyverbs.cq import CQEX, CqInitAttrEx, PollCqAttr
from pyverbs.device import Context
from pyverbs.mr import MW, MWBindInfo
from pyverbs.pd import PD
from pyverbs.qp import QP, DataBuffer, QPAttr, QPInitAttrEx
from pyverbs.srq import SRQ, SrqInitAttrEx
from pyverbs.wr import RecvWR
from pyverbs.xrcd import XRCD, XRCDInitAttr
import pyverbs.enums as e
import pyverbs.mem_alloc as memory

from pyverbs_queues import connect, path, piece, ready, region, until, with_calls

TEXT = b"Verbatim" * 4
OPERATIONS = (e.IBV_QP_EX_WITH_SEND | e.IBV_QP_EX_WITH_SEND_WITH_IMM | e.IBV_QP_EX_WITH_RDMA_WRITE | e.IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
              e.IBV_QP_EX_WITH_RDMA_READ | e.IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | e.IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
              e.IBV_QP_EX_WITH_SEND_WITH_INV | e.IBV_QP_EX_WITH_BIND_MW | e.IBV_QP_EX_WITH_LOCAL_INV)
TOLD = (e.IBV_WC_EX_WITH_BYTE_LEN | e.IBV_WC_EX_WITH_IMM | e.IBV_WC_EX_WITH_QP_NUM | e.IBV_WC_EX_WITH_SRC_QP | e.IBV_WC_EX_WITH_SLID |
        e.IBV_WC_EX_WITH_SL | e.IBV_WC_EX_WITH_DLID_PATH_BITS | e.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
        e.IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)


class Told:
    """What the calls say of a completion."""

    def __init__(self, cq):
        self.status, self.opcode, self.length, self.flags = cq.status, cq.read_opcode(), cq.read_byte_len(), cq.read_wc_flags()
        self.number, self.source, self.immediate = cq.read_qp_num(), cq.read_src_qp(), socket.ntohl(cq.read_imm_data())
        self.ticks, self.clock = cq.read_timestamp(), cq.read_completion_wallclock_ns()
        self.rest = cq.read_slid(), cq.read_sl(), cq.read_dlid_path_bits(), cq.read_vendor_err()


def complete(cq, *expected):
    """A completion of each of these requests, by batches."""
    found = {}

    def look():
        if cq.start_poll(PollCqAttr()) != 0:
            return None
        while True:
            assert cq.status == e.IBV_WC_SUCCESS, (cq.wr_id, cq.status)
            found[cq.wr_id] = Told(cq)
            if cq.poll_next() != 0:
                break
        cq.end_poll()
        return True if len(found) >= len(expected) else None
    until(look)
    assert set(found) == set(expected), found
    return found


def post(qp, number, call, *arguments, data=None):
    qp.wr_start()
    qp.wr_id, qp.wr_flags = number, e.IBV_SEND_SIGNALED
    getattr(qp, call)(*arguments)
    if data is not None:
        getattr(qp, data[0])(*data[1:])
    qp.wr_complete()


def receive(qp, number, into):
    qp.post_recv(RecvWR(wr_id=number, num_sge=1, sg=[piece(into, 4096)]))


def send_messages(a, b, cq, pd):
    source, target = region(pd, TEXT), region(pd)
    whole = piece(source, len(TEXT))
    receive(b, 1, target)
    post(a, 2, "wr_send", data=("wr_set_sge", whole))
    told = complete(cq, 1, 2)
    assert told[1].length == len(TEXT) and told[1].number == b.qp_num and target.read(len(TEXT), 0) == TEXT
    assert told[2].opcode == e.IBV_WC_SEND and told[1].opcode == e.IBV_WC_RECV and told[1].clock > 0

    receive(b, 3, target)
    post(a, 4, "wr_send_imm", 0x1234, data=("wr_set_sge_list", 2, [piece(source, 8), piece(source, 8, 8)]))
    told = complete(cq, 3, 4)
    assert told[3].length == 16 and told[3].flags & e.IBV_WC_WITH_IMM and told[3].immediate == 0x1234

    words = memory.malloc(64)
    memory.write(words, b"inline", 6)
    receive(b, 5, target)
    post(a, 6, "wr_send", data=("wr_set_inline_data", words, 6))
    complete(cq, 5, 6)
    assert target.read(6, 0) == b"inline"
    receive(b, 7, target)
    post(a, 8, "wr_send", data=("wr_set_inline_data_list", 2, [DataBuffer(words + 2, 4), DataBuffer(words, 2)]))
    complete(cq, 7, 8)
    assert target.read(6, 0) == b"linein"
    memory.free(words)


def move_rdma(a, b, cq, pd):
    source, target = region(pd, TEXT), region(pd)
    whole = ("wr_set_sge", piece(source, len(TEXT)))
    post(a, 1, "wr_rdma_write", target.rkey, target.buf, data=whole)
    complete(cq, 1)
    assert target.read(len(TEXT), 0) == TEXT
    receive(b, 2, target)
    post(a, 3, "wr_rdma_write_imm", target.rkey, target.buf + 64, 7, data=whole)
    told = complete(cq, 2, 3)
    assert told[2].immediate == 7 and told[2].opcode == e.IBV_WC_RECV_RDMA_WITH_IMM and target.read(len(TEXT), 64) == TEXT
    back = region(pd)
    post(a, 4, "wr_rdma_read", target.rkey, target.buf, data=("wr_set_sge", piece(back, len(TEXT))))
    complete(cq, 4)
    assert back.read(len(TEXT), 0) == TEXT

    memory.write(target.buf, (40).to_bytes(8, sys.byteorder), 8)
    old = ("wr_set_sge", piece(back, 8))
    post(a, 5, "wr_atomic_fetch_add", target.rkey, target.buf, 2, data=old)
    complete(cq, 5)
    assert (memory.read64(back.buf), memory.read64(target.buf)) == (40, 42)
    post(a, 6, "wr_atomic_cmp_swp", target.rkey, target.buf, 42, 99, data=old)
    complete(cq, 6)
    assert (memory.read64(back.buf), memory.read64(target.buf)) == (42, 99)


def open_windows(a, b, cq, pd):
    """The target binds, the initiator writes, and either side takes the key back."""
    source, target = region(pd, TEXT), region(pd)
    whole = ("wr_set_sge", piece(source, len(TEXT)))
    for first, closing in ((1, "wr_local_inv"), (4, "wr_send_inv")):
        window = MW(pd, e.IBV_MW_TYPE_2)
        key = window.rkey & ~0xff | window.rkey + 1 & 0xff
        post(b, first, "wr_bind_mw", window, key, MWBindInfo(target, target.buf, 4096, e.IBV_ACCESS_REMOTE_WRITE))
        complete(cq, first)
        post(a, first + 1, "wr_rdma_write", key, target.buf, data=whole)
        complete(cq, first + 1)
        assert target.read(len(TEXT), 0) == TEXT
        if closing == "wr_local_inv":
            post(b, 3, closing, key)
            complete(cq, 3)
        else:
            receive(b, 6, target)
            post(a, 7, closing, key, data=whole)
            assert complete(cq, 6, 7)[6].flags & e.IBV_WC_WITH_INV
        window.close()


def withdraw(a, cq):
    a.wr_start()
    a.wr_id = 1
    a.wr_send()
    a.wr_abort()
    assert cq.start_poll(PollCqAttr()) != 0


def send_datagram(context, pd, cq):
    source, target = region(pd, TEXT), region(pd)
    a, b = (with_calls(context, pd, cq, e.IBV_QP_EX_WITH_SEND, e.IBV_QPT_UD) for _ in range(2))
    for one in (a, b):
        ready(context, one)
    address = AH(pd, attr=path(context))
    receive(b, 1, target)
    a.wr_start()
    a.wr_id, a.wr_flags = 2, e.IBV_SEND_SIGNALED
    a.wr_send()
    a.wr_set_ud_addr(address, b.qp_num, 0x11)
    a.wr_set_sge(piece(source, len(TEXT)))
    a.wr_complete()
    told = complete(cq, 1, 2)
    assert told[1].source == a.qp_num and target.read(len(TEXT), 40) == TEXT
    for made in (a, b, address):
        made.close()


def send_to_shared_queue(context, pd, cq):
    source, target = region(pd, TEXT), region(pd)
    domain = XRCD(context, XRCDInitAttr(e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS, os.O_CREAT, -1))
    shared = SrqInitAttrEx(max_wr=8, max_sge=1)
    shared.comp_mask = e.IBV_SRQ_INIT_ATTR_TYPE | e.IBV_SRQ_INIT_ATTR_XRCD | e.IBV_SRQ_INIT_ATTR_CQ | e.IBV_SRQ_INIT_ATTR_PD
    shared.srq_type, shared.xrcd, shared.cq, shared.pd = e.IBV_SRQT_XRC, domain, cq, pd
    srq = SRQ(context, shared)
    entry = QP(context, QPInitAttrEx(qp_type=e.IBV_QPT_XRC_RECV, comp_mask=e.IBV_QP_INIT_ATTR_XRCD, xrcd=domain), QPAttr(port_num=1))
    exit = with_calls(context, pd, cq, e.IBV_QP_EX_WITH_SEND, e.IBV_QPT_XRC_SEND)
    connect(context, exit, entry)
    srq.post_recv(RecvWR(wr_id=1, num_sge=1, sg=[piece(target, 4096)]))
    exit.wr_start()
    exit.wr_id, exit.wr_flags = 2, e.IBV_SEND_SIGNALED
    exit.wr_send()
    exit.wr_set_xrc_srqn(srq.get_srq_num())
    exit.wr_set_sge(piece(source, len(TEXT)))
    exit.wr_complete()
    complete(cq, 1, 2)
    assert target.read(len(TEXT), 0) == TEXT
    for made in (exit, entry, srq, domain):
        made.close()


def main():
    context = Context(name="shm0")
    pd = PD(context)
    cq = CQEX(context, CqInitAttrEx(cqe=64, wc_flags=TOLD))
    a, b = (with_calls(context, pd, cq, OPERATIONS) for _ in range(2))
    connect(context, a, b)
    send_messages(a, b, cq, pd)
    move_rdma(a, b, cq, pd)
    open_windows(a, b, cq, pd)
    withdraw(a, cq)
    for one in (a, b):
        one.close()
    send_datagram(context, pd, cq)
    send_to_shared_queue(context, pd, cq)
    cq.close()
    pd.close()
    context.close()


main()
