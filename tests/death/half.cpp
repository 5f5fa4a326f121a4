// SPDX-License-Identifier: BSD-2-Clause
#include "tests/death/half.hpp"

#include <poll.h>
#include <verbatim/memory.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>

#include "tests/support/deadline.hpp"

namespace verbatim::death {
namespace {

constexpr std::uint32_t kPsn = 0x123456;
constexpr std::uint64_t kReceive = 1u << 31;  ///< in a wr_id: qp << 32 | receive | serial
// Longer than a kernel under load may take to end a process, whose memory others have mapped.
constexpr std::int32_t kEndMs = 20'000;
constexpr std::int32_t kCloseMs = 5'000;

std::uint32_t length_of(Op op) {
  switch (op) {
    case Op::kNone:
      return 0;
    case Op::kSendSmall:
      return 33;
    case Op::kSendMedium:
      return 3001;
    case Op::kSendLarge:
    case Op::kWriteLarge:
    case Op::kReadLarge:
      return 200'003;
    case Op::kSendHuge:
      return Memory::kHuge;
    case Op::kWrite:
    case Op::kRead:
      return 65;
    case Op::kFetchAdd:
      return 8;
  }
  return 0;
}

bool is_send(Op op) { return op >= Op::kSendSmall && op <= Op::kSendHuge; }

ibv_wr_opcode opcode_of(Op op) {
  if (is_send(op)) return IBV_WR_SEND;
  if (op == Op::kWrite || op == Op::kWriteLarge) return IBV_WR_RDMA_WRITE;
  return op == Op::kFetchAdd ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_RDMA_READ;
}

void need(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

Memory::Memory(bool mapped) : mapped_(mapped) {
  start_ = static_cast<unsigned char*>(mapped ? vbt_alloc_shared(kBytes) : std::calloc(1, kBytes));
  need(start_ != nullptr, "memory");
}

Memory::~Memory() {
  if (!mapped_) {
    std::free(start_);
  } else if (const int error = vbt_free_shared(start_); error != 0) {
    harness::report_failed_destroy("vbt_free_shared", error);
  }
}

Half::Half(harness::Session& session, const Memory& memory, const Plan& plan, Part part)
    : session_(session), memory_(memory), plan_(plan), part_(part) {
  if (part_ == Part::kVictim) std::memset(memory_.source(), plan_.pattern, Memory::kHuge);
  channel_.reset(ibv_create_comp_channel(session_.context.get()));
  need(channel_ != nullptr, "channel");
  for (int i = 0; i < (plan_.one_cq ? 1 : 2); ++i) {
    cqs_[i].reset(ibv_create_cq(session_.context.get(), 256, nullptr, channel_.get(), 0));
    need(cqs_[i] != nullptr, "cq");
  }
  mr_.reset(ibv_reg_mr(session_.pd.get(), memory_.source(), Memory::kBytes,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC));
  need(mr_ != nullptr, "mr");
  for (std::uint32_t q = 0; q < plan_.qps; ++q) {
    Flow& flow = flows_[q];
    const bool survives = part_ == Part::kSurvivor;
    flow.ours = survives ? plan_.by_survivor[q] : plan_.by_victim[q];
    flow.theirs = survives ? plan_.by_victim[q] : plan_.by_survivor[q];
    ibv_qp_init_attr init{};
    init.send_cq = cqs_[0].get();
    init.recv_cq = plan_.one_cq ? cqs_[0].get() : cqs_[1].get();
    init.qp_type = IBV_QPT_RC;
    init.cap = {16, 8, 2, 2, 64};
    flow.qp.reset(ibv_create_qp(session_.pd.get(), &init));
    need(flow.qp != nullptr, "qp");
    to_init(flow);
    if (is_send(flow.theirs)) post_receives(q);
  }
}

Half::~Half() = default;

Offer Half::offer() const {
  Offer offer;
  for (std::uint32_t q = 0; q < plan_.qps; ++q) offer.qpn[q] = flows_[q].qp->qp_num;
  offer.rkey = mr_->rkey;
  offer.lid = session_.port.lid;
  offer.memory = reinterpret_cast<std::uintptr_t>(memory_.source());
  return offer;
}

void Half::to_init(Flow& flow) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  need(ibv_modify_qp(flow.qp.get(), &attr,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
       "INIT");
}

void Half::connect(const Offer& other) {
  other_ = other;
  for (std::uint32_t q = 0; q < plan_.qps; ++q) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_4096;
    attr.dest_qp_num = other.qpn[q];
    attr.rq_psn = kPsn;
    attr.max_dest_rd_atomic = 16;
    attr.min_rnr_timer = 12;
    attr.ah_attr.dlid = other.lid;
    attr.ah_attr.port_num = 1;
    need(ibv_modify_qp(flows_[q].qp.get(), &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
         "RTR");
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = kPsn;
    attr.timeout = plan_.timeout;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 16;
    need(ibv_modify_qp(flows_[q].qp.get(), &attr,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
         "RTS");
  }
}

void Half::post(std::uint32_t q, Op op) {
  Flow& flow = flows_[q];
  const bool reads = opcode_of(op) == IBV_WR_RDMA_READ || op == Op::kFetchAdd;
  ibv_sge sge{};
  sge.addr = reinterpret_cast<std::uintptr_t>(reads ? memory_.scratch(q) : memory_.source());
  sge.length = length_of(op);
  sge.lkey = mr_->lkey;
  ibv_send_wr wr{};
  wr.wr_id = std::uint64_t{q} << 32 | flow.sends_posted;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = opcode_of(op);
  wr.send_flags = IBV_SEND_SIGNALED;
  const std::uint64_t remote =
      other_.memory +
      static_cast<std::uint64_t>(memory_.slot(q, flow.sends_posted) - memory_.source());
  if (op == Op::kFetchAdd) {
    wr.wr.atomic.remote_addr = remote;
    wr.wr.atomic.rkey = other_.rkey;
    wr.wr.atomic.compare_add = 1;
  } else {
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = other_.rkey;
  }
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(flow.qp.get(), &wr, &bad);
  expect(error == 0, "post_send: " + std::to_string(error));
  ++flow.sends_posted;
}

void Half::post_receives(std::uint32_t q) {
  Flow& flow = flows_[q];
  const std::uint32_t most = flow.theirs == Op::kSendHuge ? 1 : Memory::kSlots;
  while (flow.receives_posted - flow.receives_done < most) {
    ibv_sge sge{};
    sge.addr =
        reinterpret_cast<std::uintptr_t>(memory_.slot(q, most == 1 ? 0 : flow.receives_posted));
    sge.length = length_of(flow.theirs);
    sge.lkey = mr_->lkey;
    ibv_recv_wr wr{};
    wr.wr_id = std::uint64_t{q} << 32 | kReceive | flow.receives_posted;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    const int error = ibv_post_recv(flow.qp.get(), &wr, &bad);
    expect(error == 0, "post_recv: " + std::to_string(error));
    ++flow.receives_posted;
  }
}

void Half::check_message(std::uint32_t q, const ibv_wc& wc) {
  const Flow& flow = flows_[q];
  const std::uint32_t length = length_of(flow.theirs);
  expect(wc.byte_len == length, "a message of another length");
  if (part_ != Part::kSurvivor) return;
  unsigned char* const at = memory_.slot(q, flow.theirs == Op::kSendHuge ? 0 : flow.receives_done);
  for (std::uint32_t i = 0;; i += 4096) {
    if (i >= length) i = length - 1;
    expect(at[i] == plan_.pattern,
           "byte " + std::to_string(i) + " of a received message is not there");
    at[i] = 0;
    if (i == length - 1) break;
  }
}

void Half::take(const ibv_wc& wc) {
  const auto q = static_cast<std::uint32_t>(wc.wr_id >> 32);
  Flow& flow = flows_[q];
  const bool received = (wc.wr_id & kReceive) != 0;
  const auto serial = static_cast<std::uint32_t>(wc.wr_id & (kReceive - 1));
  expect(serial == (received ? flow.receives_done : flow.sends_done), "a completion out of order");
  if (wc.status == IBV_WC_SUCCESS) {
    // Of one queue: a receive may have arrived whole before the error that a send found, and a
    // request be done before the receives flush.
    expect(received || !flow.send_failed, "a request succeeded after one had failed");
    if (received) check_message(q, wc);
    flow.met = true;
  } else {
    expect(wc.status == IBV_WC_WR_FLUSH_ERR || (!received && wc.status == IBV_WC_RETRY_EXC_ERR),
           std::string("ended in: ") + ibv_wc_status_str(wc.status));
    if (!flow.failed) flow.first_error = wc.status;
    flow.failed = true;
    flow.send_failed = flow.send_failed || !received;
  }
  ++(received ? flow.receives_done : flow.sends_done);
  if (received && !flow.failed) post_receives(q);
}

bool Half::poll() {
  bool something = false;
  for (const harness::CqHandle& cq : cqs_) {
    if (!cq) continue;
    ibv_wc wcs[16];
    const int n = ibv_poll_cq(cq.get(), 16, wcs);
    expect(n >= 0, "poll_cq");
    for (int i = 0; i < n; ++i) take(wcs[i]);
    something = something || n > 0;
  }
  return something;
}

void Half::pump() {
  for (std::uint32_t q = 0; q < plan_.qps; ++q) {
    Flow& flow = flows_[q];
    if (flow.ours == Op::kNone) continue;
    while (!flow.failed && flow.sends_posted - flow.sends_done < plan_.depth) post(q, flow.ours);
  }
  (void)poll();
}

bool Half::all_have_met() const {
  for (std::uint32_t q = 0; q < plan_.qps; ++q) {
    const Flow& flow = flows_[q];
    if (!flow.met && (flow.ours != Op::kNone || is_send(flow.theirs))) return false;
  }
  return true;
}

std::string Half::describe() const {
  std::ostringstream out;
  for (std::uint32_t q = 0; q < plan_.qps; ++q) {
    const Flow& flow = flows_[q];
    out << "qp " << q << ": ";
    if (flow.failed) out << ibv_wc_status_str(flow.first_error) << ", ";
    out << flow.sends_done << " of " << flow.sends_posted << " sends and " << flow.receives_done
        << " of " << flow.receives_posted << " receives have completed; ";
  }
  return out.str();
}

bool Half::ended() const {
  for (std::uint32_t q = 0; q < plan_.qps; ++q) {
    const Flow& flow = flows_[q];
    if (!flow.failed || flow.sends_done != flow.sends_posted ||
        flow.receives_done != flow.receives_posted)
      return false;
  }
  return true;
}

void Half::sleep_until_something_completes() {
  for (const harness::CqHandle& cq : cqs_) {
    if (cq) expect(ibv_req_notify_cq(cq.get(), 0) == 0, "req_notify_cq");
  }
  if (poll()) return;
  pollfd wait{channel_->fd, POLLIN, 0};
  expect(::poll(&wait, 1, kEndMs) == 1, "slept through the end");
  if (wait.revents == 0) return;
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  expect(ibv_get_cq_event(channel_.get(), &cq, &context) == 0, "get_cq_event");
  if (cq != nullptr) ibv_ack_cq_events(cq, 1);
}

void Half::see_the_end(bool sleeping) {
  const auto ask = [&] {
    for (std::uint32_t q = 0; q < plan_.qps; ++q) {
      // Who has nothing under way asks, and so learns it.
      Flow& flow = flows_[q];
      if (!flow.failed && flow.sends_posted == flow.sends_done)
        post(q, flow.ours == Op::kNone ? Op::kSendSmall : flow.ours);
    }
    if (!poll() && !ended() && sleeping) sleep_until_something_completes();
    return ended();
  };
  if (!harness::wait_until([&] { return ended() || ask(); }, kEndMs)) {
    expect(false, "no end: " + describe());
    return;
  }
  for (std::uint32_t q = 0; q < plan_.qps; ++q) {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    expect(ibv_query_qp(flows_[q].qp.get(), &attr, IBV_QP_STATE, &init) == 0, "query_qp");
    expect(attr.qp_state == IBV_QPS_ERR, "not in the error state");
    post(q, Op::kSendSmall);
    post_receives(q);
  }
  expect(harness::wait_until(
             [&] {
               (void)poll();
               return ended();
             },
             kCloseMs),
         "what was posted after the error does not flush");
}

void Half::close() {
  const harness::Deadline deadline(kCloseMs);
  if (plan_.keys_first) mr_.reset();
  for (Flow& flow : flows_) flow.qp.reset();
  mr_.reset();
  for (harness::CqHandle& cq : cqs_) cq.reset();
  channel_.reset();
  expect(!deadline.passed(), "destroying took long");
}

void Half::expect(bool condition, const std::string& what) {
  if (!condition && complaints_.size() < 2000) complaints_ += what + "; ";
}

}  // namespace verbatim::death
