// SPDX-License-Identifier: BSD-2-Clause
//
// Every verb on what a forked child has of its parent: those that would do something are refused,
// none of them waits, and whatever the child takes apart is its own copy.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <verbatim/map.h>
#include <verbatim/query.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "tests/shm/fork_family.hpp"
#include "tests/support/forked_child.hpp"
#include "tests/support/log_watch.hpp"

#ifdef VBT_UNDER_THREAD_SANITIZER
#define SKIP_WITHOUT_THREADS_IN_CHILDREN() \
  GTEST_SKIP() << "ThreadSanitizer has no threads in the child of a process with threads"
#else
#define SKIP_WITHOUT_THREADS_IN_CHILDREN()
#endif

namespace verbatim::harness {
namespace {

int answer(const void* object) { return object == nullptr ? errno : 0; }
int minus_one(int result) { return result != 0 ? errno : 0; }

int post(ibv_qp* qp, ibv_send_wr& wr) {
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp, &wr, &bad);
  return bad == &wr ? error : -1;
}
int to_error(Family& of, const QpInfo& info) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  return ibv_modify_qp(of.own.qp(info.id), &attr, IBV_QP_STATE);
}

int is_reset(Family& of, const QpInfo& info) {
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  const int error = ibv_query_qp(of.own.qp(info.id), &attr, IBV_QP_STATE, &init);
  return error == 0 && attr.qp_state != IBV_QPS_RESET ? -1 : error;
}

struct Verb {
  const char* name;
  int (*call)(Family&);  ///< an errno
};

constexpr Verb kDoers[] = {
    {"ibv_post_send",
     [](Family& of) {
       ibv_send_wr wr{};
       wr.sg_list = &of.piece;
       wr.num_sge = 1;
       wr.opcode = IBV_WR_SEND;
       ibv_send_wr* bad = nullptr;
       const int error = ibv_post_send(of.qp, &wr, &bad);
       return bad == &wr ? error : -1;
     }},
    {"ibv_post_recv",
     [](Family& of) {
       ibv_recv_wr wr{};
       wr.sg_list = &of.piece;
       wr.num_sge = 1;
       ibv_recv_wr* bad = nullptr;
       const int error = ibv_post_recv(of.qp, &wr, &bad);
       return bad == &wr ? error : -1;
     }},
    {"ibv_post_srq_recv",
     [](Family& of) {
       ibv_recv_wr wr{};
       wr.sg_list = &of.piece;
       wr.num_sge = 1;
       ibv_recv_wr* bad = nullptr;
       const int error = ibv_post_srq_recv(of.srq, &wr, &bad);
       return bad == &wr ? error : -1;
     }},
    {"ibv_wr_complete",
     [](Family& of) {
       ibv_qp_ex* const qp = ibv_qp_to_qp_ex(of.qp);
       ibv_wr_start(qp);
       ibv_wr_send(qp);
       ibv_wr_set_sge(qp, of.piece.lkey, of.piece.addr, 64);
       return ibv_wr_complete(qp);
     }},
    {"ibv_poll_cq",
     [](Family& of) {
       ibv_wc wc;
       return -ibv_poll_cq(of.cq, 1, &wc);
     }},
    {"ibv_start_poll",
     [](Family& of) {
       ibv_poll_cq_attr attr{};
       return ibv_start_poll(of.cursor, &attr);
     }},
    {"ibv_req_notify_cq", [](Family& of) { return ibv_req_notify_cq(of.cq, 0); }},
    {"ibv_get_cq_event",
     [](Family& of) {
       ibv_cq* cq = nullptr;
       void* given = nullptr;
       return minus_one(ibv_get_cq_event(of.channel, &cq, &given));
     }},
    {"ibv_get_async_event",
     [](Family& of) {
       ibv_async_event event;
       return minus_one(ibv_get_async_event(of.context, &event));
     }},
    {"ibv_alloc_pd", [](Family& of) { return answer(ibv_alloc_pd(of.context)); }},
    {"ibv_alloc_td",
     [](Family& of) {
       ibv_td_init_attr attr{};
       return answer(ibv_alloc_td(of.context, &attr));
     }},
    {"ibv_alloc_parent_domain",
     [](Family& of) {
       ibv_parent_domain_init_attr attr{};
       attr.pd = of.pd;
       return answer(ibv_alloc_parent_domain(of.context, &attr));
     }},
    {"ibv_open_xrcd",
     [](Family& of) {
       ibv_xrcd_init_attr attr{};
       attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
       attr.fd = -1;
       attr.oflags = O_CREAT;
       return answer(ibv_open_xrcd(of.context, &attr));
     }},
    {"ibv_reg_mr",
     [](Family& of) {
       return answer(ibv_reg_mr(of.pd, of.own.bytes(of.region.id), 64, IBV_ACCESS_LOCAL_WRITE));
     }},
    {"ibv_rereg_mr",
     [](Family& of) {
       return minus_one(ibv_rereg_mr(of.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                                     IBV_ACCESS_LOCAL_WRITE));
     }},
    {"ibv_alloc_null_mr", [](Family& of) { return answer(ibv_alloc_null_mr(of.pd)); }},
    {"ibv_advise_mr",
     [](Family& of) {
       return ibv_advise_mr(of.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &of.piece, 1);
     }},
    {"ibv_alloc_mw", [](Family& of) { return answer(ibv_alloc_mw(of.pd, IBV_MW_TYPE_2)); }},
    {"ibv_bind_mw",
     [](Family& of) {
       ibv_mw_bind bind{};
       bind.bind_info = {of.mr, of.region.address, 64, IBV_ACCESS_REMOTE_READ};
       return ibv_bind_mw(of.qp, of.window, &bind);
     }},
    {"ibv_memcpy_to_dm",
     [](Family& of) {
       const char bytes[8] = {};
       return ibv_memcpy_to_dm(of.dm.get(), 0, bytes, sizeof bytes);
     }},
    {"ibv_memcpy_from_dm",
     [](Family& of) {
       char bytes[8];
       return ibv_memcpy_from_dm(bytes, of.dm.get(), 0, sizeof bytes);
     }},
    {"ibv_create_ah",
     [](Family& of) {
       ibv_ah_attr attr{};
       attr.is_global = 1;
       attr.port_num = 1;
       attr.grh.dgid = of.own.session()->gid;
       return answer(ibv_create_ah(of.pd, &attr));
     }},
    {"ibv_create_comp_channel",
     [](Family& of) { return answer(ibv_create_comp_channel(of.context)); }},
    {"ibv_create_cq",
     [](Family& of) { return answer(ibv_create_cq(of.context, 8, nullptr, nullptr, 0)); }},
    {"ibv_create_cq_ex",
     [](Family& of) {
       ibv_cq_init_attr_ex attr{};
       attr.cqe = 8;
       return answer(ibv_create_cq_ex(of.context, &attr));
     }},
    {"ibv_resize_cq", [](Family& of) { return ibv_resize_cq(of.cq, 1024); }},
    {"ibv_modify_cq",
     [](Family& of) {
       ibv_modify_cq_attr attr{};
       attr.attr_mask = IBV_CQ_ATTR_MODERATE;
       attr.moderate = {2, 10};
       return ibv_modify_cq(of.cq, &attr);
     }},
    {"ibv_create_comp_cntr",
     [](Family& of) {
       ibv_comp_cntr_init_attr attr{};
       return answer(ibv_create_comp_cntr(of.context, &attr));
     }},
    {"ibv_set_comp_cntr", [](Family& of) { return ibv_set_comp_cntr(of.counter.get(), 1); }},
    {"ibv_inc_comp_cntr", [](Family& of) { return ibv_inc_comp_cntr(of.counter.get(), 1); }},
    {"ibv_qp_attach_comp_cntr",
     [](Family& of) {
       ibv_qp_attach_comp_cntr_attr attr{0, IBV_QP_ATTACH_COMP_CNTR_OP_RECV};
       return ibv_qp_attach_comp_cntr(of.own.qp(of.counted.id), of.counter.get(), &attr);
     }},
    {"ibv_create_srq",
     [](Family& of) {
       ibv_srq_init_attr attr{};
       attr.attr = {16, 1, 0};
       return answer(ibv_create_srq(of.pd, &attr));
     }},
    {"ibv_modify_srq",
     [](Family& of) {
       ibv_srq_attr attr{};
       attr.srq_limit = 1;
       return ibv_modify_srq(of.srq, &attr, IBV_SRQ_LIMIT);
     }},
    {"ibv_create_qp",
     [](Family& of) {
       ibv_qp_init_attr attr{};
       attr.send_cq = attr.recv_cq = of.cq;
       attr.cap = {1, 1, 1, 1, 0};
       attr.qp_type = IBV_QPT_RC;
       return answer(ibv_create_qp(of.pd, &attr));
     }},
    {"ibv_create_qp_ex",
     [](Family& of) {
       ibv_qp_init_attr_ex attr{};
       attr.qp_type = IBV_QPT_XRC_RECV;
       attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
       attr.xrcd = of.xrcd;
       return answer(ibv_create_qp_ex(of.context, &attr));
     }},
    {"ibv_modify_qp",
     [](Family& of) {
       ibv_qp_attr attr{};
       attr.qp_state = IBV_QPS_ERR;
       return ibv_modify_qp(of.qp, &attr, IBV_QP_STATE);
     }},
    {"vbt_map_remote",
     [](Family& of) {
       void* mapped = nullptr;
       return vbt_map_remote(of.qp, 1, 0, 8, IBV_ACCESS_REMOTE_READ, &mapped);
     }},
    {"ibv_query_ece",
     [](Family& of) {
       ibv_ece ece{};
       return ibv_query_ece(of.qp, &ece);
     }},
    {"ibv_set_ece",
     [](Family& of) {
       ibv_ece ece{};
       return ibv_set_ece(of.qp, &ece);
     }},
};

/// What others than RC have.
constexpr Verb kOthers[] = {
    {"ibv_post_send of a datagram",
     [](Family& of) {
       ibv_send_wr wr{};
       wr.sg_list = &of.piece;
       wr.num_sge = 1;
       wr.opcode = IBV_WR_SEND;
       wr.wr.ud = {of.own.ah(of.ah), of.letters.qpn, kQkey};
       return post(of.own.qp(of.letters.id), wr);
     }},
    {"ibv_post_send over XRC",
     [](Family& of) {
       ibv_send_wr wr{};
       wr.sg_list = &of.piece;
       wr.num_sge = 1;
       wr.opcode = IBV_WR_SEND;
       wr.qp_type.xrc.remote_srqn = of.shared.srqn;
       return post(of.own.qp(of.sender.id), wr);
     }},
    {"ibv_post_recv of a datagram",
     [](Family& of) {
       ibv_recv_wr wr{};
       wr.sg_list = &of.piece;
       wr.num_sge = 1;
       ibv_recv_wr* bad = nullptr;
       const int error = ibv_post_recv(of.own.qp(of.letters.id), &wr, &bad);
       return bad == &wr ? error : -1;
     }},
    {"ibv_post_srq_recv of XRC",
     [](Family& of) {
       ibv_recv_wr wr{};
       wr.sg_list = &of.piece;
       wr.num_sge = 1;
       ibv_recv_wr* bad = nullptr;
       const int error = ibv_post_srq_recv(of.own.srq(of.shared.id), &wr, &bad);
       return bad == &wr ? error : -1;
     }},
    {"ibv_wr_complete of a datagram",
     [](Family& of) {
       ibv_qp_ex* const qp = ibv_qp_to_qp_ex(of.own.qp(of.letters.id));
       ibv_wr_start(qp);
       ibv_wr_send(qp);
       ibv_wr_set_ud_addr(qp, of.own.ah(of.ah), of.letters.qpn, kQkey);
       ibv_wr_set_sge(qp, of.piece.lkey, of.piece.addr, 64);
       return ibv_wr_complete(qp);
     }},
    {"ibv_wr_complete over XRC",
     [](Family& of) {
       ibv_qp_ex* const qp = ibv_qp_to_qp_ex(of.own.qp(of.sender.id));
       ibv_wr_start(qp);
       ibv_wr_send(qp);
       ibv_wr_set_xrc_srqn(qp, of.shared.srqn);
       ibv_wr_set_sge(qp, of.piece.lkey, of.piece.addr, 64);
       return ibv_wr_complete(qp);
     }},
    {"ibv_modify_qp of UD", [](Family& of) { return to_error(of, of.letters); }},
    {"ibv_modify_qp of XRC_SEND", [](Family& of) { return to_error(of, of.sender); }},
    {"ibv_modify_qp of XRC_RECV", [](Family& of) { return to_error(of, of.target); }},
    {"ibv_modify_qp of what was opened", [](Family& of) { return to_error(of, of.opened); }},
    {"ibv_open_qp",
     [](Family& of) {
       ibv_qp_open_attr attr{};
       attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
       attr.qp_num = of.target.qpn;
       attr.xrcd = of.xrcd;
       attr.qp_type = IBV_QPT_XRC_RECV;
       return answer(ibv_open_qp(of.context, &attr));
     }},
    {"ibv_create_srq_ex",
     [](Family& of) {
       ibv_srq_init_attr_ex attr{};
       attr.attr = {16, 1, 0};
       attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                        IBV_SRQ_INIT_ATTR_CQ;
       attr.srq_type = IBV_SRQT_XRC;
       attr.pd = of.pd;
       attr.xrcd = of.xrcd;
       attr.cq = of.cq;
       return answer(ibv_create_srq_ex(of.context, &attr));
     }},
    {"ibv_attach_mcast",
     [](Family& of) {
       ibv_gid other = kGroup;
       ++other.raw[15];
       return ibv_attach_mcast(of.own.qp(of.letters.id), &other, kGroupLid);
     }},
    {"ibv_reg_dm_mr",
     [](Family& of) {
       return answer(ibv_reg_dm_mr(of.pd, of.dm.get(), 0, 64,
                                   IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE));
     }},
    {"ibv_reg_dmabuf_mr",
     [](Family& of) {
       return answer(ibv_reg_dmabuf_mr(of.pd, 0, 4096, 0, STDERR_FILENO, IBV_ACCESS_LOCAL_WRITE));
     }},
};

/// These change nothing.
constexpr Verb kAskers[] = {
    {"ibv_query_device",
     [](Family& of) {
       ibv_device_attr attr;
       return ibv_query_device(of.context, &attr);
     }},
    {"ibv_query_port",
     [](Family& of) {
       ibv_port_attr attr;
       return ibv_query_port(of.context, 1, &attr);
     }},
    {"ibv_query_gid",
     [](Family& of) {
       ibv_gid gid;
       return minus_one(ibv_query_gid(of.context, 1, 0, &gid));
     }},
    {"ibv_query_qp", [](Family& of) { return is_reset(of, of.info); }},
    {"ibv_query_srq",
     [](Family& of) {
       ibv_srq_attr attr;
       return ibv_query_srq(of.srq, &attr);
     }},
    {"ibv_query_qp of UD", [](Family& of) { return is_reset(of, of.letters); }},
    {"ibv_query_qp of XRC_SEND", [](Family& of) { return is_reset(of, of.sender); }},
    {"ibv_query_qp of XRC_RECV", [](Family& of) { return is_reset(of, of.target); }},
    {"ibv_query_qp of what was opened", [](Family& of) { return is_reset(of, of.opened); }},
    {"ibv_query_pkey",
     [](Family& of) {
       __be16 key = 0;
       const int error = minus_one(ibv_query_pkey(of.context, 1, 0, &key));
       return error == 0 && key != 0xffff ? -1 : error;
     }},
    {"ibv_query_rt_values_ex",
     [](Family& of) {
       ibv_values_ex values{};
       values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
       const int error = ibv_query_rt_values_ex(of.context, &values);
       return error == 0 && (values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK) == 0 ? -1 : error;
     }},
    {"ibv_get_srq_num",
     [](Family& of) {
       std::uint32_t number = 0;
       const int error = ibv_get_srq_num(of.own.srq(of.shared.id), &number);
       return error == 0 && number != of.shared.srqn ? -1 : error;
     }},
    {"ibv_read_comp_cntr",
     [](Family& of) {
       std::uint64_t count = 0;
       const int error = ibv_read_comp_cntr(of.counter.get(), &count);
       return error == 0 && count != 7 ? -1 : error;
     }},
    {"vbt_query_mr",
     [](Family& of) {
       vbt_mr_attr attr{};
       return vbt_query_mr(of.mr, &attr, sizeof attr);
     }},
};

bool is_readable(int fd) {
  pollfd at{fd, POLLIN, 0};
  return ::poll(&at, 1, 0) == 1;
}

TEST(ForkVerbs, WhateverAChildDoesWithItsParentsObjectsIsRefused) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  const AllowedLog says_why("before fork()");
  Family parents;
  for (const Verb& verb : kDoers)
    EXPECT_EQ(run_in_child([&] { return verb.call(parents); }), EINVAL) << verb.name;
  EXPECT_EQ(LogWatch::instance()->complaints().size(), std::size(kDoers));
  parents.complete_one();
}

TEST(ForkVerbs, WhateverAChildDoesWithItsParentsOtherTransportsIsRefused) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  const AllowedLog says_why("before fork()");
  Family parents;
  for (const Verb& verb : kOthers)
    EXPECT_EQ(run_in_child([&] { return verb.call(parents); }), EINVAL) << verb.name;
  EXPECT_EQ(LogWatch::instance()->complaints().size(), std::size(kOthers));
  parents.complete_one();
  parents.complete_others();
}

/// A queue pair of a group cannot go before it has left.
TEST(ForkVerbs, AChildThatLeavesAGroupLeavesItsParentInIt) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  const AllowedLog says_so("is not in this group");
  Family parents;
  EXPECT_EQ(run_in_child([&] {
              ibv_qp* const qp = parents.own.qp(parents.letters.id);
              if (ibv_detach_mcast(qp, &kGroup, kGroupLid) != 0) return 1;
              return ibv_detach_mcast(qp, &kGroup, kGroupLid) == EINVAL ? 0 : 2;
            }),
            0);
  parents.complete_others();
}

TEST(ForkVerbs, WhateverAChildAsksOfThemIsAnswered) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  Family parents;
  for (const Verb& verb : kAskers)
    EXPECT_EQ(run_in_child([&] { return verb.call(parents); }), 0) << verb.name;
}

TEST(ForkVerbs, TheLogSaysItOnceForEachContextAndNamesTheVerbThatWasFirst) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  const AllowedLog says_why("before fork()");
  Family parents, others;
  EXPECT_EQ(run_in_child([&] {
              for (Family* family : {&parents, &others}) {
                ibv_wc wc;
                while (ibv_poll_cq(family->cq, 1, &wc) == 0) continue;
                for (const Verb& verb : kDoers) (void)verb.call(*family);
              }
              return 0;
            }),
            0);
  const auto lines = LogWatch::instance()->complaints();
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [&](const std::string& line) {
                            return line.find("ibv_poll_cq: ") != line.npos &&
                                   line.find(ibv_get_device_name(parents.context->device)) !=
                                       line.npos &&
                                   line.find("open the device again") != line.npos;
                          }),
            2);
  EXPECT_EQ(lines.size(), 2u);
}

TEST(ForkVerbs, AChildThatPollsTheirDescriptorsIsNotKeptWaiting) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  Family parents;
  EXPECT_EQ(run_in_child([&] {
              const bool wakes =
                  is_readable(parents.channel->fd) && is_readable(parents.context->async_fd);
              return wakes ? 0 : 1;
            }),
            0);
  EXPECT_FALSE(is_readable(parents.channel->fd));
  EXPECT_FALSE(is_readable(parents.context->async_fd));
}

/// One event is the parent's to acknowledge, and another waits to be fetched.
TEST(ForkVerbs, AChildThatTakesEverythingApartTakesNothingFromItsParent) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  auto parents = std::make_unique<Family>();
  parents->complete_one();
  ibv_cq* fetched = nullptr;
  void* given = nullptr;
  ASSERT_EQ(ibv_get_cq_event(parents->channel, &fetched, &given), 0);
  parents->complete_one();
  ASSERT_TRUE(is_readable(parents->channel->fd));
  EXPECT_EQ(run_in_child([&] {
              parents.reset();
              return 0;
            }),
            0);
  EXPECT_TRUE(is_readable(parents->channel->fd));
  ASSERT_EQ(ibv_get_cq_event(parents->channel, &fetched, &given), 0);
  EXPECT_EQ(fetched, parents->cq);
  ibv_ack_cq_events(fetched, 2);
  parents->complete_one();
  parents->complete_others();
}

/// Nothing of the parent's is touched: the memory is the child's, and no grandchild's.
TEST(ForkVerbs, AChildMayAllocateDeviceMemoryOnItsParentsContext) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  const AllowedLog says_why("before fork()");
  Family parents;
  EXPECT_EQ(run_in_child([&] {
              ibv_alloc_dm_attr attr{};
              attr.length = 64;
              ibv_dm* const own = ibv_alloc_dm(parents.context, &attr);
              if (own == nullptr) return 1;
              const char bytes[8] = "child's";
              char back[8] = {};
              if (ibv_memcpy_to_dm(own, 8, bytes, 8) != 0) return 2;
              if (ibv_memcpy_from_dm(back, own, 8, 8) != 0 || std::memcmp(bytes, back, 8) != 0)
                return 3;
              if (ibv_reg_dm_mr(parents.pd, own, 0, 64, IBV_ACCESS_ZERO_BASED) != nullptr) return 4;
              if (ibv_memcpy_to_dm(parents.dm.get(), 0, bytes, 8) != EINVAL) return 5;
              const pid_t grandchild = ::fork();
              if (grandchild == 0) ::_exit(ibv_memcpy_to_dm(own, 8, back, 8) == EINVAL ? 0 : 1);
              int status = 1;
              if (::waitpid(grandchild, &status, 0) != grandchild || status != 0) return 6;
              return ibv_free_dm(own) == 0 ? 0 : 7;
            }),
            0);
  parents.complete_one();
}

/// man ibv_close_device: what was made of it may be left.
TEST(ForkVerbs, AChildThatClosesItsParentsDeviceTakesNothingFromItsParent) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  const AllowedLog of_the_group("an object whose device was closed");
  auto parents = std::make_unique<Family>();
  parents->complete_one();
  EXPECT_EQ(run_in_child([&] {
              if (ibv_close_device(parents->own.session()->context.release()) != 0) return 1;
              parents.reset();
              return 0;
            }),
            0);
  parents->complete_one();
  parents->complete_others();
}

TEST(ForkVerbs, AContextThatAChildOpensOnItsParentsDeviceIsInService) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  const AllowedLog says_why("before fork()");
  Family parents;
  EXPECT_EQ(run_in_child([&] {
              const ContextHandle own(ibv_open_device(parents.context->device));
              const ChannelHandle channel(ibv_create_comp_channel(own.get()));
              const CqHandle cq(ibv_create_cq(own.get(), 8, nullptr, channel.get(), 0));
              if (cq == nullptr) return 1;
              ibv_wc wc;
              if (ibv_poll_cq(parents.cq, 1, &wc) >= 0) return 2;
              if (ibv_poll_cq(cq.get(), 1, &wc) != 0) return 3;
              return ibv_req_notify_cq(cq.get(), 0) == 0 ? 0 : 4;
            }),
            0);
  parents.complete_one();
}

TEST(ForkVerbs, AChildsOwnObjectsOutliveThoseOfItsParent) {
  SKIP_WITHOUT_THREADS_IN_CHILDREN();
  auto parents = std::make_unique<Family>();
  EXPECT_EQ(run_in_child([&] {
              Family childs;
              childs.complete_one();
              parents.reset();
              const std::int32_t cq = childs.info.send_cq;
              if (childs.own.take_event(cq, kDefaultWaitMs) != cq) return 1;
              childs.complete_one();
              return childs.own.take_event(cq, kDefaultWaitMs) == cq ? 0 : 2;
            }),
            0);
  parents->complete_one();
}

}  // namespace
}  // namespace verbatim::harness
