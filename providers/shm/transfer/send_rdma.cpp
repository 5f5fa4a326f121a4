// SPDX-License-Identifier: BSD-2-Clause
//
// RDMA WRITE, READ and atomics: one-sided, whatever the target process is doing.
#include <cstring>

#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/transfer/request_ring.hpp"
#include "providers/shm/transfer/send_fast.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "providers/shm/transfer/service_requests.hpp"
#include "providers/shm/windows/authorize.hpp"
#include "runtime/memory/address_space.hpp"
#include "runtime/verbs/software/atomics.hpp"

namespace verbatim::shm {
namespace {

Step after(Reach reach) noexcept {
  switch (reach) {
    case Reach::kDone:
      return Step::done();
    case Reach::kService:
    case Reach::kKernel:
      return Step::waits(Wait::kService);
    case Reach::kMissing:
      return Step::fails(IBV_WC_LOC_PROT_ERR);
    case Reach::kArena:
      return Step::waits(Wait::kArena);
    case Reach::kNoRoom:
      return Step::waits(Wait::kMemory);
    case Reach::kDenied:
      return Step::fails(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    case Reach::kGone:
      break;
  }
  return Step::waits(Wait::kPeer);
}

/// The way to the eight bytes that an instruction is to change: of memory on demand in this process
/// they are brought in before it does.
Reach way_to_word(const Qp& qp, const PendingSend& send, std::uint32_t need,
                  unsigned char*& mapped) noexcept {
  // The owner's process was asked: it has done it or will, also if the memory has been mapped since.
  // Once is all.
  if (is_asked(qp)) return Reach::kService;
  std::uint64_t address;
  const Reach way = way_to(qp, send.rkey, send.remote_address, 8, need, mapped, address);
  if (way != Reach::kKernel) return way;
  if (!qp.link.self) return Reach::kService;
  mapped = reinterpret_cast<unsigned char*>(address);
  return fault_in(address, 8, true) == 0 ? Reach::kDone : Reach::kDenied;
}

/// The message that tells the receiver of a WRITE_WITH_IMM.
Step tell_of_write(Qp& qp, const PendingSend& send) noexcept {
  std::uint32_t room;
  switch (next_credit(qp, 0, room)) {
    case CreditState::kNone:
      return qp.out.rnr_retry == 0 ? Step::fails(IBV_WC_RNR_RETRY_EXC_ERR)
                                   : Step::waits(Wait::kReceive);
    case CreditState::kBadKey:  // no byte goes into the receive: its keys do not matter
    case CreditState::kGood:
      break;
  }
  if (find_lines(qp, 1) != Lines::kThere) return Step::waits(Wait::kStream);
  next_slot(qp).large = {send.length, 0, 0};
  publish(qp, SlotKind::kPlaced,
          header::kImmediate | header::kWriteImmediate |
              ((send.flags & IBV_SEND_SOLICITED) != 0 ? header::kSolicited : 0u),
          0, send.immediate);
  return Step::done();
}

}  // namespace

Step write_or_read(Qp& qp, SendLock& lock, const PendingSend& send,
                   const LocalRange* local) noexcept {
  const bool read = send.opcode == IBV_WR_RDMA_READ;
  const std::uint32_t need = read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
  Progress& progress = qp.sq.progress;
  if ((load_relaxed(qp.link.remote->access) & need) == 0)
    return Step::fails(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  if (progress.done < send.length) {
    const RemoteRange remote{send.rkey, send.remote_address, send.length};
    const Transfer transfer{local, send.num_sge, &remote,
                            1,     need,         read ? Direction::kFromPeer : Direction::kToPeer};
    Reach reach = Reach::kService;
    if (!is_asked(qp)) {
      // The whole range is judged before its first byte moves.
      unsigned char* mapped;
      std::uint64_t address;
      reach = way_to(qp, send.rkey, send.remote_address, send.length, need, mapped, address);
      if (reach == Reach::kDenied) return after(reach);
      reach = copy(qp, lock, transfer, progress.done, send.length);
    }
    if (reach == Reach::kService) reach = ask_to_move(qp, lock, send, local, read);
    if (reach != Reach::kDone) return after(reach);
    progress.done = send.length;
  }
  return send.opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? tell_of_write(qp, send) : Step::done();
}

Step do_atomic(Qp& qp, const PendingSend& send, const LocalRange* local) noexcept {
  const bool swap = send.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  if ((load_relaxed(qp.link.remote->access) & IBV_ACCESS_REMOTE_ATOMIC) == 0 ||
      send.remote_address % 8 != 0)
    return Step::fails(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  unsigned char* mapped;
  const Reach way = way_to_word(qp, send, IBV_ACCESS_REMOTE_ATOMIC, mapped);
  std::uint64_t old = 0;
  if (way == Reach::kDone) {
    // The address that was named is aligned; where it lies is the peer's word.
    if (reinterpret_cast<std::uintptr_t>(mapped) % 8 != 0)
      return Step::fails(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    old =
        perform_atomic(reinterpret_cast<std::uint64_t*>(mapped), swap, send.compare_add, send.swap);
  } else if (way == Reach::kService) {
    // Not even CMA can do this: the owner's process can.
    if (const Reach reach = ask_for_atomic(qp, send, send.compare_add, old); reach != Reach::kDone)
      return after(reach);
  } else {
    return after(way);
  }
  return scatter(local, send.num_sge, 0, reinterpret_cast<const unsigned char*>(&old), sizeof(old))
             ? Step::done()
             : Step::fails(IBV_WC_LOC_PROT_ERR);
}

bool fetch_at_once(Qp& qp, const ibv_send_wr& wr, Performed& as) noexcept {
  const bool read = wr.opcode == IBV_WR_RDMA_READ;
  if ((!read && !is_atomic(wr.opcode)) || wr.num_sge != 1 ||
      (wr.send_flags & IBV_SEND_INLINE) != 0 || qp.plain.qp_type != IBV_QPT_RC ||
      qp.attributes.max_rd_atomic == 0)
    return false;
  const ibv_sge& sge = *wr.sg_list;
  const std::uint32_t need = read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_ATOMIC;
  if ((load_relaxed(qp.link.remote->access) & need) == 0 || sge.length > kFastWriteBytes)
    return false;
  unsigned char* to;
  if (!find_local_bytes(qp.keys(), sge.lkey, sge.addr, sge.length, IBV_ACCESS_LOCAL_WRITE, to))
    return false;
  if (read) {
    const unsigned char* const from =
        mapped_bytes(qp, wr.wr.rdma.rkey, wr.wr.rdma.remote_addr, sge.length, need);
    if (from == nullptr) return false;
    if (sge.length <= 64)
      copy_small(to, from, sge.length);
    else
      std::memcpy(to, from, sge.length);
    as = {IBV_WC_RDMA_READ, sge.length};
    return true;
  }
  const auto& atomic = wr.wr.atomic;
  std::uint64_t old;
  if (sge.length < sizeof(old) || atomic.remote_addr % sizeof(old) != 0) return false;
  unsigned char* const at = mapped_bytes(qp, atomic.rkey, atomic.remote_addr, sizeof(old), need);
  // Where it lies is the peer's word.
  if (at == nullptr || reinterpret_cast<std::uintptr_t>(at) % sizeof(old) != 0) return false;
  const bool swap = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
  old = perform_atomic(reinterpret_cast<std::uint64_t*>(at), swap, atomic.compare_add, atomic.swap);
  std::memcpy(to, &old, sizeof(old));
  as = {static_cast<std::uint16_t>(swap ? IBV_WC_COMP_SWAP : IBV_WC_FETCH_ADD), sizeof(old)};
  return true;
}

// IBTA A19.4: the eight bytes appear as one. The kernel's copy does not promise that.
Step write_word(Qp& qp, const PendingSend& send, const LocalRange* local) noexcept {
  if ((load_relaxed(qp.link.remote->access) & IBV_ACCESS_REMOTE_WRITE) == 0 ||
      send.remote_address % 8 != 0)
    return Step::fails(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  std::uint64_t value;
  if (!gather(reinterpret_cast<unsigned char*>(&value), local, send.num_sge, 0, sizeof(value)))
    return Step::fails(IBV_WC_LOC_PROT_ERR);
  unsigned char* mapped;
  const Reach way = way_to_word(qp, send, IBV_ACCESS_REMOTE_WRITE, mapped);
  if (way == Reach::kService) {
    std::uint64_t nothing;
    return after(ask_for_atomic(qp, send, value, nothing));
  }
  if (way != Reach::kDone) return after(way);
  if (reinterpret_cast<std::uintptr_t>(mapped) % 8 != 0)
    return Step::fails(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(mapped), value, __ATOMIC_SEQ_CST);
  return Step::done();
}

// IBTA A19.3. What was written before is in memory that everybody sees, so global visibility is
// had by having performed it; persistence is a right that no region of ours can have.
Step flush_memory(Qp& qp, const PendingSend& send) noexcept {
  const auto type = static_cast<std::uint32_t>(send.swap & 0xff);
  const std::uint32_t need = remote_access_for(IBV_WR_FLUSH, type);
  const bool whole = (send.swap >> 8 & 0xff) == IBV_FLUSH_MR;
  Region region;
  std::uint64_t offset;
  if (authorize_key(regions_of_peer(qp), send.rkey, need, OpenToRequests{qp}, region) !=
          KeyFault::kNone ||
      (!whole && !region.contains(send.remote_address, send.compare_add, offset)))
    return after(Reach::kDenied);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return Step::done();
}

}  // namespace verbatim::shm
