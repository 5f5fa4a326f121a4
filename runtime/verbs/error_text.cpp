// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/error_text.hpp"
#include "runtime/verbs/qp_words.hpp"

#include <cinttypes>
#include <iterator>

namespace verbatim {
namespace {

using Number = unsigned long long;

struct Right {
  std::uint32_t bit;
  const char* word;
};
constexpr Right kRights[] = {{IBV_ACCESS_LOCAL_WRITE, "LOCAL_WRITE"},
                             {IBV_ACCESS_REMOTE_WRITE, "REMOTE_WRITE"},
                             {IBV_ACCESS_REMOTE_READ, "REMOTE_READ"},
                             {IBV_ACCESS_REMOTE_ATOMIC, "REMOTE_ATOMIC"},
                             {IBV_ACCESS_MW_BIND, "MW_BIND"},
                             {IBV_ACCESS_FLUSH_GLOBAL, "FLUSH_GLOBAL"},
                             {IBV_ACCESS_FLUSH_PERSISTENT, "FLUSH_PERSISTENT"}};

}  // namespace

void add_time(TextLine& line, std::uint64_t ns) noexcept {
  if (ns < 10'000'000)
    line.add("%llu us", static_cast<Number>(ns / 1000));
  else if (ns < 10'000'000'000)
    line.add("%llu ms", static_cast<Number>(ns / 1'000'000));
  else
    line.add("%llu s", static_cast<Number>(ns / 1'000'000'000));
}

void add_range(TextLine& line, std::uint64_t first, std::uint64_t bytes) noexcept {
  line.add("[0x%llx, 0x%llx)", static_cast<Number>(first), static_cast<Number>(first + bytes));
}

namespace {

/// How far a range lies outside.
void add_excess(TextLine& line, const KeyFacts& key) noexcept {
  const std::uint64_t offset = key.asked_at - key.first;
  if (key.asked_at < key.first)
    line.add("the request begins %llu bytes before it",
             static_cast<Number>(key.first - key.asked_at));
  else if (offset >= key.bytes)
    line.add("the request begins at its byte %llu of %llu", static_cast<Number>(offset),
             static_cast<Number>(key.bytes));
  else
    line.add("it ends %llu bytes before the request does",
             static_cast<Number>(key.asked_bytes - (key.bytes - offset)));
}

/// `kind`: lkey or rkey; `owner`: whose memory it is.
void add_key(TextLine& line, const KeyFacts& key, const char* kind, const char* owner) noexcept {
  if (key.fault == KeyFault::kHidden) {
    line.add("an lkey of %s is not good for it", owner);
    return;
  }
  line.add("%s 0x%08x of ", kind, key.key);
  if (key.sge >= 0) line.add("SGE %d of ", key.sge);
  if (key.fault == KeyFault::kNotEnded) {
    line.add(
        "%s: the message was to invalidate it, and it is no memory window of type 2 that is "
        "bound for the queue pair that receives",
        owner);
    return;
  }
  line.add("%s: asked ", owner);
  if (key.need != 0) {
    add_rights(line, key.need);
    line.add(" of ");
  }
  add_range(line, key.asked_at, key.asked_bytes);
  if (key.fault == KeyFault::kUnknown) {
    line.add(", and no memory region has this key");
    return;
  }
  line.add(", the region has ");
  add_rights(line, key.held);
  line.add(" of ");
  add_range(line, key.first, key.bytes);
  line.add(": ");
  switch (key.fault) {
    case KeyFault::kDomain:
      line.add("it is of another protection domain");
      break;
    case KeyFault::kWindow:
      line.add("it is a memory window of another queue pair or protection domain");
      break;
    case KeyFault::kRight:
      line.add("the right ");
      add_rights(line, key.need & ~key.held);
      line.add(" is missing");
      break;
    case KeyFault::kBounds:
      add_excess(line, key);
      break;
    case KeyFault::kNoMemory:
      line.add("no memory is there (any more)");
      if (key.missing.lack != Lack::kNothing)
        line.add(", %#" PRIx64 " %s", key.missing.at, words_of(key.missing.lack));
      break;
    default:
      line.add("it was changed or deregistered meanwhile");
      break;
  }
}

void add_key_fix(TextLine& line, const Failure& failure) noexcept {
  const KeyFacts& key = failure.key;
  const bool remote = failure.cause == Cause::kRemoteKey;
  switch (key.fault) {
    case KeyFault::kUnknown:
      line.add(remote ? "send the rkey of a region that stays registered until nobody uses it"
                      : "name the lkey of a region that stays registered until the request is "
                        "completed");
      break;
    case KeyFault::kDomain:
      line.add("register the memory in the protection domain of the queue pair that names it");
      break;
    case KeyFault::kWindow:
      line.add("bind a window for this queue pair, and name the key that the bind gave");
      break;
    case KeyFault::kNotEnded:
      line.add("name the key of a window that the receiver has bound and not yet invalidated");
      break;
    case KeyFault::kRight:
      line.add("register the memory with IBV_ACCESS_");
      add_rights(line, key.need & ~key.held);
      if ((key.need & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0)
        line.add(" (and LOCAL_WRITE, without which there is no remote one)");
      break;
    case KeyFault::kBounds:
      line.add("ask for what lies inside, or register all of it");
      break;
    case KeyFault::kNoMemory:
      line.add((key.held & IBV_ACCESS_ON_DEMAND) != 0
                   ? "map what is on demand before requests name it"
                   : "deregister memory before it is unmapped");
      break;
    default:
      line.add("keep regions as they are while requests use them");
      break;
  }
}

void add_tries(TextLine& line, const Failure& failure, const char* timer,
               const char* tries) noexcept {
  line.add(" after ");
  add_time(line, failure.waited_ns);
  if (failure.timer_ns == 0) return;
  line.add(" (%s %u: ", timer, failure.timer_code);
  add_time(line, failure.timer_ns);
  line.add("; %s %u)", tries, failure.tries);
}

/// What keeps the other half from answering.
void add_peer_cause(TextLine& line, const Failure& failure) noexcept {
  switch (failure.cause) {
    case Cause::kPeerUnknown:
      line.add("no process has QP 0x%06x", failure.remote_qpn);
      break;
    case Cause::kPeerNotReady:
      line.add("QP 0x%06x is in state %s, not yet in RTR", failure.remote_qpn,
               qp_state_word(failure.peer_state));
      break;
    case Cause::kPeerFailed:
      line.add("QP 0x%06x is in the error state", failure.remote_qpn);
      break;
    case Cause::kPeerDestroyed:
      line.add("its process has no QP 0x%06x (any more)", failure.remote_qpn);
      break;
    case Cause::kPeerElsewhere:
      line.add("QP 0x%06x is connected to QP 0x%06x, not to this one", failure.remote_qpn,
               failure.peer_dest);
      break;
    case Cause::kPeerPsn:
      line.add("QP 0x%06x expects PSN 0x%06x, this one sends from 0x%06x", failure.remote_qpn,
               failure.peer_psn, failure.own_psn);
      break;
    case Cause::kPeerOtherType:
      line.add("QP 0x%06x is of another type", failure.remote_qpn);
      break;
    case Cause::kPeerUsed:
      line.add("QP 0x%06x has not been reset since an earlier connection", failure.remote_qpn);
      break;
    case Cause::kPeerDead:
      line.add("its process has ended");
      return;  // nothing was waited for
    case Cause::kPeerLacks:
      line.add("its process has no memory left for it");
      break;
    default:
      line.add("its process lives, but did not answer");
      break;
  }
  if (failure.waited_ns != 0) add_tries(line, failure, "timeout", "retry_cnt");
}

const char* peer_fix(Cause cause) noexcept {
  switch (cause) {
    case Cause::kPeerUnknown:
      return "see that dest_qp_num is right, that the peer has made it, and that both use the same "
             "VERBATIM_FABRIC";
    case Cause::kPeerNotReady:
      return "move the peer to RTR before sending, or wait longer (timeout, retry_cnt)";
    case Cause::kPeerFailed:
      return "look at the peer's first completion in error, which names the cause";
    case Cause::kPeerDestroyed:
      return "let the peer keep its queue pair until this side has its completions";
    case Cause::kPeerElsewhere:
      return "exchange the numbers again: dest_qp_num of each must be qp_num of the other";
    case Cause::kPeerPsn:
      return "set sq_psn here and rq_psn at the peer to the same number";
    case Cause::kPeerOtherType:
      return "make both of the same qp_type";
    case Cause::kPeerUsed:
      return "reset both queue pairs before they are connected anew";
    case Cause::kPeerDead:
      return "find out why that process ended; then make a new connection";
    case Cause::kPeerLacks:
      return "look for the limit in its log";
    default:
      return "see whether that process is stopped or gets no processor";
  }
}

bool is_peers_state(Cause cause) noexcept {
  return cause >= Cause::kPeerUnknown && cause <= Cause::kPeerSilent;
}

/// What keeps an XRC queue from taking part.
bool add_queue_cause(TextLine& line, const Failure& failure) noexcept {
  switch (failure.cause) {
    case Cause::kQueueUnknown:
      line.add(
          "no process has XRC SRQ 0x%06x; fix: see that its number (ibv_get_srq_num) is the one "
          "that is sent, and that its process uses the same VERBATIM_FABRIC",
          failure.srqn);
      return true;
    case Cause::kQueueGone:
      line.add(
          "its process has no XRC SRQ 0x%06x (any more); fix: let it live until its senders have "
          "their completions",
          failure.srqn);
      return true;
    case Cause::kQueueElsewhere:
      line.add(
          "XRC SRQ 0x%06x is of another XRC domain than QP 0x%06x; fix: open both domains from the "
          "same file (ibv_open_xrcd)",
          failure.srqn, failure.remote_qpn);
      return true;
    case Cause::kQueueDead:
      line.add(
          "the process of XRC SRQ 0x%06x has ended; fix: find out why, then make a new connection",
          failure.srqn);
      return true;
    case Cause::kQueueLacks:
      line.add(
          "the process of XRC SRQ 0x%06x has no memory left for another sender; fix: look for the "
          "limit in its log",
          failure.srqn);
      return true;
    case Cause::kQueueSilent:
      line.add("the process of XRC SRQ 0x%06x lives, but did not answer", failure.srqn);
      if (failure.waited_ns != 0) add_tries(line, failure, "timeout", "retry_cnt");
      line.add("; fix: see whether that process is stopped or gets no processor");
      return true;
    default:
      return false;
  }
}

void add_window_cause(TextLine& line, const Failure& failure) noexcept {
  const KeyFacts& key = failure.key;
  switch (failure.window) {
    case WindowFault::kNotBound:
      line.add(
          "no memory window of type 2 that is bound on this queue pair has the key 0x%08x; fix: "
          "invalidate a window once, on the queue pair that it was bound on",
          key.key);
      return;
    case WindowFault::kNoLonger:
      line.add(
          "the memory window that the message was to invalidate is no longer bound; fix: let one "
          "side invalidate it");
      return;
    case WindowFault::kUnseen:
      line.add(
          "the memory window 0x%08x could not be bound, and the device does not say why; fix: "
          "invalidate a window of type 2 before it is bound again, under a key that "
          "ibv_inc_rkey makes of its last",
          key.key);
      return;
    default:
      line.add("the memory window 0x%08x could not be bound: ", key.key);
      break;
  }
  switch (failure.window) {
    case WindowFault::kStillBound:
      line.add("it still is; fix: invalidate it first (IBV_WR_LOCAL_INV)");
      break;
    case WindowFault::kForeignKey:
      line.add("that key is another's; fix: make the key of the window's last (ibv_inc_rkey)");
      break;
    case WindowFault::kRights:
      line.add("the rights 0x%x are none that a window gives; fix: ask for remote rights alone",
               key.need);
      break;
    case WindowFault::kBasedAtZero:
      line.add("of type 1 it cannot be ZERO_BASED; fix: bind one of type 2");
      break;
    case WindowFault::kBasedRegion:
      line.add("its region is ZERO_BASED; fix: register the region without");
      break;
    case WindowFault::kUnbindable:
      line.add("its region lacks MW_BIND; fix: register the region with IBV_ACCESS_MW_BIND");
      break;
    case WindowFault::kUnwritable:
      line.add(
          "it is to be written through, and its region lacks LOCAL_WRITE; fix: register the "
          "region with IBV_ACCESS_LOCAL_WRITE");
      break;
    case WindowFault::kNoRegion:
      line.add("its region is deregistered; fix: let the region live until the bind is completed");
      break;
    case WindowFault::kDomain:
      line.add(
          "window, region and queue pair are not of one protection domain; fix: make them of one");
      break;
    default:
      line.add("asked ");
      add_range(line, key.asked_at, key.asked_bytes);
      line.add(", the region has ");
      add_range(line, key.first, key.bytes);
      line.add(": ");
      add_excess(line, key);
      line.add("; fix: bind what lies inside");
      break;
  }
}

const char* status_fix(ibv_wc_status status) noexcept {
  switch (status) {
    case IBV_WC_LOC_LEN_ERR:
      return "compare the message's length with the receive's, and with what the device allows";
    case IBV_WC_LOC_QP_OP_ERR:
      return "see that the request suits the queue pair's type and state";
    case IBV_WC_LOC_PROT_ERR:
      return "check lkey, bounds, protection domain and LOCAL_WRITE of each SGE";
    case IBV_WC_MW_BIND_ERR:
      return "check the window's key, its region and its rights";
    case IBV_WC_REM_INV_REQ_ERR:
      return "check the peer's qp_access_flags, the length of its receive, alignment of atomics";
    case IBV_WC_REM_ACCESS_ERR:
      return "check rkey, bounds, rights and protection domain of the peer's memory";
    case IBV_WC_REM_OP_ERR:
      return "look at the peer's own completion, which names the cause";
    case IBV_WC_RETRY_EXC_ERR:
      return "see that the peer is there, connected to this queue pair, and in RTR or RTS";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "let the peer post receives earlier, or set rnr_retry to 7 (for ever)";
    default:
      return "reset the queue pair and connect it anew";
  }
}

}  // namespace

const char* opcode_word(std::int32_t opcode) noexcept {
  static constexpr const char* kWords[] = {"RDMA_WRITE",    "RDMA_WRITE_WITH_IMM",
                                           "SEND",          "SEND_WITH_IMM",
                                           "RDMA_READ",     "CMP_AND_SWP",
                                           "FETCH_AND_ADD", "LOCAL_INV",
                                           "BIND_MW",       "SEND_WITH_INV",
                                           "TSO",           "DRIVER1",
                                           nullptr,         nullptr,
                                           "FLUSH",         "ATOMIC_WRITE"};
  static_assert(IBV_WR_SEND_WITH_INV == 9 && IBV_WR_FLUSH == 14 && IBV_WR_ATOMIC_WRITE == 15);
  return opcode < 0 || opcode >= static_cast<std::int32_t>(std::size(kWords)) ? nullptr
                                                                              : kWords[opcode];
}

void add_rights(TextLine& line, std::uint32_t rights) noexcept {
  bool first = true;
  for (const Right& right : kRights) {
    if ((rights & right.bit) == 0) continue;
    line.add("%s%s", first ? "" : "|", right.word);
    first = false;
  }
  if (first) line.add("no rights");
}

void add_cause(TextLine& line, const Failure& failure) noexcept {
  const bool to_queue = failure.srqn != 0;  // whose process is neither of the connection's
  const char* const peers_receive = failure.receives ? "the posted receive"
                                    : to_queue       ? "the receive posted to the SRQ"
                                                     : "the receive that the peer has posted";
  switch (failure.cause) {
    case Cause::kLocalKey:
      add_key(line, failure.key, "lkey", "the request");
      line.add("; fix: ");
      return add_key_fix(line, failure);
    case Cause::kRemoteKey:
      add_key(line, failure.key, "rkey",
              to_queue           ? "the SRQ's process"
              : failure.receives ? "this side"
                                 : "the peer");
      line.add("; fix: ");
      return add_key_fix(line, failure);
    case Cause::kReceiveKey:
      add_key(line, failure.key, "lkey", peers_receive);
      line.add("; fix: ");
      return add_key_fix(line, failure);
    case Cause::kAccessFlags:
      line.add("%s needs ", opcode_word(failure.opcode) == nullptr ? "the request"
                                                                   : opcode_word(failure.opcode));
      add_rights(line, failure.key.need);
      line.add(", the qp_access_flags of %s are ",
               failure.receives ? "this queue pair" : "the peer's");
      add_rights(line, failure.key.held);
      line.add("; fix: set IBV_ACCESS_");
      add_rights(line, failure.key.need & ~failure.key.held);
      line.add(" in the responder's qp_access_flags (ibv_modify_qp)");
      return;
    case Cause::kMisaligned:
      line.add(
          "remote address 0x%llx is no multiple of 8; fix: align what atomics work on to 8 "
          "bytes",
          static_cast<Number>(failure.key.asked_at));
      return;
    case Cause::kMessageTooLong:
      line.add(
          "the message has %llu bytes, %s takes %llu; fix: post receives of %llu bytes, or "
          "send less",
          static_cast<Number>(failure.length), peers_receive, static_cast<Number>(failure.room),
          static_cast<Number>(failure.length));
      return;
    case Cause::kRequestTooLong:
      line.add(
          "the request has %llu bytes, at most %llu can be sent at once; fix: send it in parts",
          static_cast<Number>(failure.length), static_cast<Number>(failure.room));
      return;
    case Cause::kRequestTooShort:
      line.add(
          "its SGEs have %llu bytes, an atomic's old value needs %llu; fix: name memory for "
          "it",
          static_cast<Number>(failure.length), static_cast<Number>(failure.room));
      return;
    case Cause::kNoReceive:
      line.add("%s had no receive posted", to_queue ? "the SRQ" : "the peer");
      add_tries(line, failure, "its min_rnr_timer", "rnr_retry");
      line.add("; fix: post receives before the peer sends, or set rnr_retry to 7 (for ever)");
      return;
    case Cause::kReceiveGone:
      line.add(
          "the peer found the memory of a receive gone, of this message or one before it; "
          "fix: keep memory registered while receives name it");
      return;
    case Cause::kWindow:
      add_window_cause(line, failure);
      return;
    case Cause::kWindowInUse:
      line.add(
          "the window 0x%08x could not be closed: the peer is stopped in the middle of a copy "
          "through it; fix: continue that process",
          failure.key.key);
      return;
    case Cause::kNoRoom:
      line.add(
          "this process has no memory left for it; fix: use fewer queue pairs or shorter receive "
          "queues (the log names the limit)");
      return;
    case Cause::kForeignAddress:
      line.add(
          "the address handle is of another protection domain; fix: make it in that of the "
          "queue pair");
      return;
    case Cause::kPeerBrokeRules:
      line.add(
          "what the peer showed in shared memory cannot be; fix: both must use the same, "
          "undamaged library");
      return;
    case Cause::kOrdered:
      line.add("the program moved the queue pair to the error state (ibv_modify_qp)");
      return;
    case Cause::kStatusOnly:
      line.add("nothing more is known; fix: %s", status_fix(failure.status));
      return;
    default:
      break;
  }
  if (add_unseen_cause(line, failure) || add_queue_cause(line, failure) ||
      !is_peers_state(failure.cause))
    return;
  add_peer_cause(line, failure);
  line.add("; fix: %s", peer_fix(failure.cause));
}

}  // namespace verbatim
