# SPDX-License-Identifier: BSD-2-Clause
"""pyverbs in two containers that share the folder of a fabric, and nothing else: `pyverbs_containers.py SIDE FOLDER [until-killed]`.

The sides tell each other by files there who they are; then `a` sends and `b` answers, each from memory of its own. With
`until-killed` both go on until the other one is gone, and say how that was told.
"""

import os
import sys
import time
from pathlib import Path

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ, cqe_status_to_str
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR
import pyverbs.enums as e

LENGTH = 1 << 20


def wait_for(what):
    deadline = time.monotonic() + 30
    while (found := what()) is None:
        if time.monotonic() > deadline:
            raise TimeoutError("the other side does not come")
        time.sleep(0.001)
    return found


def any_completion(cq):
    def look():
        count, completions = cq.poll(1)
        return completions[0] if count else None
    return wait_for(look)


def completion(cq):
    done = any_completion(cq)
    assert done.status == e.IBV_WC_SUCCESS, done
    return done.wr_id


def exchange_until_killed(context, qp, cq, receive, send, first, running):
    """Until a completion says that it failed, and an event that the queue pair did."""
    if first:
        qp.post_send(send)
    rounds = 0
    while (done := any_completion(cq)).status == e.IBV_WC_SUCCESS:
        if done.wr_id != 1:
            continue
        qp.post_recv(receive)
        qp.post_send(send)
        rounds += 1
        if rounds == 10:
            running.touch()
    event = context.get_async_event()
    assert event.event_type == e.IBV_EVENT_QP_FATAL, event
    event.ack()
    print(f"after some rounds: {cqe_status_to_str(done.status)}")


def main():
    side, folder = sys.argv[1], Path(sys.argv[2])
    context = Context(name="shm0")
    pd = PD(context)
    cq = CQ(context, 16)
    cap = QPCap(max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1)
    qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=cap, sq_sig_all=1), QPAttr(port_num=1))

    mine = folder / f"{side}.part"
    mine.write_text(str(qp.qp_num))
    mine.rename(folder / f"{side}.number")
    other = folder / ("b.number" if side == "a" else "a.number")
    number = int(wait_for(lambda: other.read_text() if other.exists() else None))

    attr = QPAttr(port_num=1, path_mtu=e.IBV_MTU_1024)
    attr.dest_qp_num = number
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
    attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
    attr.qp_access_flags = e.IBV_ACCESS_LOCAL_WRITE
    attr.ah_attr = AHAttr(port_num=1, dlid=context.query_port(1).lid, is_global=1,
                          gr=GlobalRoute(dgid=context.query_gid(1, 0), sgid_index=0))
    qp.to_init(attr)
    region = MR(pd, LENGTH, e.IBV_ACCESS_LOCAL_WRITE)
    receive = RecvWR(wr_id=1, sg=[SGE(region.buf, LENGTH, region.lkey)], num_sge=1)
    send = SendWR(wr_id=2, opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(region.buf, LENGTH, region.lkey)])
    qp.post_recv(receive)
    qp.to_rtr(attr)
    qp.to_rts(attr)
    if sys.argv[3:] == ["until-killed"]:
        exchange_until_killed(context, qp, cq, receive, send, side == "a", folder / f"{side}.running")
    elif side == "a":
        out = MR(pd, LENGTH, e.IBV_ACCESS_LOCAL_WRITE)
        out.write("from a container" * 4, 64)
        qp.post_send(SendWR(wr_id=2, opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(out.buf, LENGTH, out.lkey)]))
        assert {completion(cq), completion(cq)} == {1, 2}
        assert region.read(64, 0) == b"from a container" * 4
        (folder / "done").touch()
        print("exchanged by process", os.getpid())
    else:
        assert completion(cq) == 1
        qp.post_send(send)
        assert completion(cq) == 2
        wait_for(lambda: True if (folder / "done").exists() else None)
    context.close()


main()
