# SPDX-License-Identifier: BSD-2-Clause
"""pyverbs on libibverbs.so.1: every kind of object is made, and closed."""

import gc
import os

from pyverbs.cq import CQ, CqInitAttrEx, CQEX
from pyverbs.device import Context, get_device_list
from pyverbs.mr import DMMR, MW
from pyverbs.pd import PD, ParentDomain, ParentDomainInitAttr
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr, QPInitAttrEx, QPEx
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr, SrqInitAttrEx
from pyverbs.xrcd import XRCD, XRCDInitAttr
import pyverbs.device as device
import pyverbs.enums as e


def make_qp(pd, cq, srq=None):
    cap = QPCap(max_send_wr=16, max_recv_wr=16, max_send_sge=1, max_recv_sge=1)
    return QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=cap, srq=srq, sq_sig_all=1), QPAttr(port_num=1))


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
    make_objects(context)
    gc.collect()
    context.close()


main()
