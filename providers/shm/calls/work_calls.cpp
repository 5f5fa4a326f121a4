// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/calls/work_calls.hpp"

#include <cerrno>

#include "providers/shm/calls/hot.hpp"
#include "providers/shm/calls/work_fast.hpp"
#include "runtime/verbs/software/built_requests.hpp"
#include "runtime/verbs/software/capacities.hpp"
#include "runtime/verbs/software/operations.hpp"
#include "runtime/verbs/strict.hpp"

namespace verbatim::shm {

namespace {

ibv_send_wr& general_work(Qp& qp, const WorkEntry& entry) noexcept {
  return qp.work.general[&entry - qp.work.first];
}

}  // namespace

void refuse_work(WorkBatch& work, int error) noexcept {
  if ((work.notes & ~WorkBatch::kGeneral) == 0) work.notes |= static_cast<std::uint32_t>(error);
}

void refuse_long_inline(Qp& qp, std::uint64_t bytes) noexcept {
  tell_long_inline(qp, bytes, kMaxInline);
  refuse_work(qp.work, EINVAL);
}

ibv_send_wr& in_post_words(Qp& qp, WorkEntry& entry) noexcept {
  ibv_send_wr& wr = general_work(qp, entry);
  wr.next = nullptr;
  wr.wr_id = entry.wr_id;
  wr.send_flags = entry.how & WorkEntry::kFlags;
  if ((entry.how & WorkEntry::kWrite) != 0) {
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma = {entry.address, entry.rkey};
  } else if ((entry.how & WorkEntry::kSend) != 0) {
    const bool with_imm = (header::flags(entry.address) & header::kImmediate) != 0;
    wr.opcode = with_imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    wr.imm_data = header::immediate(entry.address);
  }
  if ((entry.how & WorkEntry::kListed) != 0) return wr;
  wr.sg_list = &entry.piece;
  wr.num_sge = 1;
  if ((entry.how & WorkEntry::kPiece) != 0) return wr;
  entry.piece.addr = reinterpret_cast<std::uint64_t>(entry.bytes);
  entry.piece.lkey = 0;
  if (entry.piece.length != 0)
    wr.send_flags |= IBV_SEND_INLINE;
  else
    wr.num_sge = 0;
  return wr;
}

bool send_shared_work(Qp& qp, WorkEntry& entry) noexcept {
  if (entry.piece.length == 0 || qp.shared.record == nullptr) return false;
  std::uint32_t bytes;
  if (!put_shared_now(qp, qp, in_post_words(qp, entry), 0, 0, bytes)) return false;
  qp.count_sent(entry.piece.length);
  return true;
}

void perform_slowly(Qp& qp, WorkEntry& entry) noexcept {
  (void)post_slowly_locked(qp, in_post_words(qp, entry));
}

int complete_slowly(Qp& qp) noexcept {
  WorkBatch& work = qp.work;
  const WorkEntry* const end = work.next;
  const std::uint32_t error = work.notes & ~WorkBatch::kGeneral;
  work.next = work.first;
  work.notes = 0;
  if (error != 0) return static_cast<int>(error);
  const auto count = static_cast<std::uint32_t>(end - work.first);
  if (qp.in_send_queue() + count > qp.sq_entries) {
    tell_full_queue(qp, qp.sq_entries);
    return ENOMEM;
  }
  // All are judged before the first is performed.
  for (WorkEntry* entry = work.first; entry != end; ++entry)
    if (const int refused = check_request(qp, in_post_words(qp, *entry)); refused != 0)
      return refused;
  for (WorkEntry* entry = work.first; entry != end; ++entry) perform_slowly(qp, *entry);
  return 0;
}

namespace {

/// For everything that takes the general path. When the batch has no room for another: a request
/// that nobody will look at.
[[gnu::always_inline]] inline ibv_send_wr& add_general(Qp& qp, ibv_wr_opcode opcode) noexcept {
  qp.work.notes |= WorkBatch::kGeneral;
  const WorkEntry* const entry = add_work(qp, WorkEntry::kGeneral);
  ibv_send_wr& wr = general_work(qp, entry != nullptr ? *entry : *qp.work.end);
  // What no call names is nobody, not whom an earlier batch named.
  wr.wr.ud = {};
  wr.qp_type = {};
  wr.opcode = opcode;
  return wr;
}

struct GeneralRequests {
  using Qp = shm::Qp;
  static Qp& of(ibv_qp_ex* handle) noexcept { return Qp::from(handle); }
  /// Of what takes long anyway there is one, not one for each.
  [[gnu::noinline]] static ibv_send_wr& add(Qp& qp, ibv_wr_opcode opcode) noexcept {
    return add_general(qp, opcode);
  }
  static ibv_send_wr& current(Qp& qp) noexcept { return general_work(qp, current_work(qp)); }
  static std::uint32_t max_sge(const Qp& qp) noexcept { return qp.max_send_sge; }
  static std::uint32_t max_inline(const Qp&) noexcept { return kMaxInline; }
  static ibv_sge* take_sges(Qp& qp, std::uint32_t count) noexcept {
    WorkEntry& entry = current_work(qp);
    qp.work.notes |= WorkBatch::kGeneral;
    entry.how |= WorkEntry::kListed;
    ibv_send_wr& wr = general_work(qp, entry);
    wr.sg_list = qp.work.sges + (&entry - qp.work.first) * qp.max_send_sge;
    wr.num_sge = static_cast<int>(count);
    return wr.sg_list;
  }
  static unsigned char* take_inline(Qp& qp, std::uint32_t bytes) noexcept {
    WorkEntry& entry = current_work(qp);
    entry.piece.length = bytes;
    return entry.bytes;
  }
  static void refuse(Qp& qp, int error) noexcept { refuse_work(qp.work, error); }
  static void refuse_inline(Qp& qp, std::uint64_t bytes) noexcept { refuse_long_inline(qp, bytes); }

  static constexpr auto* start = wr_start;
  static constexpr auto* complete = wr_complete;
  static void abort(ibv_qp_ex* handle) noexcept {
    Qp& qp = of(handle);
    const SendLock lock(qp, SendLock::Kept{});
    qp.work.next = qp.work.first;
    qp.work.notes = 0;
  }
};
using General = BuiltRequests<GeneralRequests>;

/// SEND of a datagram, and what goes to a shared receive queue of XRC: whom to is said by a setter.
struct AddressedRequests : GeneralRequests {
  [[gnu::always_inline]] static ibv_send_wr& add(Qp& qp, ibv_wr_opcode opcode) noexcept {
    return add_general(qp, opcode);
  }
};
using Addressed = BuiltRequests<AddressedRequests>;

WorkCalls calls_of(const Qp& qp, ibv_qp_type type) noexcept {
  WorkCalls calls = General::kCalls;
  const bool names_receiver = type != IBV_QPT_RC && type != IBV_QPT_UC;
  calls.wr_send = names_receiver ? Addressed::send : wr_send;
  calls.wr_send_imm = names_receiver ? Addressed::send_imm : wr_send_imm;
  calls.wr_rdma_write = names_receiver ? Addressed::rdma_write : wr_rdma_write;
  calls.wr_set_sge = wr_set_sge;
  calls.wr_set_inline_data = wr_set_inline_data;
  if (qp.in_domain) {
    calls.wr_start = wr_start_in_domain;
    calls.wr_complete = wr_complete_in_domain;
  }
  return calls;
}

bool make_work(Qp& qp) noexcept {
  // A batch is performed as a whole: none of it may lack a place.
  if (!qp.sq.store.make(qp.memory, qp.sq_entries, qp.max_send_sge)) return false;
  // One more before them and one behind, for requests that are refused. All in one piece, of which
  // only what is used is touched: most batches are short.
  const std::size_t entries = std::size_t{qp.sq_entries} + 2;
  const std::size_t bytes_of_each =
      sizeof(WorkEntry) + sizeof(ibv_send_wr) + qp.max_send_sge * sizeof(ibv_sge);
  auto* const store =
      static_cast<WorkEntry*>(qp.memory.take_unset(entries * bytes_of_each, kCacheLine));
  if (store == nullptr) return false;
  auto* const general = reinterpret_cast<ibv_send_wr*>(store + entries);
  WorkBatch& work = qp.work;
  work.first = work.next = store + 1;
  work.end = work.first + qp.sq_entries;
  work.always = qp.signal_all ? unsigned{IBV_SEND_SIGNALED} : 0u;
  work.general = general + 1;
  work.sges = reinterpret_cast<ibv_sge*>(general + entries) + qp.max_send_sge;
  return true;
}

}  // namespace

int check_work_calls(const ibv_qp_init_attr_ex& attr) noexcept {
  return refuse_lacking_operations("shm", attr, operations_of(attr.qp_type));
}

int wire_work_calls(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept {
  if (attr.send_ops_flags == 0) return 0;
  if (!make_work(qp)) return ENOMEM;
  set_work_calls<General::refuse_call>(qp.extended, attr.send_ops_flags,
                                       calls_of(qp, attr.qp_type));
  return 0;
}

}  // namespace verbatim::shm
