// SPDX-License-Identifier: BSD-2-Clause
//
// One side of a conversation: a session with its memory, CQs and QPs, addressed by small numbers.
// Through the public API only. The methods speak in values (requests.hpp), so that side.hpp can
// call them in another process.
//
// What cannot be done throws std::runtime_error, except where the method returns the verb's answer.
// Methods may be called by several threads once everything they name has been created; polling,
// posting and events then have exactly the thread safety of the verbs beneath.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/deadline.hpp"
#include "tests/support/handles.hpp"
#include "tests/support/requests.hpp"

namespace verbatim::harness {

/// The requests of a storm that only an error ends.
inline constexpr std::uint64_t kForEver = ~std::uint64_t{0};

class Endpoint {
 public:
  explicit Endpoint(std::shared_ptr<Session> session) : session_(std::move(session)) {}
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // --- memory. New regions read as zero.
  RegionInfo allocate(MemoryKind kind, std::uint64_t size, int access);
  /// A further registration of a part of a region's memory.
  RegionInfo register_part(std::int32_t region, std::uint64_t offset, std::uint64_t size,
                           int access);
  /// A further registration of all of a region's memory, in another protection domain.
  RegionInfo register_foreign(std::int32_t region, int access);
  /// ibv_rereg_mr: where it leads is told from the start of the memory. An errno.
  std::int32_t reregister(std::int32_t region, std::int32_t flags, std::uint64_t offset,
                          std::uint64_t size, std::int32_t access);
  /// Its keys and place now.
  RegionInfo region_info(std::int32_t region);
  /// Deregisters; the memory stays until the end and can be looked at.
  std::int32_t deregister(std::int32_t region);
  void fill(std::int32_t region, std::uint64_t offset, std::uint64_t length, std::uint32_t seed);
  /// Position of the first byte that is not as `fill` left it, or -1.
  std::int64_t mismatch(std::int32_t region, std::uint64_t offset, std::uint64_t length,
                        std::uint32_t seed);
  void set(std::int32_t region, std::uint64_t offset, std::uint64_t length, std::uint8_t byte);
  std::vector<std::uint8_t> peek(std::int32_t region, std::uint64_t offset, std::uint64_t length);
  void poke(std::int32_t region, std::uint64_t offset, std::vector<std::uint8_t> bytes);
  std::uint64_t load(std::int32_t region, std::uint64_t offset);
  void store(std::int32_t region, std::uint64_t offset, std::uint64_t value);
  /// Watches an aligned word of memory and calls no verb until it has this value.
  void await_word(std::int32_t region, std::uint64_t offset, std::uint64_t value);

  // --- memory of every other kind (endpoint_memory.cpp)
  /// Throws what ibv_reg_mr* refuses.
  RegionInfo register_as(RegionWish wish);
  /// ibv_rereg_mr: its answer. `wish` says what the flags change.
  std::int32_t change_region(std::int32_t region, std::int32_t flags, RegionWish wish);
  RegionInfo allocate_null();
  /// `size` bytes, registered as a whole, of which those from `end` on are gone since; `end` is a
  /// multiple of the page size. `loss`: a Loss.
  RegionInfo allocate_losing(std::uint64_t size, std::int32_t access, std::uint64_t end,
                             std::int32_t loss);
  /// `size` bytes of device memory, registered as a whole.
  RegionInfo allocate_device(std::uint64_t size, std::int32_t access);
  std::vector<std::uint8_t> copy_from_device(std::int32_t region, std::uint64_t offset,
                                             std::uint64_t length);
  /// The verb's answer.
  std::int32_t copy_to_device(std::int32_t region, std::uint64_t offset,
                              std::vector<std::uint8_t> bytes);

  // --- memory windows
  WindowInfo allocate_window(std::int32_t type);
  /// ibv_dealloc_mw: its answer.
  std::int32_t free_window(std::int32_t window);
  /// The verb's answer.
  std::int32_t bind_window(std::int32_t qp, WindowBind bind);
  std::uint32_t window_key(std::int32_t window);

  // --- objects
  std::int32_t create_cq(std::int32_t depth, std::int32_t with_channel);
  /// How deep it really is.
  std::int32_t cq_depth(std::int32_t cq);
  QpInfo create_qp(QpWish wish);
  std::int32_t destroy_qp(std::int32_t qp);
  std::int32_t destroy_cq(std::int32_t cq);
  SrqInfo create_srq(SrqWish wish);
  /// Has the XRC domain of this endpoint be the one that belongs to the file.
  void use_xrcd_of(std::string path);
  /// A handle here on another's receiving XRC queue pair; its number in `made.id`.
  QpInfo open_qp(std::uint32_t qpn);
  std::int32_t destroy_srq(std::int32_t srq);
  std::int32_t modify_srq(std::int32_t srq, ibv_srq_attr attr, std::int32_t mask);
  ibv_srq_attr query_srq(std::int32_t srq);
  /// Numbers of address handles: to the port of `remote`; there with the service level and what the
  /// routing header shows of `wish`; back to the sender of a datagram whose routing header lies
  /// there; to a multicast group.
  std::int32_t create_ah(QpInfo remote, std::int32_t global);
  std::int32_t create_ah_like(QpInfo remote, ibv_ah_attr wish);
  std::int32_t create_ah_from_wc(ibv_wc wc, std::int32_t region, std::uint64_t offset);
  std::int32_t create_multicast_ah(ibv_gid group, std::uint16_t lid);
  std::int32_t attach(std::int32_t qp, ibv_gid group, std::uint16_t lid);
  std::int32_t detach(std::int32_t qp, ibv_gid group, std::uint16_t lid);

  // --- the state machine: each returns the verb's errno
  std::int32_t to_init(std::int32_t qp, Link link);
  std::int32_t to_rtr(std::int32_t qp, QpInfo remote, Link link);
  std::int32_t to_rts(std::int32_t qp, Link link);
  std::int32_t to_state(std::int32_t qp, ibv_qp_state state);
  /// All three; throws if one is refused.
  void connect(std::int32_t qp, QpInfo remote, Link link);
  std::int32_t state(std::int32_t qp);
  std::int32_t modify_qp(std::int32_t qp, ibv_qp_attr attr, std::int32_t mask);
  ibv_qp_attr query_qp(std::int32_t qp);

  // --- the data path
  Posted post_send(std::int32_t qp, std::vector<Request> requests);
  Posted post_receive(std::int32_t qp, std::vector<Receive> receives);
  Posted post_srq_receive(std::int32_t srq, std::vector<Receive> receives);
  /// Exactly `count` completions, or throws with those that came.
  std::vector<ibv_wc> poll(std::int32_t cq, std::uint32_t count, std::int32_t wait_ms);
  /// What is there now, at most `most`, in one call of ibv_poll_cq.
  std::vector<ibv_wc> poll_once(std::int32_t cq, std::uint32_t most);

  // --- events
  std::int32_t arm(std::int32_t cq, std::int32_t solicited_only);
  bool event_pending(std::int32_t cq);
  /// Takes and acknowledges one event of the CQ's channel: the CQ it names, or -1 when none came in
  /// time.
  std::int32_t take_event(std::int32_t cq, std::int32_t wait_ms);
  AsyncEvent take_async_event(std::int32_t wait_ms);

  // --- small programs that must not wait for the other side's orders
  /// vbt_explain_completion's line, or with a negative status that of the queue pair itself; ""
  /// when there is none.
  std::vector<std::uint8_t> explain(std::int32_t qp, std::uint64_t wr_id, std::int32_t status);
  /// Keeps `depth` copies of the request in flight until one fails or `enough` have succeeded;
  /// returns all completions that are not successes.
  std::vector<ibv_wc> storm(std::int32_t qp, Request request, std::uint32_t depth,
                            std::uint64_t enough);
  /// A storm on each of the queue pairs at once, with the request at the same place of `requests`,
  /// until every one has failed; returns the first completion of each that is not a success.
  std::vector<ibv_wc> storms(std::vector<std::int32_t> qps, std::vector<Request> requests,
                             std::uint32_t depth);
  /// Answers `rounds` messages of so many bytes, sleeping in the completion channel between them. The
  /// first sends first.
  void ping_pong_by_events(std::int32_t qp, std::uint32_t rounds, std::uint32_t bytes, bool first);
  /// Sleeps in pause(2) until SIGUSR1.
  void pause_until_signal();

  /// For tests of one process: a CQ made by hand, ours from now on. Its number.
  std::int32_t adopt_cq(ibv_cq* made);
  /// The objects themselves, likewise.
  ibv_pd* pd() { return session_->pd.get(); }
  ibv_context* context() { return session_->context.get(); }
  ibv_qp* qp(std::int32_t id) { return qps_.at(static_cast<std::size_t>(id)).handle.get(); }
  ibv_cq* cq(std::int32_t id) { return cqs_.at(static_cast<std::size_t>(id)).handle.get(); }
  ibv_mr* mr(std::int32_t id) { return regions_.at(static_cast<std::size_t>(id)).mr.get(); }
  ibv_srq* srq(std::int32_t id) { return srqs_.at(static_cast<std::size_t>(id)).handle.get(); }
  ibv_ah* ah(std::int32_t id) { return ahs_.at(static_cast<std::size_t>(id)).get(); }
  /// The XRC domain of this endpoint, made when first asked for.
  ibv_xrcd* xrcd();
  ibv_mw* window(std::int32_t id) { return windows_.at(static_cast<std::size_t>(id)).get(); }
  unsigned char* bytes(std::int32_t region);
  const std::shared_ptr<Session>& session() const { return session_; }

 private:
  struct Region {
    std::shared_ptr<void> memory;  ///< shared by all registrations of it
    unsigned char* start = nullptr;
    std::uint64_t size = 0;
    std::uint32_t lkey = 0;  ///< outlives the registration, to be wrong afterwards
    std::uint64_t iova = 0;  ///< what its first byte is called
    std::int32_t device = -1;
    MrHandle mr;
  };
  struct Cq {
    std::shared_ptr<ibv_comp_channel> channel;
    CqHandle handle;
  };
  struct Qp {
    QpHandle handle;
    QpInfo info;
  };
  struct Srq {
    SrqHandle handle;
  };
  std::int32_t add_ah(ibv_ah* ah);
  ibv_ah_attr path_to(const QpInfo& remote, bool global);
  RegionInfo add_region(Region region, int access, ibv_pd* in);
  RegionInfo keep_region(Region region);
  ibv_pd* foreign_pd();
  std::int32_t add_cq(std::int32_t depth, std::shared_ptr<ibv_comp_channel> channel,
                      ibv_pd* parent = nullptr);
  ibv_pd* new_domain();
  std::shared_ptr<ibv_comp_channel> new_channel();
  ibv_sge to_sge(const Slice& piece);
  template <class Post>
  Posted post_receives(const std::vector<Receive>& receives, Post&& post);
  const QpInfo& info(std::int32_t id) { return qps_.at(static_cast<std::size_t>(id)).info; }

  // In the order of their dependence: destroyed from the bottom.
  std::shared_ptr<Session> session_;
  PdHandle foreign_pd_;  ///< made by the first register_foreign()
  std::deque<DmHandle> devices_;
  std::deque<Region> regions_;
  std::deque<MwHandle> windows_;
  std::deque<TdHandle> domains_;
  std::deque<PdHandle> parents_;
  std::deque<Cq> cqs_;
  XrcdHandle xrcd_;
  std::deque<Srq> srqs_;
  std::deque<AhHandle> ahs_;
  std::deque<Qp> qps_;
};

/// "wr 7 RNR_RETRY_EXC_ERR opcode 0" and so on, for messages of failures.
std::string describe(const std::vector<ibv_wc>& wcs);

}  // namespace verbatim::harness
