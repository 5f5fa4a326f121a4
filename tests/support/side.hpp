// SPDX-License-Identifier: BSD-2-Clause
//
// One end of a conversation, wherever it lives: an Endpoint in this process, or one in a child that
// obeys over the control channel. A test is written once against two Sides and runs in each
// placement.
//
// A Side's calls may be made from any thread; to a child they are serialised.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/child.hpp"
#include "tests/support/endpoint.hpp"
#include "tests/support/remote_call.hpp"

namespace verbatim::harness {

using EndpointMethods = MethodList<
    &Endpoint::allocate, &Endpoint::register_part, &Endpoint::register_foreign,
    &Endpoint::reregister, &Endpoint::region_info, &Endpoint::deregister, &Endpoint::fill,
    &Endpoint::mismatch, &Endpoint::set, &Endpoint::peek, &Endpoint::poke, &Endpoint::load,
    &Endpoint::store, &Endpoint::await_word, &Endpoint::create_cq, &Endpoint::cq_depth,
    &Endpoint::create_qp, &Endpoint::destroy_qp, &Endpoint::destroy_cq, &Endpoint::to_init,
    &Endpoint::to_rtr, &Endpoint::to_rts, &Endpoint::to_state, &Endpoint::connect, &Endpoint::state,
    &Endpoint::modify_qp, &Endpoint::query_qp, &Endpoint::create_srq, &Endpoint::use_xrcd_of,
    &Endpoint::open_qp, &Endpoint::destroy_srq, &Endpoint::modify_srq, &Endpoint::query_srq,
    &Endpoint::create_ah, &Endpoint::create_ah_like, &Endpoint::create_ah_from_wc,
    &Endpoint::create_multicast_ah, &Endpoint::attach, &Endpoint::detach,
    &Endpoint::post_srq_receive, &Endpoint::post_send, &Endpoint::post_receive, &Endpoint::poll,
    &Endpoint::poll_once, &Endpoint::arm, &Endpoint::event_pending, &Endpoint::take_event,
    &Endpoint::take_async_event, &Endpoint::storm, &Endpoint::storms,
    &Endpoint::ping_pong_by_events, &Endpoint::pause_until_signal, &Endpoint::register_as,
    &Endpoint::change_region, &Endpoint::allocate_null, &Endpoint::allocate_losing,
    &Endpoint::allocate_device, &Endpoint::copy_from_device, &Endpoint::copy_to_device,
    &Endpoint::allocate_window, &Endpoint::free_window, &Endpoint::bind_window,
    &Endpoint::window_key, &Endpoint::explain>;

/// For a Side: a child in our own environment.
inline const std::map<std::string, std::string> kAnotherProcess;

class Side {
 public:
  /// Here, in this process.
  explicit Side(std::shared_ptr<Session> session)
      : here_(std::make_unique<Endpoint>(std::move(session))) {}
  /// In a child of its own, with `environment` on top of ours.
  explicit Side(const std::map<std::string, std::string>& environment)
      : child_(std::make_unique<Child>("endpoint", environment)) {}
  ~Side();
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  bool is_child() const { return child_ != nullptr; }
  /// REQUIRES: is_child().
  Child& child() { return *child_; }
  /// REQUIRES: not is_child().
  Endpoint& here() { return *here_; }

  template <auto Method, class... Arguments>
  typename Signature<decltype(Method)>::Answer call(Arguments&&... arguments) {
    if (here_) return (*here_.*Method)(std::forward<Arguments>(arguments)...);
    const std::lock_guard lock(mutex_);
    ask<Method>(std::forward<Arguments>(arguments)...);
    return answer<Method>();
  }

  /// The child goes to sleep in pause(2); returns once the kernel says that it does.
  void fall_asleep();
  void wake_up();

  RegionInfo allocate(MemoryKind kind, std::uint64_t size, int access = kAllAccess) {
    return call<&Endpoint::allocate>(kind, size, access);
  }
  RegionInfo register_part(const RegionInfo& whole, std::uint64_t offset, std::uint64_t size,
                           int access = kAllAccess) {
    return call<&Endpoint::register_part>(whole.id, offset, size, access);
  }
  RegionInfo register_foreign(const RegionInfo& whole, int access = kAllAccess) {
    return call<&Endpoint::register_foreign>(whole.id, access);
  }
  int deregister(const RegionInfo& region) { return call<&Endpoint::deregister>(region.id); }
  void fill(const RegionInfo& region, std::uint64_t offset, std::uint64_t length,
            std::uint32_t seed) {
    call<&Endpoint::fill>(region.id, offset, length, seed);
  }
  std::int64_t mismatch(const RegionInfo& region, std::uint64_t offset, std::uint64_t length,
                        std::uint32_t seed) {
    return call<&Endpoint::mismatch>(region.id, offset, length, seed);
  }
  void set(const RegionInfo& region, std::uint64_t offset, std::uint64_t length,
           std::uint8_t byte) {
    call<&Endpoint::set>(region.id, offset, length, byte);
  }
  std::vector<std::uint8_t> peek(const RegionInfo& region, std::uint64_t offset,
                                 std::uint64_t length) {
    return call<&Endpoint::peek>(region.id, offset, length);
  }
  void poke(const RegionInfo& region, std::uint64_t offset, std::vector<std::uint8_t> bytes) {
    call<&Endpoint::poke>(region.id, offset, std::move(bytes));
  }
  std::uint64_t load(const RegionInfo& region, std::uint64_t offset) {
    return call<&Endpoint::load>(region.id, offset);
  }
  void store(const RegionInfo& region, std::uint64_t offset, std::uint64_t value) {
    call<&Endpoint::store>(region.id, offset, value);
  }
  RegionInfo register_as(const RegionWish& wish) { return call<&Endpoint::register_as>(wish); }
  int change_region(const RegionInfo& region, int flags, const RegionWish& wish) {
    return call<&Endpoint::change_region>(region.id, flags, wish);
  }
  RegionInfo allocate_losing(std::uint64_t size, int access, std::uint64_t end, Loss loss) {
    return call<&Endpoint::allocate_losing>(size, access, end, static_cast<std::int32_t>(loss));
  }
  RegionInfo region_info(const RegionInfo& region) {
    return call<&Endpoint::region_info>(region.id);
  }
  WindowInfo allocate_window(ibv_mw_type type) {
    return call<&Endpoint::allocate_window>(static_cast<std::int32_t>(type));
  }
  int free_window(const WindowInfo& window) { return call<&Endpoint::free_window>(window.id); }
  int bind_window(const QpInfo& qp, const WindowBind& bind) {
    return call<&Endpoint::bind_window>(qp.id, bind);
  }
  QpInfo create_qp(const QpWish& wish = {}) { return call<&Endpoint::create_qp>(wish); }
  void connect(const QpInfo& own, const QpInfo& remote, const Link& link = {}) {
    call<&Endpoint::connect>(own.id, remote, link);
  }
  Posted post_send(const QpInfo& qp, std::vector<Request> requests) {
    return call<&Endpoint::post_send>(qp.id, std::move(requests));
  }
  Posted post_send(const QpInfo& qp, const Request& request) {
    return post_send(qp, std::vector{request});
  }
  Posted post_receive(const QpInfo& qp, std::vector<Receive> receives) {
    return call<&Endpoint::post_receive>(qp.id, std::move(receives));
  }
  Posted post_receive(const QpInfo& qp, const Receive& receive) {
    return post_receive(qp, std::vector{receive});
  }
  SrqInfo create_srq(const SrqWish& wish = {}) { return call<&Endpoint::create_srq>(wish); }
  Posted post_srq_receive(const SrqInfo& srq, std::vector<Receive> receives) {
    return call<&Endpoint::post_srq_receive>(srq.id, std::move(receives));
  }
  AsyncEvent take_async_event(std::int32_t wait_ms = kDefaultWaitMs) {
    return call<&Endpoint::take_async_event>(wait_ms);
  }
  std::vector<ibv_wc> poll_sends(const QpInfo& qp, std::uint32_t count,
                                 std::int32_t wait_ms = kDefaultWaitMs) {
    return call<&Endpoint::poll>(qp.send_cq, count, wait_ms);
  }
  std::vector<ibv_wc> poll_receives(const QpInfo& qp, std::uint32_t count,
                                    std::int32_t wait_ms = kDefaultWaitMs) {
    return call<&Endpoint::poll>(qp.receive_cq, count, wait_ms);
  }
  std::vector<ibv_wc> poll_once(std::int32_t cq, std::uint32_t most) {
    return call<&Endpoint::poll_once>(cq, most);
  }
  /// vbt_explain for a completion, and for the queue pair itself.
  std::string explain(const QpInfo& qp, const ibv_wc& wc) {
    const auto line =
        call<&Endpoint::explain>(qp.id, wc.wr_id, static_cast<std::int32_t>(wc.status));
    return std::string(line.begin(), line.end());
  }
  std::string explain(const QpInfo& qp) {
    const auto line = call<&Endpoint::explain>(qp.id, std::uint64_t{0}, std::int32_t{-1});
    return std::string(line.begin(), line.end());
  }
  ibv_qp_state state(const QpInfo& qp) {
    return static_cast<ibv_qp_state>(call<&Endpoint::state>(qp.id));
  }
  int to_state(const QpInfo& qp, ibv_qp_state state) {
    return call<&Endpoint::to_state>(qp.id, state);
  }

 private:
  template <auto Method, class... Arguments>
  void ask(Arguments&&... arguments) {
    child_->control().send(EndpointMethods::number<Method>(),
                           Signature<decltype(Method)>::encode(arguments...));
  }
  template <auto Method>
  typename Signature<decltype(Method)>::Answer answer() {
    const Bytes body = answer_body();
    using Answer = typename Signature<decltype(Method)>::Answer;
    if constexpr (!std::is_void_v<Answer>) return Reader(body).get<Answer>();
  }
  /// The body of an answer; an exception of the child's is thrown again here.
  Bytes answer_body();

  std::unique_ptr<Endpoint> here_;
  std::unique_ptr<Child> child_;
  std::mutex mutex_;
};

}  // namespace verbatim::harness
