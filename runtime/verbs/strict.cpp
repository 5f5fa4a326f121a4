// SPDX-License-Identifier: BSD-2-Clause
// A CQ keeps the sum of the requests that may complete in it. A shared receive queue counts in that
// sum once, however many queue pairs lead from the one to the other: the list of feeds, under its
// own mutex, is there for this alone.
#include "runtime/verbs/strict.hpp"

#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>

#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/sync/mutex.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/contexts.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/strict_pitfalls.hpp"

namespace verbatim {
namespace {

void tell_small(Cq& cq, std::uint32_t wanted) noexcept {
  if (cq.plain.cqe < 0 || wanted <= static_cast<std::uint32_t>(cq.plain.cqe)) return;
  if (is_first(cq.strict_told, kSmallCq))
    log_warn(
        "strict: a CQ of %d entries takes the completions of queues of %u requests together, and "
        "can overrun; make it that large",
        cq.plain.cqe, wanted);
}

void grow(ibv_cq* handle, std::uint32_t completions) noexcept {
  if (handle == nullptr || completions == 0) return;
  Cq& cq = Cq::from(handle);
  tell_small(cq, cq.strict_wanted.fetch_add(completions, std::memory_order_relaxed) + completions);
}

void shrink(ibv_cq* handle, std::uint32_t completions) noexcept {
  if (handle != nullptr)
    Cq::from(handle).strict_wanted.fetch_sub(completions, std::memory_order_relaxed);
}

/// A shared receive queue whose receives complete in a CQ. It counts there once, however many queue
/// pairs lead from the one to the other.
struct Feed {
  ibv_srq* from = nullptr;
  ibv_cq* into = nullptr;
  std::uint32_t receives = 0;
  std::uint32_t ways = 0;
  Feed* next = nullptr;
};
constinit Mutex feeds_mutex;
constinit Feed* first_feed = nullptr;
constinit std::atomic<bool> fork_known{false};

/// A fork does not wait for who is at the list, since he may be waiting for the log's reader: each
/// step of his leaves a list that can be walked.
void remake_lock_in_child() noexcept { ::new (&feeds_mutex) Mutex; }

/// Registers the handler of fork() before the lock is taken for the first time. It takes no lock:
/// twice is as good as once. A failure is ignored: what is counted is good for warnings only.
void prepare_for_forks() noexcept {
  if (fork_known.load(std::memory_order_acquire)) return;
  const int error = ::pthread_atfork(nullptr, nullptr, remake_lock_in_child);
  fork_known.store(error == 0, std::memory_order_release);
}

/// The link to it, or the one at the end of the list. feeds_mutex is held.
Feed** find_feed(const ibv_srq* from, const ibv_cq* into) noexcept {
  Feed** link = &first_feed;
  while (*link != nullptr && ((*link)->from != from || (*link)->into != into))
    link = &(*link)->next;
  return link;
}

void add_feed(ibv_srq* from, ibv_cq* into) noexcept {
  if (from == nullptr || into == nullptr) return;
  prepare_for_forks();
  LockGuard<Mutex> guard(feeds_mutex);
  Feed** const link = find_feed(from, into);
  if (*link != nullptr) {
    ++(*link)->ways;
    return;
  }
  Feed* const feed = make_nothrow<Feed>();
  if (feed == nullptr) return;
  const Srq& srq = Srq::from(from);
  *feed = {from, into, srq.strict_receives != 0 ? srq.strict_receives : srq.attributes.max_wr, 1};
  *link = feed;
  grow(into, feed->receives);
}

void remove_feed(ibv_srq* from, ibv_cq* into) noexcept {
  if (from == nullptr || into == nullptr) return;
  LockGuard<Mutex> guard(feeds_mutex);
  Feed** const link = find_feed(from, into);
  Feed* const feed = *link;
  if (feed == nullptr || --feed->ways != 0) return;
  *link = feed->next;
  shrink(into, feed->receives);
  destroy_nothrow(feed);
}

bool is_multicast(const ibv_gid& gid) noexcept { return gid.raw[0] == 0xff; }

/// What an address reaches: others of its own kind.
const char* scope_of(const ibv_gid& gid) noexcept {
  static constexpr std::uint8_t kOfIpv4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::memcmp(gid.raw, kOfIpv4, sizeof kOfIpv4) == 0) return "an IPv4 address";
  if (gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80) return "a link-local address";
  return "a routable IPv6 address";
}

/// Checks both ends of a path by GID.
void check_gids(std::atomic<std::uint32_t>& told, const char* whose, Context& context,
                const ibv_ah_attr& path, bool ethernet) noexcept {
  static constexpr ibv_gid kNone{};
  const ibv_gid& to = path.grh.dgid;
  if (std::memcmp(&to, &kNone, sizeof kNone) == 0) {
    if (is_first(told, kNoGid))
      log_warn("strict: %s: grh.dgid is ::, nobody's: send the peer's GID along with its number",
               whose);
    return;
  }
  ibv_gid_entry from{};
  const Status known = query_gid(context, path.port_num, path.grh.sgid_index, from);
  if (!known.ok() || std::memcmp(&from.gid, &kNone, sizeof kNone) == 0) {
    if (is_first(told, kEmptyGidRow))
      log_warn("strict: %s: grh.sgid_index %u is an empty row of the port's GID table", whose,
               path.grh.sgid_index);
    return;
  }
  if (ethernet && !is_multicast(to) && scope_of(from.gid) != scope_of(to) &&
      is_first(told, kOtherScope))
    log_warn(
        "strict: %s: grh.sgid_index %u is %s and grh.dgid %s: take GIDs of one kind for both ends",
        whose, path.grh.sgid_index, scope_of(from.gid), scope_of(to));
}

/// `whose`: "QP 0x000010".
void check_path(std::atomic<std::uint32_t>& told, const char* whose, Context& context,
                const ibv_ah_attr& path, const ibv_port_attr& port) noexcept {
  const bool ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
  if (ethernet && path.is_global == 0 && is_first(told, kNoGrh))
    log_warn("strict: %s: ah_attr.is_global is 0 on an Ethernet link: RoCE needs the GID", whose);
  if (!ethernet && path.is_global == 0 && path.dlid == 0 && is_first(told, kNoLid))
    log_warn("strict: %s: ah_attr.dlid is 0: send the peer's port LID along with its number",
             whose);
  if (path.is_global == 0) return;
  if (path.grh.sgid_index < port.gid_tbl_len)
    return check_gids(told, whose, context, path, ethernet);
  if (is_first(told, kBadGidIndex))
    log_warn("strict: %s: grh.sgid_index %u, and the port's GID table has %d entries", whose,
             path.grh.sgid_index, port.gid_tbl_len);
}

}  // namespace

bool is_strict() noexcept {
  static constinit std::atomic<int> known{-1};
  int strict = known.load(std::memory_order_relaxed);
  if (strict < 0) {
    static constexpr std::string_view kChoices[] = {"0", "1"};
    strict = static_cast<int>(environment_choice("VERBATIM_STRICT", kChoices, 0));
    known.store(strict, std::memory_order_relaxed);
  }
  return strict != 0;
}

void check_new_qp(Qp& qp) noexcept {
  if (!is_strict()) return;
  grow(qp.plain.send_cq, qp.init.cap.max_send_wr);
  if (qp.plain.srq == nullptr)
    grow(qp.plain.recv_cq, qp.init.cap.max_recv_wr);
  else
    add_feed(qp.plain.srq, qp.plain.recv_cq);
}

void forget_qp(Qp& qp) noexcept {
  if (!is_strict()) return;
  shrink(qp.plain.send_cq, qp.init.cap.max_send_wr);
  if (qp.plain.srq == nullptr)
    shrink(qp.plain.recv_cq, qp.init.cap.max_recv_wr);
  else
    remove_feed(qp.plain.srq, qp.plain.recv_cq);
}

void check_new_srq(Srq& srq) noexcept {
  if (is_strict() && srq.cq != nullptr) add_feed(&srq.plain, &srq.cq->plain);
}

void forget_srq(Srq& srq) noexcept {
  if (is_strict() && srq.cq != nullptr) remove_feed(&srq.plain, &srq.cq->plain);
}

void check_resized_srq(Srq& srq, std::uint32_t receives) noexcept {
  if (!is_strict()) return;
  prepare_for_forks();
  LockGuard<Mutex> guard(feeds_mutex);
  srq.strict_receives = receives;
  for (Feed* feed = first_feed; feed != nullptr; feed = feed->next) {
    if (feed->from != &srq.plain) continue;
    shrink(feed->into, feed->receives);
    feed->receives = receives;
    grow(feed->into, receives);
  }
}

void check_resized_cq(Cq& cq) noexcept {
  if (is_strict()) tell_small(cq, cq.strict_wanted.load(std::memory_order_relaxed));
}

void check_modified_qp(Qp& qp, const ibv_qp_attr& attr, int mask) noexcept {
  if (!is_strict()) return;
  const unsigned number = qp.plain.qp_num;
  if ((mask & IBV_QP_TIMEOUT) != 0 && attr.timeout == 0 && is_first(qp.strict_told, kNoTimeout))
    log_warn(
        "strict: QP 0x%06x: timeout 0 waits for ever for a peer that is gone; 14 is 67 ms a try",
        number);
  if ((mask & IBV_QP_RETRY_CNT) != 0 && attr.retry_cnt == 0 && is_first(qp.strict_told, kNoRetry))
    log_warn("strict: QP 0x%06x: retry_cnt 0 ends the connection at the first lost packet", number);
  if ((mask & (IBV_QP_AV | IBV_QP_PATH_MTU)) == 0) return;
  ibv_port_attr port{};
  const std::uint32_t port_number =
      (mask & IBV_QP_AV) != 0 ? attr.ah_attr.port_num : qp.attributes.port_num;
  if (port_number == 0 || !query_port(context_of(qp), port_number, port).ok()) return;
  if ((mask & IBV_QP_PATH_MTU) != 0 && attr.path_mtu > port.active_mtu &&
      is_first(qp.strict_told, kLargeMtu))
    log_warn("strict: QP 0x%06x: path_mtu %d is over the port's active_mtu %d", number,
             static_cast<int>(attr.path_mtu), static_cast<int>(port.active_mtu));
  if ((mask & IBV_QP_AV) == 0) return;
  char whose[] = "QP 0x000000";
  std::snprintf(whose, sizeof whose, "QP 0x%06x", number & 0xffffff);
  check_path(qp.strict_told, whose, context_of(qp), attr.ah_attr, port);
}

void check_new_ah(Context& context, const ibv_ah_attr& path) noexcept {
  ibv_port_attr port{};
  if (is_strict() && query_port(context, path.port_num, port).ok())
    check_path(context.strict_told, "address handle", context, path, port);
}

void note_posted(Qp& qp, bool completes, std::uint32_t entries) noexcept {
  qp.strict_unsignaled = completes ? 0 : qp.strict_unsignaled + 1;
  if (qp.strict_unsignaled >= entries && is_first(qp.strict_told, kFullQueue))
    log_warn(
        "strict: QP 0x%06x: %u unsignaled requests in a row have filled the send queue, and no "
        "completion can free it: signal at least one of each queue's worth (IBV_SEND_SIGNALED), "
        "and poll",
        qp.plain.qp_num, qp.strict_unsignaled);
}

void tell_full_queue(Qp& qp, std::uint32_t entries) noexcept {
  if (is_strict() && is_first(qp.strict_told, kFullQueue))
    log_warn(
        "strict: QP 0x%06x: the send queue of %u requests is full: poll the completions of those "
        "before posting more",
        qp.plain.qp_num, entries);
}

void tell_long_inline(Qp& qp, std::uint64_t bytes, std::uint32_t limit) noexcept {
  if (is_strict() && is_first(qp.strict_told, kLongInline))
    log_warn("strict: QP 0x%06x: %llu bytes of inline data, the limit is %u (cap.max_inline_data)",
             qp.plain.qp_num, static_cast<unsigned long long>(bytes), limit);
}

}  // namespace verbatim
