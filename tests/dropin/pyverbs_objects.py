# SPDX-License-Identifier: BSD-2-Clause
"""pyverbs on libibverbs.so.1: every kind of object is made, and bytes move."""

import gc
import os

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel, CqInitAttrEx, CQEX
from pyverbs.device import Context, get_device_list
from pyverbs.mr import DMMR, MR, MW
from pyverbs.pd import PD, ParentDomain, ParentDomainInitAttr
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr, QPInitAttrEx, QPEx
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr, SrqInitAttrEx
from pyverbs.wr import SGE, RecvWR, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr
from pyverbs.dmabuf import DmaBuf  # noqa: F401  (only that it loads)
import pyverbs.device as device
import pyverbs.enums as e

ALL = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC


def make_qp(pd, cq, srq=None):
    cap = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=1, max_recv_sge=1)
    return QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=cap, srq=srq, sq_sig_all=1), QPAttr(port_num=1))


def connect(qp, other, lid, gid):
    route = GlobalRoute(dgid=gid, sgid_index=0)
    attr = QPAttr(port_num=1, path_mtu=e.IBV_MTU_1024)
    attr.dest_qp_num = other.qp_num
    attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
    attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
    attr.qp_access_flags = ALL
    attr.ah_attr = AHAttr(port_num=1, dlid=lid, is_global=1, gr=route)
    qp.to_init(attr)
    qp.to_rtr(attr)
    qp.to_rts(attr)


def poll_one(cq, channel=None):
    if channel is not None:
        channel.get_cq_event(cq)
        cq.ack_events(1)
    while True:
        count, completions = cq.poll(1)
        if count:
            assert completions[0].status == e.IBV_WC_SUCCESS, completions[0]
            return completions[0]


def move_bytes(context):
    pd = PD(context)
    channel = CompChannel(context)
    cq = CQ(context, 64, None, channel, 0)
    port = context.query_port(1)
    gid = context.query_gid(1, 0)
    a, b = make_qp(pd, cq), make_qp(pd, cq)
    connect(a, b, port.lid, gid)
    connect(b, a, port.lid, gid)
    source, target = MR(pd, 4096, ALL), MR(pd, 4096, ALL)
    source.write("Verbatim" * 8, 64)
    b.post_recv(RecvWR(wr_id=1, sg=[SGE(target.buf, 4096, target.lkey)], num_sge=1))
    cq.req_notify()
    a.post_send(SendWR(wr_id=2, opcode=e.IBV_WR_SEND, num_sge=1, sg=[SGE(source.buf, 64, source.lkey)]))
    seen = {poll_one(cq, channel).wr_id, poll_one(cq).wr_id}
    assert seen == {1, 2}, seen
    assert target.read(64, 0) == b"Verbatim" * 8
    write = SendWR(wr_id=3, opcode=e.IBV_WR_RDMA_WRITE, num_sge=1, sg=[SGE(source.buf, 64, source.lkey)])
    write.set_wr_rdma(target.rkey, target.buf + 1024)
    a.post_send(write)
    assert poll_one(cq).wr_id == 3
    assert target.read(64, 1024) == b"Verbatim" * 8


def make_objects(context):
    pd = PD(context)
    parent = ParentDomain(context, attr=ParentDomainInitAttr(pd=pd))
    cq = CQ(context, 16)
    extended = CQEX(context, CqInitAttrEx(cqe=16, wc_flags=e.IBV_WC_EX_WITH_BYTE_LEN))
    srq = SRQ(pd, SrqInitAttr(SrqAttr(max_wr=8)))
    xrcd = XRCD(context, XRCDInitAttr(e.IBV_XRCD_INIT_ATTR_FD | e.IBV_XRCD_INIT_ATTR_OFLAGS, os.O_CREAT, -1))
    shared = SrqInitAttrEx(max_wr=8, max_sge=1)
    shared.comp_mask = e.IBV_SRQ_INIT_ATTR_TYPE | e.IBV_SRQ_INIT_ATTR_XRCD | e.IBV_SRQ_INIT_ATTR_CQ | e.IBV_SRQ_INIT_ATTR_PD
    shared.srq_type, shared.xrcd, shared.cq, shared.pd = e.IBV_SRQT_XRC, xrcd, cq, pd
    xsrq = SRQ(context, shared)
    window = MW(pd, e.IBV_MW_TYPE_1)
    memory = device.DM(context, device.AllocDmAttr(length=4096)) if context.query_device_ex().max_dm_size else None
    region = DMMR(pd, 4096, e.IBV_ACCESS_ZERO_BASED | e.IBV_ACCESS_LOCAL_WRITE, dm=memory, offset=0) if memory else None
    with_srq = make_qp(pd, cq, srq)
    init = QPInitAttrEx(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(4, 4, 1, 1), pd=pd,
                        comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, send_ops_flags=e.IBV_QP_EX_WITH_SEND)
    with_calls = QPEx(context, init)
    for made in (with_calls, with_srq, region, memory, window, xsrq, xrcd, srq, extended, cq, parent, pd):
        if made is not None:
            made.close()


def main():
    assert any(one.name == b"shm0" for one in get_device_list())
    context = Context(name="shm0")
    attributes = context.query_device()
    assert attributes.vendor_id != 0 and attributes.atomic_caps == e.IBV_ATOMIC_HCA
    for entry in context.query_gid_table(16):
        assert entry.gid_index < 16
    assert device.Context.query_gid_type(context, 1, 0) == e.IBV_GID_TYPE_SYSFS_IB_ROCE_V1
    move_bytes(context)
    make_objects(context)
    gc.collect()
    context.close()


main()
