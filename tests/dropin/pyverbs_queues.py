# SPDX-License-Identifier: BSD-2-Clause
"""Queue pairs for the scripts on pyverbs: made, connected to each other in one process, and polled."""

import time

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.mr import MR
from pyverbs.qp import QP, QPAttr, QPCap, QPEx, QPInitAttr, QPInitAttrEx
from pyverbs.wr import SGE
import pyverbs.enums as e

RIGHTS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC |
          e.IBV_ACCESS_MW_BIND)
PATIENCE = 30  # seconds


def capacity():
    return QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=2, max_recv_sge=1, max_inline_data=64)


def classic(pd, cq, kind=e.IBV_QPT_RC, srq=None):
    return QP(pd, QPInitAttr(qp_type=kind, scq=cq, rcq=cq, srq=srq, cap=capacity(), sq_sig_all=1))


def with_calls(context, pd, cq, operations, kind=e.IBV_QPT_RC):
    return QPEx(context, QPInitAttrEx(qp_type=kind, scq=cq, rcq=cq, cap=capacity(), pd=pd, sq_sig_all=1, send_ops_flags=operations,
                                      comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))


def path(context):
    """To the device itself."""
    return AHAttr(port_num=1, dlid=context.query_port(1).lid, is_global=1, gr=GlobalRoute(dgid=context.query_gid(1, 0), sgid_index=0))


def attributes(context, number):
    attr = QPAttr(port_num=1, path_mtu=e.IBV_MTU_1024)
    attr.dest_qp_num, attr.qkey, attr.qp_access_flags = number, 0x11, RIGHTS & ~e.IBV_ACCESS_MW_BIND
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
    attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
    attr.ah_attr = path(context)
    return attr


def ready(context, qp, number=0):
    attr = attributes(context, number)
    qp.to_init(attr)
    qp.to_rtr(attr)
    qp.to_rts(attr)


def connect(context, a, b):
    ready(context, a, b.qp_num)
    ready(context, b, a.qp_num)


def region(pd, text=b"", length=4096):
    made = MR(pd, length, RIGHTS)
    if text:
        made.write(text.decode(), len(text))
    return made


def piece(of, length, offset=0):
    return SGE(of.buf + offset, length, of.lkey)


def until(look):
    deadline = time.monotonic() + PATIENCE
    while (found := look()) is None:
        if time.monotonic() > deadline:
            raise TimeoutError("it does not come")
    return found


def complete(cq, *expected):
    """The next completions are those of these requests, and have succeeded."""
    found = []

    def look():
        count, completions = cq.poll(1)
        return completions[0] if count else None
    for _ in expected:
        found.append(until(look))
        assert found[-1].status == e.IBV_WC_SUCCESS, found[-1]
    assert sorted(one.wr_id for one in found) == sorted(expected), found
    return {one.wr_id: one for one in found}
