// SPDX-License-Identifier: BSD-2-Clause
// The words for what a device's own side cannot see: the peer's memory, its receives, and whether
// it is there. They say what was asked, who knows the rest, and what to compare.
#include "runtime/verbs/error_text.hpp"

namespace verbatim {
namespace {

using Number = unsigned long long;

void add_unseen_memory(TextLine& line, const KeyFacts& key) noexcept {
  line.add("rkey 0x%08x of the peer: asked ", key.key);
  add_rights(line, key.need);
  line.add(" of ");
  add_range(line, key.asked_at, key.asked_bytes);
  line.add(
      ": what region has this key there, its range and its rights, only the peer knows; fix: "
      "compare them with those of the region at the peer, and IBV_ACCESS_");
  add_rights(line, key.need);
  line.add(" with its qp_access_flags; let it stay registered until nobody uses it");
}

void add_no_answer(TextLine& line, const Failure& failure) noexcept {
  line.add("no answer to %u tr%s", failure.tries + 1, failure.tries == 0 ? "y" : "ies");
  if (failure.timer_ns != 0) {
    line.add(" of ");
    add_time(line, failure.timer_ns);
    line.add(" (timeout %u; retry_cnt %u)", failure.timer_code, failure.tries);
  }
  line.add(
      ": whether the peer lives, is connected to this queue pair and in RTR or RTS, or the network "
      "loses what is sent, only they know; fix: see that dest_qp_num, GID and PSNs are the peer's, "
      "that its process lives, and that the hosts reach each other (RoCE v2: UDP port 4791)");
}

}  // namespace

bool add_unseen_cause(TextLine& line, const Failure& failure) noexcept {
  switch (failure.cause) {
    case Cause::kMemoryUnseen:
      add_unseen_memory(line, failure.key);
      return true;
    case Cause::kReceiveUnseen:
      line.add("the peer refused the message of %llu bytes", static_cast<Number>(failure.length));
      if (failure.key.key != 0) line.add(" that was to invalidate key 0x%08x", failure.key.key);
      line.add(
          ": how long its receive was, and whether its lkeys were good, only the peer knows; fix: "
          "post receives of %llu bytes with LOCAL_WRITE there%s",
          static_cast<Number>(failure.length),
          failure.key.key != 0 ? ", and name a key that this queue pair may invalidate" : "");
      return true;
    case Cause::kMessageUnseen:
      line.add(
          "the receive has %llu bytes; how long the message was, only the peer knows; fix: post "
          "receives of the longest message that it sends, or let it send less",
          static_cast<Number>(failure.room));
      return true;
    case Cause::kNoAnswer:
      add_no_answer(line, failure);
      return true;
    case Cause::kNotReady:
      line.add(
          "the peer said to %u tr%s that it had no receive posted (rnr_retry %u); fix: post "
          "receives "
          "there before this side sends, or set rnr_retry to 7 (for ever)",
          failure.tries + 1, failure.tries == 0 ? "y" : "ies", failure.tries);
      return true;
    case Cause::kRequestUnseen:
      line.add(
          "a request of the peer's was refused, and this side is not told which; fix: look at the "
          "peer's completion in error, which names it");
      return true;
    case Cause::kFirstUnseen:
      line.add(
          "what came first has had no completion here; fix: look at the queue pair's other "
          "completion queue, its asynchronous events, and the peer's first completion in error");
      return true;
    case Cause::kDeviceGone:
      line.add(
          "the device has gone, and nothing of it works any more; fix: destroy what belongs to it, "
          "and list the devices again");
      return true;
    default:
      return false;
  }
}

}  // namespace verbatim
