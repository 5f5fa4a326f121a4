// SPDX-License-Identifier: BSD-2-Clause
// What posting and polling small messages over shm really executes, instruction by instruction: one
// indirect call, the one of the header, and nothing else that leaves the function; no system call;
// and one locked instruction at most, since the queues' locks have become the polling thread's own.
// The child (this program again) connects two queue pairs of its own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <iostream>
#include <string>
#include <string_view>

#include "perf/codegen/trace.hpp"
#include "perf/support/process.hpp"
#include "perf/support/scratch_folder.hpp"
#include "perf/verbs/endpoint.hpp"

namespace verbatim::perf {
namespace {

/// More than BiasedLock::kStreak, and not where a line of credits begins (known_receives.hpp).
constexpr int kWarm = 5001;

struct Loopback {
  ContextHandle context = open_first_device();
  PdHandle pd{ibv_alloc_pd(context.get())};
  SharedMemory memory{static_cast<std::byte*>(vbt_alloc_shared(4096))};
  MrHandle mr{ibv_reg_mr(pd.get(), memory.get(), 4096,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC)};
  CqHandle send_cq{ibv_create_cq(context.get(), 256, nullptr, nullptr, 0)};
  CqHandle recv_cq{ibv_create_cq(context.get(), 256, nullptr, nullptr, 0)};
  QpHandle from = create_rc_qp(pd.get(), send_cq.get(), send_cq.get(), 128, 128);
  QpHandle to = create_rc_qp(pd.get(), recv_cq.get(), recv_cq.get(), 128, 128);
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory.get()), 8, mr->lkey};
  ibv_recv_wr receive{};
  ibv_send_wr send{};
  ibv_send_wr write{};
  ibv_send_wr read{};
  ibv_send_wr add{};
  ibv_recv_wr* bad_receive = nullptr;
  ibv_send_wr* bad_send = nullptr;
  ibv_wc found{};

  Loopback() {
    const QpAddress a = address_of(context.get(), from.get());
    const QpAddress b = address_of(context.get(), to.get());
    connect_rc(from.get(), a, b);
    connect_rc(to.get(), b, a);
    receive.sg_list = send.sg_list = write.sg_list = &sge;
    receive.num_sge = send.num_sge = write.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    write.opcode = IBV_WR_RDMA_WRITE;
    send.send_flags = write.send_flags = IBV_SEND_INLINE;
    write.wr.rdma = {sge.addr + 64, mr->rkey};
    read = add = write;
    read.opcode = IBV_WR_RDMA_READ;
    add.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    add.wr.atomic = {sge.addr + 64, 1, 0, mr->rkey};
    read.send_flags = add.send_flags = IBV_SEND_SIGNALED;
  }
};

/// Whose the queues are, by what tells the library.
enum class Alone { kDomain, kDomainWithTimes, kSingleThreaded };

/// The same by the extended calls, in a thread domain; or with queues alone that one thread polls.
struct DomainLoopback {
  explicit DomainLoopback(Alone by) : alone(by) { connect(); }
  Alone alone;
  ContextHandle context = open_first_device();
  PdHandle pd{ibv_alloc_pd(context.get())};
  TdHandle domain = create_thread_domain(context.get());
  PdHandle parent = create_parent_domain(pd.get(), domain.get());
  SharedMemory memory{static_cast<std::byte*>(vbt_alloc_shared(4096))};
  MrHandle mr{
      ibv_reg_mr(pd.get(), memory.get(), 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)};
  CqHandle send_cq = create_cq();
  CqHandle recv_cq = create_cq();
  QpHandle from = create_built_qp(parent.get(), send_cq.get(), send_cq.get(), 128, 128);
  QpHandle to = create_built_qp(parent.get(), recv_cq.get(), recv_cq.get(), 128, 128);
  ibv_qp_ex* work = ibv_qp_to_qp_ex(from.get());
  std::uint64_t address = reinterpret_cast<std::uintptr_t>(memory.get());
  ibv_sge sge{address, 8, mr->lkey};
  ibv_recv_wr receive{};

  CqHandle create_cq() const {
    if (alone == Alone::kSingleThreaded)
      return create_cursor_cq(context.get(), 256, nullptr, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
    const std::uint64_t times =
        alone == Alone::kDomainWithTimes ? IBV_WC_EX_WITH_COMPLETION_TIMESTAMP : 0;
    return create_cursor_cq(context.get(), 256, parent.get(), 0, IBV_WC_STANDARD_FLAGS | times);
  }
  void connect() {
    const QpAddress a = address_of(context.get(), from.get());
    const QpAddress b = address_of(context.get(), to.get());
    connect_rc(from.get(), a, b);
    connect_rc(to.get(), b, a);
    receive.sg_list = &sge;
    receive.num_sge = 1;
  }
  int post_receive() {
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(to.get(), &receive, &bad);
  }
  [[gnu::always_inline]] void write(unsigned flags) {
    ibv_wr_start(work);
    work->wr_flags = flags;
    ibv_wr_rdma_write(work, mr->rkey, address + 64);
    ibv_wr_set_inline_data(work, memory.get(), 8);
    error |= ibv_wr_complete(work);
  }
  [[gnu::always_inline]] void send() {
    ibv_wr_start(work);
    work->wr_flags = 0;
    ibv_wr_send(work);
    ibv_wr_set_sge(work, mr->lkey, address, 8);
    error |= ibv_wr_complete(work);
  }
  int error = 0;
};

int trace_alone(Alone by) {
  DomainLoopback pair(by);
  const auto walk = [](const CqHandle& cq) {
    return walk_some(reinterpret_cast<ibv_cq_ex*>(cq.get()), 1);
  };
  const auto look_once = [](const CqHandle& cq) __attribute__((always_inline)) {
    ibv_poll_cq_attr attr{};
    auto* const cursor = reinterpret_cast<ibv_cq_ex*>(cq.get());
    if (ibv_start_poll(cursor, &attr) != 0) return 0;
    const bool good = cursor->status == IBV_WC_SUCCESS;
    ibv_end_poll(cursor);
    return good ? 1 : 0;
  };
  const auto look_at_two = [](const CqHandle& cq) __attribute__((always_inline)) {
    ibv_poll_cq_attr attr{};
    auto* const cursor = reinterpret_cast<ibv_cq_ex*>(cq.get());
    if (ibv_start_poll(cursor, &attr) != 0) return 0;
    const int second = ibv_next_poll(cursor);
    const bool good = cursor->status == IBV_WC_SUCCESS;
    ibv_end_poll(cursor);
    return good && second == 0 ? 2 : 0;
  };
  const auto round = [&] {
    pair.error |= pair.post_receive();
    pair.send();
    pair.write(IBV_SEND_SIGNALED);
    while (walk(pair.recv_cq) == 0) {
    }
    while (walk(pair.send_cq) == 0) {
    }
  };
  // The queue's lock, which a domain's does not have, becomes this thread's own.
  for (int i = 0; i < (by != Alone::kSingleThreaded ? 100 : kWarm); ++i) round();
  int found = 0;
  if (by == Alone::kDomainWithTimes) {
    // Its time was taken when it was stored: the clock, which is the system's, is not asked here.
    pair.write(IBV_SEND_SIGNALED);
    traced([&] { found += 2 * look_once(pair.send_cq); });
  } else if (by == Alone::kDomain) {
    traced([&] { pair.error |= pair.post_receive(); });
    traced([&] { pair.send(); });
    traced([&] { found += look_once(pair.recv_cq); });
    traced([&] { pair.write(IBV_SEND_SIGNALED); });
    traced([&] { found += look_once(pair.send_cq); });
  } else {
    // Two messages: the calls between them are ibv_next_poll.
    pair.error |= pair.post_receive() | pair.post_receive();
    pair.send();
    pair.send();
    traced([&] { found += look_at_two(pair.recv_cq); });
    pair.write(IBV_SEND_SIGNALED);
    traced([&] { found += look_once(pair.send_cq); });
    if (found == 3) found = 2;
  }
  if (pair.error != 0) return 7;
  return found == 2 ? 0 : 8;
}

/// Its requests may have two pieces.
QpHandle create_gathering_qp(ibv_pd* pd, ibv_cq* cq) {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = attributes.recv_cq = cq;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {128, 128, 2, 1, 64};
  return QpHandle(ibv_create_qp(pd, &attributes));
}

/// To receives that are shared: of a peer's shared receive queue, and of UD.
struct SharedLoopback {
  Loopback pair;
  ibv_srq_init_attr shared_by{nullptr, {128, 1, 0}};
  SrqHandle srq{ibv_create_srq(pair.pd.get(), &shared_by)};
  QpHandle from = create_gathering_qp(pair.pd.get(), pair.send_cq.get());
  QpHandle to = create_sharing_qp(pair.pd.get(), pair.recv_cq.get(), pair.recv_cq.get(), srq.get());
  QpHandle sender = create_datagram_qp(pair.pd.get(), pair.send_cq.get(), pair.send_cq.get());
  QpHandle receiver = create_datagram_qp(pair.pd.get(), pair.recv_cq.get(), pair.recv_cq.get());
  AhHandle ah;
  ibv_send_wr datagram{};
  ibv_sge room{pair.sge.addr, 64, pair.sge.lkey};
  int error = 0;

  SharedLoopback() {
    const QpAddress a = address_of(pair.context.get(), from.get());
    const QpAddress b = address_of(pair.context.get(), to.get());
    connect_rc(from.get(), a, b);
    connect_rc(to.get(), b, a);
    start_datagrams(sender.get());
    start_datagrams(receiver.get());
    const QpAddress there = address_of(pair.context.get(), receiver.get());
    ah = create_ah_to(pair.pd.get(), there);
    datagram = pair.send;
    datagram.wr.ud = {ah.get(), there.qpn, kQkey};
    pair.receive.sg_list = &room;
  }
  void send() { error |= ibv_post_send(from.get(), &pair.send, &pair.bad_send); }
  void send_datagram() { error |= ibv_post_send(sender.get(), &datagram, &pair.bad_send); }
  void post_receives() {
    error |= ibv_post_srq_recv(srq.get(), &pair.receive, &pair.bad_receive);
    error |= ibv_post_recv(receiver.get(), &pair.receive, &pair.bad_receive);
  }
  int poll() { return ibv_poll_cq(pair.recv_cq.get(), 1, &pair.found); }
  void await(std::uint32_t bytes) {
    while (poll() == 0) {
    }
    if (pair.found.status != IBV_WC_SUCCESS || pair.found.byte_len != bytes) error = EIO;
  }
};

int trace_shared() {
  SharedLoopback loop;
  // The last one's look at what others have used up is over: see SharedCredits::kLookEvery.
  for (int i = 0; i < kWarm; ++i) {
    loop.post_receives();
    loop.pair.send.send_flags = loop.datagram.send_flags =
        IBV_SEND_INLINE | (i % 2 != 0 ? unsigned{IBV_SEND_SIGNALED} : 0u);
    loop.send();
    loop.await(8);
    loop.send_datagram();
    loop.await(8 + kDatagramHeader);
    for (int sent = i % 2 != 0 ? 2 : 0; sent > 0;)
      sent -= ibv_poll_cq(loop.pair.send_cq.get(), 1, &loop.pair.found);
    if (loop.error != 0) return 9;
  }
  loop.pair.send.send_flags = loop.datagram.send_flags = IBV_SEND_INLINE;
  int got = 0;
  loop.post_receives();
  traced([&] { loop.send(); });
  traced([&] { got += loop.poll(); });
  traced([&] { loop.send_datagram(); });
  traced([&] { got += loop.poll(); });
  // As UCX sends: a header and data, both inline.
  ibv_sge pieces[2] = {{loop.pair.sge.addr, 9, 0}, {loop.pair.sge.addr, 8, 0}};
  loop.pair.send.sg_list = pieces;
  loop.pair.send.num_sge = 2;
  loop.post_receives();
  traced([&] { loop.send(); });
  loop.await(17);
  return loop.error == 0 && got == 2 ? 0 : 10;
}

QpHandle create_built_datagram_qp(ibv_pd* pd, ibv_cq* both) {
  ibv_qp_init_attr_ex attributes{};
  attributes.send_cq = attributes.recv_cq = both;
  attributes.qp_type = IBV_QPT_UD;
  attributes.cap = {128, 128, 1, 1, 64};
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attributes.pd = pd;
  attributes.send_ops_flags = IBV_QP_EX_WITH_SEND;
  QpHandle made(ibv_create_qp_ex(pd->context, &attributes));
  start_datagrams(made.get());
  return made;
}

/// What loops of a domain, whatever they send, have in common.
struct DomainPolls {
  DomainLoopback pair{Alone::kDomain};
  ibv_wc found{};
  int error = 0;

  int poll(const CqHandle& cq) { return ibv_poll_cq(cq.get(), 1, &found); }
  void await(const CqHandle& cq) {
    while (poll(cq) == 0) {
    }
    if (found.status != IBV_WC_SUCCESS) error = EIO;
  }
};

/// Datagrams in a thread domain, by either way of posting.
struct DomainDatagrams : DomainPolls {
  QpHandle sender = create_built_datagram_qp(pair.parent.get(), pair.send_cq.get());
  QpHandle receiver = create_built_datagram_qp(pair.parent.get(), pair.recv_cq.get());
  QpAddress there = address_of(pair.context.get(), receiver.get());
  AhHandle ah = create_ah_to(pair.parent.get(), there);
  ibv_qp_ex* work = ibv_qp_to_qp_ex(sender.get());
  ibv_sge room{pair.address, 64, pair.mr->lkey};
  ibv_recv_wr receive{};
  ibv_send_wr datagram{};

  DomainDatagrams() {
    receive.sg_list = &room;
    datagram.sg_list = &pair.sge;
    receive.num_sge = datagram.num_sge = 1;
    datagram.opcode = IBV_WR_SEND;
    datagram.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    datagram.wr.ud = {ah.get(), there.qpn, kQkey};
  }
  void post_receive() {
    ibv_recv_wr* bad = nullptr;
    error |= ibv_post_recv(receiver.get(), &receive, &bad);
  }
  void send() {
    ibv_send_wr* bad = nullptr;
    error |= ibv_post_send(sender.get(), &datagram, &bad);
  }
  [[gnu::always_inline]] void build() {
    ibv_wr_start(work);
    work->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(work);
    ibv_wr_set_ud_addr(work, ah.get(), there.qpn, kQkey);
    ibv_wr_set_sge(work, pair.mr->lkey, pair.address, 8);
    error |= ibv_wr_complete(work);
  }
};

/// XRC in a thread domain, all three places of it in this process, by either way of posting.
struct DomainXrc : DomainPolls {
  XrcdHandle domain = open_domain();
  SrqHandle queue = create_queue();
  QpHandle target = create(IBV_QPT_XRC_RECV);
  QpHandle initiator = create(IBV_QPT_XRC_SEND);
  ibv_qp_ex* work = ibv_qp_to_qp_ex(initiator.get());
  std::uint32_t number = 0;
  ibv_sge room{pair.address, 64, pair.mr->lkey};
  ibv_recv_wr receive{};
  ibv_send_wr request{};

  DomainXrc() {
    error = ibv_get_srq_num(queue.get(), &number);
    connect(target.get(), initiator.get());
    connect(initiator.get(), target.get());
    receive.sg_list = &room;
    request.sg_list = &pair.sge;
    receive.num_sge = request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    request.qp_type.xrc.remote_srqn = number;
  }
  XrcdHandle open_domain() const {
    ibv_xrcd_init_attr attributes{};
    attributes.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    attributes.fd = -1;
    attributes.oflags = O_CREAT;
    return XrcdHandle(ibv_open_xrcd(pair.context.get(), &attributes));
  }
  SrqHandle create_queue() const {
    ibv_srq_init_attr_ex attributes{};
    attributes.attr = {128, 1, 0};
    attributes.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ |
                           IBV_SRQ_INIT_ATTR_PD;
    attributes.srq_type = IBV_SRQT_XRC;
    attributes.xrcd = domain.get();
    attributes.cq = pair.recv_cq.get();
    attributes.pd = pair.parent.get();
    return SrqHandle(ibv_create_srq_ex(pair.context.get(), &attributes));
  }
  QpHandle create(ibv_qp_type type) const {
    ibv_qp_init_attr_ex attributes{};
    attributes.qp_type = type;
    if (type == IBV_QPT_XRC_RECV) {
      attributes.comp_mask = IBV_QP_INIT_ATTR_XRCD;
      attributes.xrcd = domain.get();
    } else {
      attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
      attributes.pd = pair.parent.get();
      attributes.send_cq = pair.send_cq.get();
      attributes.cap = {128, 0, 1, 0, 64};
      attributes.send_ops_flags = IBV_QP_EX_WITH_SEND;
    }
    return QpHandle(ibv_create_qp_ex(pair.context.get(), &attributes));
  }
  void connect(ibv_qp* qp, const ibv_qp* other) {
    const bool receives = qp->qp_type == IBV_QPT_XRC_RECV;
    const QpAddress own = address_of(pair.context.get(), qp);
    ibv_qp_attr to{};
    to.qp_state = IBV_QPS_INIT;
    to.port_num = 1;
    error |= ibv_modify_qp(qp, &to,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    to.qp_state = IBV_QPS_RTR;
    to.path_mtu = IBV_MTU_4096;
    to.dest_qp_num = other->qp_num;
    to.min_rnr_timer = 12;
    to.ah_attr.dlid = own.lid;
    to.ah_attr.port_num = 1;
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (receives) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    error |= ibv_modify_qp(qp, &to, mask);
    to.qp_state = IBV_QPS_RTS;
    to.timeout = 14;
    to.retry_cnt = to.rnr_retry = 7;
    mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN;
    if (!receives) mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    error |= ibv_modify_qp(qp, &to, mask);
  }
  void post_receive() {
    ibv_recv_wr* bad = nullptr;
    error |= ibv_post_srq_recv(queue.get(), &receive, &bad);
  }
  void send() {
    ibv_send_wr* bad = nullptr;
    error |= ibv_post_send(initiator.get(), &request, &bad);
  }
  [[gnu::always_inline]] void build() {
    ibv_wr_start(work);
    work->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(work);
    ibv_wr_set_xrc_srqn(work, number);
    ibv_wr_set_sge(work, pair.mr->lkey, pair.address, 8);
    error |= ibv_wr_complete(work);
  }
};

/// A receive, a message posted and one built, and the completions of both ends. Their receives are
/// posted to a queue that threads may share: its lock becomes this thread's own.
template <class Loop>
bool trace_in_domain() {
  Loop loop;
  for (int i = 0; i < kWarm && loop.error == 0; ++i) {
    loop.post_receive();
    if (i % 2 == 0)
      loop.send();
    else
      loop.build();
    loop.await(loop.pair.recv_cq);
    loop.await(loop.pair.send_cq);
  }
  int got = 0;
  traced([&] { loop.post_receive(); });
  traced([&] { loop.send(); });
  traced([&] { got += loop.poll(loop.pair.recv_cq); });
  traced([&] { got += loop.poll(loop.pair.send_cq); });
  loop.post_receive();
  traced([&] { loop.build(); });
  return loop.error == 0 && got == 2;
}

// In this order: see the names below.
int run_traced() {
  Loopback pair;
  const auto receive = [&] {
    return ibv_post_recv(pair.to.get(), &pair.receive, &pair.bad_receive);
  };
  const auto send = [&] { return ibv_post_send(pair.from.get(), &pair.send, &pair.bad_send); };
  const auto write = [&] { return ibv_post_send(pair.from.get(), &pair.write, &pair.bad_send); };
  const auto read = [&] { return ibv_post_send(pair.from.get(), &pair.read, &pair.bad_send); };
  const auto add = [&] { return ibv_post_send(pair.from.get(), &pair.add, &pair.bad_send); };
  const auto poll = [&] { return ibv_poll_cq(pair.recv_cq.get(), 1, &pair.found); };
  const auto poll_sends = [&] { return ibv_poll_cq(pair.send_cq.get(), 1, &pair.found); };
  for (int i = 0; i < kWarm; ++i) {
    if (receive() != 0) return 1;
    pair.send.send_flags = pair.write.send_flags =
        IBV_SEND_INLINE | (i % 2 != 0 ? unsigned{IBV_SEND_SIGNALED} : 0u);
    if (send() != 0 || write() != 0) return 2;
    while (poll() != 1) {
    }
    if (pair.found.status != IBV_WC_SUCCESS) return 3;
    for (int sent = i % 2 != 0 ? 2 : 0; sent > 0;) sent -= poll_sends();
  }
  pair.send.send_flags = pair.write.send_flags = IBV_SEND_INLINE;

  int error = 0;
  int got = 0;
  be_traced();
  traced([&] { error |= receive(); });
  traced([&] { error |= send(); });
  traced([&] { got = poll(); });
  if (got != 1 || pair.found.status != IBV_WC_SUCCESS) return 4;
  traced([&] { got = poll(); });
  if (got != 0) return 5;
  traced([&] { error |= write(); });
  pair.write.send_flags |= IBV_SEND_SIGNALED;
  traced([&] { error |= write(); });
  traced([&] { got = poll_sends(); });
  if (got != 1 || pair.found.status != IBV_WC_SUCCESS) return 6;
  traced([&] { error |= read(); });
  traced([&] { error |= add(); });
  for (int fetched = 0; fetched != 2; ++fetched) {
    if (poll_sends() != 1 || pair.found.status != IBV_WC_SUCCESS) return 13;
  }
  if (error == 0) error = trace_alone(Alone::kDomain);
  if (error == 0) error = trace_alone(Alone::kSingleThreaded);
  if (error == 0) error = trace_alone(Alone::kDomainWithTimes);
  if (error == 0) error = trace_shared();
  if (error == 0 && !trace_in_domain<DomainDatagrams>()) error = 11;
  if (error == 0 && !trace_in_domain<DomainXrc>()) error = 12;
  return error;
}

// The limits are there to be lowered: a message that suddenly costs more instructions should be
// noticed.
struct Step {
  const char* name;
  std::uint32_t most_instructions;
  std::uint32_t locked;
  std::uint32_t calls = 1;  // indirect ones, those of the header
  std::uint32_t direct = 0;
};
constexpr Step kSteps[] = {
    {"post_recv", 138, 0},
    {"post_send, SEND 8 B inline", 160, 1},
    {"poll_cq, one received", 228, 0},
    {"poll_cq, nothing", 40, 0},
    {"post_send, WRITE 8 B inline", 112, 1},
    {"post_send, WRITE 8 B inline, signaled", 182, 1},
    {"poll_cq, one sent", 99, 0},
    {"post_send, READ 8 B, signaled", 386, 1, 1, 2},
    {"post_send, fetch and add, signaled", 386, 2, 1, 2},
    {"post_recv in a domain", 138, 0},
    {"ibv_wr_*, SEND 8 B, in a domain", 252, 0, 4},
    // With a look for the one after it, which poll_cq was not asked for.
    {"start and end_poll, one received, in a domain", 416, 0, 2},
    {"ibv_wr_*, WRITE 8 B inline, signaled, in a domain", 224, 0, 4},
    {"start and end_poll, one sent, in a domain", 238, 0, 2},
    // The second has others behind it: a run is taken.
    {"start, next and end_poll, two received, single-threaded", 800, 0, 3, 3},
    {"start and end_poll, one sent, single-threaded", 238, 0, 2},
    {"start and end_poll, one sent, with its time, in a domain", 218, 0, 2, 3},
    {"post_send, SEND 8 B inline, to a shared queue", 182, 1},
    {"poll_cq, one received, of a shared queue", 246, 0},
    {"post_send, datagram of 8 B inline", 208, 1},
    {"poll_cq, one datagram received", 256, 0},
    {"post_send, SEND of two inline pieces, to a shared queue", 520, 1, 1, 6},
    {"post_recv of datagrams in a domain", 304, 0, 1, 9},
    {"post_send, datagram of 8 B inline, signaled, in a domain", 302, 0, 1, 9},
    {"poll_cq, one datagram received, in a domain", 248, 0},
    {"poll_cq, one datagram sent, in a domain", 99, 0},
    {"ibv_wr_*, datagram of 8 B, signaled, in a domain", 848, 0, 5, 19},
    {"post_srq_recv of XRC in a domain", 210, 0, 1, 2},
    {"post_send over XRC, 8 B inline, signaled, in a domain", 692, 0, 1, 12},
    {"poll_cq, one received over XRC, in a domain", 246, 0},
    {"poll_cq, one sent over XRC, in a domain", 99, 0},
    {"ibv_wr_*, over XRC, 8 B, signaled, in a domain", 812, 0, 5, 14}};

TEST(FastPath, ExecutesOneIndirectCallAndNoOther) {
  const long offered = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (offered <= 0 || (offered & MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0)
    GTEST_SKIP() << "membarrier is refused here: no lock becomes a thread's own";
  const ScratchFolder fabric;
  setenv("VERBATIM_FABRIC", fabric.path().c_str(), 1);
  const TraceResult result = trace_program({own_path(), "--traced"});
  if (!result.refusal.empty()) GTEST_SKIP() << result.refusal;
  ASSERT_EQ(result.traces.size(), std::size(kSteps));
  for (std::size_t i = 0; i < result.traces.size(); ++i) {
    const Trace& trace = result.traces[i];
    std::cout << kSteps[i].name << ": " << trace.instructions << " instructions, " << trace.locked
              << " locked\n";
    EXPECT_EQ(trace.indirect_calls, kSteps[i].calls) << kSteps[i].name;
    EXPECT_EQ(trace.system_calls, 0u) << kSteps[i].name;
#ifdef __OPTIMIZE__
    EXPECT_LE(trace.direct_calls, kSteps[i].direct) << kSteps[i].name;
    EXPECT_EQ(trace.indirect_jumps, 0u) << kSteps[i].name;
    EXPECT_EQ(trace.returns, kSteps[i].calls + trace.direct_calls) << kSteps[i].name;
    EXPECT_LE(trace.instructions, kSteps[i].most_instructions) << kSteps[i].name;
    EXPECT_EQ(trace.locked, kSteps[i].locked) << kSteps[i].name;
#endif
  }
}

TEST(CountInstruction, KnowsWhatMatters) {
  const auto count = [](std::initializer_list<std::uint8_t> code) {
    Trace trace;
    count_instruction({code.begin(), code.size()}, trace);
    EXPECT_EQ(trace.instructions, 1u);
    return trace;
  };
  EXPECT_EQ(count({0xE8, 1, 2, 3, 4}).direct_calls, 1u);        // call rel32
  EXPECT_EQ(count({0xFF, 0x50, 0x20}).indirect_calls, 1u);      // call *0x20(%rax)
  EXPECT_EQ(count({0x41, 0xFF, 0xD3}).indirect_calls, 1u);      // call *%r11
  EXPECT_EQ(count({0x3E, 0xFF, 0xE0}).indirect_jumps, 1u);      // notrack jmp *%rax
  EXPECT_EQ(count({0x0F, 0x05}).system_calls, 1u);              // syscall
  EXPECT_EQ(count({0xF0, 0x48, 0x0F, 0xB1, 0x17}).locked, 1u);  // lock cmpxchg %rdx,(%rdi)
  EXPECT_EQ(count({0x87, 0x07}).locked, 1u);                    // xchg %eax,(%rdi)
  EXPECT_EQ(count({0x87, 0xC3}).locked, 0u);                    // xchg %eax,%ebx
  EXPECT_EQ(count({0xF3, 0xC3}).returns, 1u);                   // repz ret
  EXPECT_EQ(count({0xFF, 0x07}).indirect_calls, 0u);            // incl (%rdi)
}

}  // namespace
}  // namespace verbatim::perf

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--traced") return verbatim::perf::run_traced();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
