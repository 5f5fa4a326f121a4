# SPDX-License-Identifier: BSD-2-Clause
"""pyverbs on libibverbs.so.1: what shm lacks is refused with EOPNOTSUPP, and what the caller gets wrong with rdma-core's errno."""

import errno

from pyverbs.cq import CQ
from pyverbs.device import DM, AllocDmAttr, Context
from pyverbs.flow import Flow, FlowAttr
from pyverbs.mr import MR, DmaBufMR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPCap, QPInitAttr
from pyverbs.srq import SRQ, SrqInitAttrEx
from pyverbs.wq import WQ, WQInitAttr
import pyverbs.enums as e

from pyverbs_queues import classic, region, with_calls


def refused(number, make, *arguments, **named):
    try:
        make(*arguments, **named)
    except PyverbsRDMAError as error:
        assert error.error_code == number, f"{make}{arguments}: {error}, not {errno.errorcode[number]}"
        return
    raise AssertionError(f"{make}{arguments} was not refused")


def lacks(context, pd, cq):
    lacking = errno.EOPNOTSUPP
    qp = classic(pd, cq)
    refused(lacking, Flow, qp, FlowAttr())
    refused(lacking, WQ, context, WQInitAttr(wq_pd=pd, wq_cq=cq))
    refused(lacking, classic, pd, cq, e.IBV_QPT_RAW_PACKET)
    refused(lacking, classic, pd, cq, e.IBV_QPT_DRIVER)
    refused(lacking, with_calls, context, pd, cq, e.IBV_QP_EX_WITH_TSO)
    matching = SrqInitAttrEx(max_wr=8, max_sge=1)
    matching.comp_mask = e.IBV_SRQ_INIT_ATTR_TYPE | e.IBV_SRQ_INIT_ATTR_TM | e.IBV_SRQ_INIT_ATTR_CQ | e.IBV_SRQ_INIT_ATTR_PD
    matching.srq_type, matching.cq, matching.pd, matching.max_num_tags, matching.max_ops = e.IBV_SRQT_TM, cq, pd, 4, 4
    refused(lacking, SRQ, context, matching)
    refused(lacking, Context, cmd_fd=0)  # of no device that this process has open
    qp.close()


def mistakes(context, pd, cq):
    too_many = 1 << 30
    refused(errno.EINVAL, CQ, context, too_many)
    refused(errno.EINVAL, cq.resize, too_many)
    refused(errno.EINVAL, QP, pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(too_many, 1, 1, 1)))
    refused(errno.EINVAL, MR, pd, 4096, e.IBV_ACCESS_REMOTE_WRITE)  # without LOCAL_WRITE
    refused(errno.EFAULT, MR, pd, 4096, e.IBV_ACCESS_LOCAL_WRITE, address=0x1000)
    refused(errno.EINVAL, DmaBufMR, pd, 4096, e.IBV_ACCESS_LOCAL_WRITE, dmabuf=0)
    refused(errno.ENOMEM, DM, context, AllocDmAttr(length=1 << 50))
    refused(errno.EINVAL, region(pd).rereg, 8)
    refused(errno.ENOENT, PD, context, handle=0xffffff)
    refused(errno.ENOENT, MR, pd, handle=0xffffff)
    memory = DM(context, AllocDmAttr(length=4096))
    refused(errno.EINVAL, memory.copy_to_dm, 0, b"seven..", 7)  # not whole words
    refused(errno.EINVAL, memory.copy_from_dm, 4096, 4)
    memory.close()


def main():
    context = Context(name="shm0")
    pd = PD(context)
    cq = CQ(context, 16)
    lacks(context, pd, cq)
    mistakes(context, pd, cq)
    cq.close()
    pd.close()
    context.close()


main()
