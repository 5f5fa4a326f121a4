// SPDX-License-Identifier: BSD-2-Clause
//
// What a process has of every kind of object when it forks.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "tests/support/endpoint.hpp"

namespace verbatim::harness {

inline constexpr ibv_gid kGroup{{0xff, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x4b}};
inline constexpr std::uint16_t kGroupLid = 0xc0f0;

/// One of everything, and a queue pair that is connected to itself.
struct Family {
  Endpoint own{std::make_shared<Session>()};
  RegionInfo region = own.allocate(MemoryKind::kMapped, 4096, kAllAccess);
  ibv_mr* mr = own.mr(region.id);
  ibv_sge piece{region.address, 64, region.lkey};
  QpInfo info = connected();
  ibv_qp* qp = own.qp(info.id);
  ibv_cq* cq = own.cq(info.send_cq);
  ibv_comp_channel* channel = cq->channel;
  ibv_cq_ex* cursor = with_cursor();
  ibv_srq* srq = own.srq(own.create_srq({}).id);
  ibv_mw* window = own.window(own.allocate_window(IBV_MW_TYPE_1).id);
  ibv_xrcd* xrcd = own.xrcd();
  std::int32_t ah = own.create_ah(info, 1);
  QpInfo letters = with_letters();
  QpInfo writer = of_transport(IBV_QPT_UD, 0);
  SrqInfo shared = own.create_srq(of_domain());
  QpInfo sender = of_transport(IBV_QPT_XRC_SEND, IBV_QP_EX_WITH_SEND);
  QpInfo target = reached_by_sender();
  QpInfo opened = own.open_qp(target.qpn);
  DmHandle dm{with_memory()};
  QpInfo counted = of_transport(IBV_QPT_RC, 0);
  CounterHandle counter{of_counted()};
  ibv_pd* pd = own.pd();
  ibv_context* context = own.context();

  ~Family() {
    own.detach(letters.id, kGroup, kGroupLid);
    own.destroy_qp(counted.id);  // else its counter is refused to go
  }

  QpInfo connected() {
    QpWish wish;
    wish.with_channel = 1;
    wish.send_ops = IBV_QP_EX_WITH_SEND;
    const QpInfo made = own.create_qp(wish);
    own.connect(made.id, made, {});
    return made;
  }
  QpInfo of_transport(ibv_qp_type type, std::uint64_t calls) {
    QpWish wish;
    wish.type = type;
    wish.send_ops = calls;
    return own.create_qp(wish);
  }
  /// Datagrams, of a group too.
  QpInfo with_letters() {
    const QpInfo made = of_transport(IBV_QPT_UD, IBV_QP_EX_WITH_SEND);
    own.connect(made.id, made, {});
    EXPECT_EQ(own.attach(made.id, kGroup, kGroupLid), 0);
    return made;
  }
  static SrqWish of_domain() {
    SrqWish wish;
    wish.xrc = 1;
    return wish;
  }
  QpInfo reached_by_sender() {
    const QpInfo made = of_transport(IBV_QPT_XRC_RECV, 0);
    own.connect(sender.id, made, {});
    own.connect(made.id, sender, {});
    return made;
  }
  ibv_dm* with_memory() {
    ibv_alloc_dm_attr attr{};
    attr.length = 64;
    return ibv_alloc_dm(own.context(), &attr);
  }
  ibv_comp_cntr* of_counted() {
    ibv_comp_cntr_init_attr attr{};
    ibv_comp_cntr* const made = ibv_create_comp_cntr(own.context(), &attr);
    ibv_qp_attach_comp_cntr_attr sends{0, IBV_QP_ATTACH_COMP_CNTR_OP_SEND};
    EXPECT_EQ(ibv_qp_attach_comp_cntr(own.qp(counted.id), made, &sends), 0);
    EXPECT_EQ(ibv_set_comp_cntr(made, 7), 0);
    return made;
  }
  ibv_cq_ex* with_cursor() {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 16;
    ibv_cq_ex* const made = ibv_create_cq_ex(own.context(), &attr);
    own.adopt_cq(ibv_cq_ex_to_cq(made));
    return made;
  }
  /// A completion and its event.
  void complete_one() {
    own.arm(info.send_cq, 0);
    own.post_receive(info.id, {receive(1, slice(region, 64, 64))});
    own.post_send(info.id, {send(2, slice(region, 0, 64))});
    own.poll(info.send_cq, 1, kDefaultWaitMs);
  }
  /// A datagram to the group, and a message over XRC.
  void complete_others() {
    if (own.state(writer.id) == IBV_QPS_RESET) own.connect(writer.id, letters, {});
    own.post_receive(letters.id, {receive(1, slice(region, 64, 64))});
    const std::int32_t group = own.create_multicast_ah(kGroup, kGroupLid);
    own.post_send(writer.id, {datagram(2, slice(region, 0, 8), group, 0xffffff, kQkey)});
    EXPECT_EQ(own.poll(writer.send_cq, 1, kDefaultWaitMs)[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(own.poll(letters.receive_cq, 1, kDefaultWaitMs)[0].byte_len, 40u + 8u);
    own.post_srq_receive(shared.id, {receive(3, slice(region, 64, 64))});
    Request request = send(4, slice(region, 0, 8));
    request.remote_srqn = shared.srqn;
    own.post_send(sender.id, {request});
    EXPECT_EQ(own.poll(sender.send_cq, 1, kDefaultWaitMs)[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(own.poll(shared.cq, 1, kDefaultWaitMs)[0].byte_len, 8u);
  }
};

}  // namespace verbatim::harness
