# SPDX-License-Identifier: BSD-2-Clause
"""pyverbs on libibverbs.so.1: two queue pairs of a device exchange bytes. `pyverbs_move.py [DEVICE [GID-INDEX]]`"""

import sys
import time

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR
import pyverbs.enums as e

ALL = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
TEXT = b"Verbatim" * 8


def make_qp(pd, cq):
    cap = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=1, max_recv_sge=1)
    return QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=cap, sq_sig_all=1), QPAttr(port_num=1))


def connect(qp, other, lid, gid, gid_index):
    attr = QPAttr(port_num=1, path_mtu=e.IBV_MTU_1024)
    attr.dest_qp_num = other.qp_num
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
    attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
    attr.qp_access_flags = ALL
    route = GlobalRoute(dgid=gid, sgid_index=gid_index)
    attr.ah_attr = AHAttr(port_num=1, dlid=lid, is_global=1, gr=route)
    qp.to_init(attr)
    qp.to_rtr(attr)
    qp.to_rts(attr)


def poll_one(cq):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        count, completions = cq.poll(1)
        if count:
            assert completions[0].status == e.IBV_WC_SUCCESS, completions[0]
            return completions[0].wr_id
    raise TimeoutError("no completion")


def move_bytes(context, gid_index):
    pd = PD(context)
    channel = CompChannel(context)
    cq = CQ(context, 64, None, channel, 0)
    port = context.query_port(1)
    gid = context.query_gid(1, gid_index)
    a, b = make_qp(pd, cq), make_qp(pd, cq)
    connect(a, b, port.lid, gid, gid_index)
    connect(b, a, port.lid, gid, gid_index)
    source, target = MR(pd, 4096, ALL), MR(pd, 4096, ALL)
    source.write(TEXT.decode(), len(TEXT))
    b.post_recv(RecvWR(wr_id=1, sg=[SGE(target.buf, 4096, target.lkey)], num_sge=1))
    cq.req_notify()
    a.post_send(SendWR(wr_id=2, opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(source.buf, len(TEXT), source.lkey)]))
    channel.get_cq_event(cq)
    cq.ack_events(1)
    assert {poll_one(cq), poll_one(cq)} == {1, 2}
    assert target.read(len(TEXT), 0) == TEXT
    write = SendWR(wr_id=3, opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(source.buf, len(TEXT), source.lkey)])
    write.set_wr_rdma(target.rkey, target.buf + 1024)
    a.post_send(write)
    assert poll_one(cq) == 3
    assert target.read(len(TEXT), 1024) == TEXT


def main():
    context = Context(name=sys.argv[1] if len(sys.argv) > 1 else "shm0")
    move_bytes(context, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    context.close()


main()
