# SPDX-License-Identifier: BSD-2-Clause
"""pyverbs on libibverbs.so.1: what each kind of object is for, done once: memory, queues, domains, events, imported objects."""

import os

from pyverbs.addr import AH
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import DM, AllocDmAttr, Context
from pyverbs.mr import DMMR, MR, MW, MWBind, MWBindInfo
from pyverbs.pd import PD, ParentDomain, ParentDomainContext, ParentDomainInitAttr
from pyverbs.qp import QPAttr
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR
import pyverbs.enums as e
import pyverbs.mem_alloc as memory

from pyverbs_queues import RIGHTS, classic, complete, connect, path, piece, ready, region, until

TEXT = b"Verbatim" * 4


def pair(context, pd, cq, kind=e.IBV_QPT_RC, srq=None):
    a, b = classic(pd, cq, kind), classic(pd, cq, kind, srq)
    connect(context, a, b)
    return a, b


def rdma(opcode, number, sge, key, address):
    request = SendWR(wr_id=number, opcode=opcode, num_sge=1, sg=[sge])
    request.set_wr_rdma(key, address)
    return request


def use_device_memory(context, pd, cq):
    """Reached by copies, and by keys as other memory."""
    device = DM(context, AllocDmAttr(length=4096))
    device.copy_to_dm(0, TEXT, len(TEXT))
    assert device.copy_from_dm(8, 8) == TEXT[8:16]
    reached = DMMR(pd, 4096, RIGHTS & ~e.IBV_ACCESS_MW_BIND | e.IBV_ACCESS_ZERO_BASED, dm=device, offset=0)
    reached.write("writing.", 8, 64)
    assert reached.read(8, 64) == b"writing."
    a, b = pair(context, pd, cq)
    target = region(pd)
    a.post_send(rdma(e.IBV_WR_RDMA_READ, 1, piece(target, len(TEXT)), reached.rkey, 0))
    complete(cq, 1)
    assert target.read(len(TEXT), 0) == TEXT
    a.post_send(rdma(e.IBV_WR_RDMA_WRITE, 2, SGE(0, 8, reached.lkey), target.rkey, target.buf + 1024))
    complete(cq, 2)
    assert target.read(8, 1024) == TEXT[:8]
    for made in (a, b, reached, device):
        made.close()


def use_regions_and_windows(context, pd, cq):
    a, b = pair(context, pd, cq)
    source, target = region(pd, TEXT), region(pd)
    window = MW(pd, e.IBV_MW_TYPE_1)
    b.bind_mw(window, MWBind(MWBindInfo(target, target.buf + 64, 64, e.IBV_ACCESS_REMOTE_WRITE), e.IBV_SEND_SIGNALED, 1))
    complete(cq, 1)
    a.post_send(rdma(e.IBV_WR_RDMA_WRITE, 2, piece(source, len(TEXT)), window.rkey, target.buf + 64))
    complete(cq, 2)
    assert target.read(len(TEXT), 64) == TEXT
    window.close()

    # The rights are taken away, and given back.
    other = PD(context)
    moved = region(pd)
    moved.rereg(e.IBV_REREG_MR_CHANGE_ACCESS, None, 0, 0, e.IBV_ACCESS_LOCAL_WRITE)
    moved.rereg(e.IBV_REREG_MR_CHANGE_PD | e.IBV_REREG_MR_CHANGE_ACCESS, other, 0, 0, RIGHTS)
    moved.close()
    other.close()
    implicit = MR(pd, 0, RIGHTS & ~e.IBV_ACCESS_MW_BIND | e.IBV_ACCESS_ON_DEMAND, implicit=True) if has_implicit_odp(context) else None
    if implicit is not None:
        implicit.close()
    for made in (a, b):
        made.close()


def has_implicit_odp(context):
    return context.query_device_ex().odp_caps.general_caps & e.IBV_ODP_SUPPORT_IMPLICIT != 0


def page_on_demand(context, pd, cq):
    caps = context.query_device_ex().odp_caps
    assert caps.general_caps & e.IBV_ODP_SUPPORT and caps.rc_odp_caps & e.IBV_ODP_SUPPORT_WRITE
    demanded = MR(pd, 1 << 20, RIGHTS & ~e.IBV_ACCESS_MW_BIND | e.IBV_ACCESS_ON_DEMAND)
    whole = [SGE(demanded.buf, 1 << 20, demanded.lkey)]
    for advice in (e._IBV_ADVISE_MR_ADVICE_PREFETCH, e._IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, e._IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT):
        pd.advise_mr(advice, 0, whole)
        pd.advise_mr(advice, e._IBV_ADVISE_MR_FLAG_FLUSH, whole)
    a, b = pair(context, pd, cq)
    source = region(pd, TEXT)
    a.post_send(rdma(e.IBV_WR_RDMA_WRITE, 1, piece(source, len(TEXT)), demanded.rkey, demanded.buf + 4096))
    complete(cq, 1)
    assert demanded.read(len(TEXT), 4096) == TEXT
    for made in (a, b, demanded):
        made.close()


def use_shared_queue(context, pd, cq):
    """It says that it runs low, and is the queue of two queue pairs."""
    srq = SRQ(pd, SrqInitAttr(SrqAttr(max_wr=8)))
    source, target = region(pd, TEXT), region(pd)
    senders = [pair(context, pd, cq, srq=srq) for _ in range(2)]
    for number in (1, 2):
        srq.post_recv(RecvWR(wr_id=number, num_sge=1, sg=[piece(target, 1024, 1024 * number)]))
    srq.modify(SrqAttr(max_wr=8, srq_limit=2), e.IBV_SRQ_LIMIT)
    assert srq.query().srq_limit == 2
    for number, (a, _) in enumerate(senders):
        a.post_send(SendWR(wr_id=10 + number, opcode=e.IBV_WR_SEND, num_sge=1, sg=[piece(source, len(TEXT))]))
        complete(cq, 1 + number, 10 + number)
        assert target.read(len(TEXT), 1024 * (1 + number)) == TEXT
    event = context.get_async_event()
    assert event.event_type == e.IBV_EVENT_SRQ_LIMIT_REACHED
    event.ack()
    for a, b in senders:
        a.close()
        b.close()
    srq.close()


def send_datagram(context, pd, cq):
    """To an address of our own, and back to the one that the message names."""
    a, b = (classic(pd, cq, e.IBV_QPT_UD) for _ in range(2))
    for one in (a, b):
        ready(context, one)
    source, target = region(pd, TEXT), region(pd)
    there = AH(pd, attr=path(context))
    b.post_recv(RecvWR(wr_id=1, num_sge=1, sg=[piece(target, 4096)]))
    request = SendWR(wr_id=2, opcode=e.IBV_WR_SEND, num_sge=1, sg=[piece(source, len(TEXT))])
    request.set_wr_ud(there, b.qp_num, 0x11)
    a.post_send(request)
    told = complete(cq, 1, 2)[1]
    assert told.src_qp == a.qp_num and target.read(len(TEXT), 40) == TEXT
    assert told.wc_flags & e.IBV_WC_GRH, "the first 40 bytes say where it came from"
    for made in (a, b, there):
        made.close()


def use_channel(context, pd):
    channel = CompChannel(context)
    cq = CQ(context, 16, None, channel, 0)
    a, b = pair(context, pd, cq)
    source, target = region(pd, TEXT), region(pd)
    cq.req_notify()
    a.post_send(rdma(e.IBV_WR_RDMA_WRITE, 1, piece(source, len(TEXT)), target.rkey, target.buf))
    channel.get_cq_event(cq)
    cq.ack_events(1)
    complete(cq, 1)
    cq.resize(64)
    assert cq.cqe >= 64
    # Only what is solicited tells who asks for that.
    cq.req_notify(True)
    b.post_recv(RecvWR(wr_id=2, num_sge=1, sg=[piece(target, 64)]))
    a.post_send(SendWR(wr_id=3, opcode=e.IBV_WR_SEND, num_sge=1, sg=[piece(source, 8)], send_flags=e.IBV_SEND_SIGNALED | e.IBV_SEND_SOLICITED))
    channel.get_cq_event(cq)
    cq.ack_events(1)
    complete(cq, 2, 3)
    for made in (a, b, cq, channel):
        made.close()


def use_parent_domain(context, pd):
    """The queues of its queue pairs lie in memory that Python gives."""
    given = []

    def give(_, __, size, alignment, ___):
        given.append(memory.posix_memalign(size, alignment))
        return given[-1]

    def take(_, __, address, ___):
        given.remove(address)
        memory.free(address)
    asked = ParentDomainContext(pd, give, take)
    domain = ParentDomain(context, ParentDomainInitAttr(pd=pd, pd_context=asked))
    cq = CQ(context, 16)
    a, b = pair(context, domain, cq)
    source, target = region(domain, TEXT), region(pd)
    a.post_send(rdma(e.IBV_WR_RDMA_WRITE, 1, piece(source, len(TEXT)), target.rkey, target.buf))
    complete(cq, 1)
    assert given, "nothing was asked of it"
    source.close()
    for made in (a, b, cq, domain):
        made.close()
    assert not given, "something was not given back"


def import_objects(context, pd):
    """Another context on the descriptor of this one, with handles to its objects."""
    again = Context(cmd_fd=os.dup(context.cmd_fd))
    domain = PD(again, handle=pd.handle)
    ours = region(pd, TEXT)
    theirs = MR(domain, handle=ours.handle)
    assert theirs.lkey == ours.lkey
    theirs.unimport()
    ours.close()
    device = DM(context, AllocDmAttr(length=4096))
    device.copy_to_dm(0, TEXT, len(TEXT))
    same = DM(again, handle=device.handle)
    assert same.copy_from_dm(0, len(TEXT)) == TEXT
    same.unimport()
    device.close()
    domain.unimport()
    again.close()


def turn_queue_pair(context, pd, cq):
    """Through its states and back, and asked what it is."""
    a, b = pair(context, pd, cq)
    attr, init = a.query(e.IBV_QP_STATE | e.IBV_QP_CAP)
    assert attr.qp_state == e.IBV_QPS_RTS and init.cap.max_send_wr >= 16
    b.post_recv(RecvWR(wr_id=1, num_sge=1, sg=[piece(region(pd), 64)]))
    b.modify(QPAttr(qp_state=e.IBV_QPS_ERR), e.IBV_QP_STATE)

    def flushed():
        count, completions = cq.poll(1)
        return completions[0] if count else None
    assert until(flushed).status == e.IBV_WC_WR_FLUSH_ERR
    b.modify(QPAttr(qp_state=e.IBV_QPS_RESET), e.IBV_QP_STATE)
    assert b.query(e.IBV_QP_STATE)[0].qp_state == e.IBV_QPS_RESET
    for made in (a, b):
        made.close()


def main():
    context = Context(name="shm0")
    pd = PD(context)
    cq = CQ(context, 64)
    use_device_memory(context, pd, cq)
    use_regions_and_windows(context, pd, cq)
    page_on_demand(context, pd, cq)
    use_shared_queue(context, pd, cq)
    send_datagram(context, pd, cq)
    use_channel(context, pd)
    use_parent_domain(context, pd)
    import_objects(context, pd)
    turn_queue_pair(context, pd, cq)
    cq.close()
    pd.close()
    context.close()


main()
