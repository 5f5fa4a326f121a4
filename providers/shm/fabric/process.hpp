// SPDX-License-Identifier: BSD-2-Clause
//
// This process as a member of the fabric: its segment, its place in the fabric folder, its
// service thread and the peers it has met. One per process, shared by all contexts: the first
// open_device starts it, the last close_device stops it.
//
// The service thread is the only thread of the library. It sleeps in epoll with all signals
// blocked, serves connects, peers' service requests, wake-ups of armed CQs and the death of peers,
// and ticks once per millisecond only while somebody asked for it. It calls back through
// ServiceHooks; nothing else of the data path is known here.
//
// After fork() the child keeps a private copy of what it inherited, so that nothing it does reaches
// the parent; its first start() joins the fabric by itself.
#pragma once

#include <atomic>
#include <cstdint>

#include "providers/shm/fabric/held_name.hpp"
#include "providers/shm/fabric/hooks.hpp"
#include "providers/shm/fabric/peer.hpp"
#include "providers/shm/fabric/segment.hpp"
#include "runtime/time/wait_clock.hpp"

namespace verbatim::shm {

class Process {
 public:
  /// Start or share; `stop` releases. Reference counted under a lock; EIO/ENOMEM/EACCES with the
  /// exact cause logged. EIO too while one that has failed has users.
  static int start(const ServiceHooks& hooks) noexcept;
  static void stop() noexcept;
  /// This process in the fabric. REQUIRES: between start and stop.
  static Process& get() noexcept;

  /// ServiceHooks::failed was called, or is about to be. Lasts until the last stop().
  [[nodiscard]] bool has_failed() noexcept;

  /// What start() was given.
  const ServiceHooks& hooks() const noexcept;
  OwnSegment& segment() noexcept;
  /// Ourselves as a peer (loopback).
  Peer& self() noexcept;

  /// A free QP table index and its host-unique number; claims a further block when needed.
  /// EAGAIN-free: ENOMEM when kMaxQps are in use, EIO when the folder cannot be used.
  int take_qpn(std::uint32_t& index, std::uint32_t& qpn) noexcept;
  void give_qpn(std::uint32_t index) noexcept;
  std::uint32_t free_qpn_count() noexcept;

  /// Names that several processes hold at once: FabricFolder::hold, let_go.
  int hold_name(HeldName& name, bool create, bool exclusive) noexcept;
  void let_name_go(HeldName& name) noexcept;

  /// Looks whether our names stand in the folder. False: nobody new can meet us, and the service
  /// thread is on it. In a forked child, what its parent knew. Any thread.
  bool can_be_met() noexcept;
  /// Before something is made that may need names: when they turn out to be lost, waits a while for
  /// them to come back. REQUIRES: no lock of the data path is held.
  void await_names() noexcept;

  /// The peer that owns `qpn` if it is known, ourselves included; else nullptr. Of two known owners
  /// the living one, of two dead the one met last. For the service thread, and for whoever only
  /// asks whether there is one: nothing keeps a dead peer from being retired.
  Peer* find_peer(std::uint32_t qpn) noexcept;
  /// Like find_peer, and keeps the peer as it is until release_peer.
  Peer* hold_peer(std::uint32_t qpn) noexcept;
  /// Once more what somebody held a moment ago. False: it is being retired.
  [[nodiscard]] bool hold_too(Peer& peer) noexcept;
  void release_peer(Peer& peer) noexcept;
  /// The peers that we have met, ourselves included, through Peer::next. On the service thread.
  Peer* first_peer() noexcept;
  /// Table index of `qpn` within its owner's qp table, or ~0u.
  static std::uint32_t index_in(const Peer& peer, std::uint32_t qpn) noexcept;
  /// Asks the service thread to find and attach the owner of `qpn`; returns at once. It retries
  /// every few ms for as long as want_peer is asked again at least once per 100 ms, so a peer that
  /// starts later is met.
  void want_peer(std::uint32_t qpn) noexcept;
  /// Asks for every process of the fabric. True: some of them may have yet to be met.
  bool is_connecting_to_all() noexcept;
  /// Calls `look` for each living peer, ourselves included. It must not wait. Any thread.
  void each_living_peer(void (*look)(const Peer&, void*), void* with) noexcept;
  /// The wanted owner of `qpn` may be about to be met: he was not looked for yet, or somebody
  /// listens under his name, or has yet to hear that we know him.
  bool is_connecting(std::uint32_t qpn) noexcept;
  /// Asks the service thread to fetch and map an arena of a peer; returns at once.
  void want_arena(Peer& peer, std::uint32_t arena) noexcept;
  /// True when the peer has said no to this arena (not registered with remote access, or too many).
  bool arena_refused(Peer& peer, std::uint32_t arena) noexcept;

  /// By what waits for other processes are measured. Any thread; it goes on while the tick is on.
  WaitClock& wait_clock() noexcept;
  /// Turns the 1 ms tick on or off (any thread; idempotent, an eventfd write only when it turns
  /// on).
  void want_tick(bool on) noexcept;
  /// Full fence on every running thread of every registered process (membarrier GLOBAL_EXPEDITED),
  /// or, where refused, a local fence (then header.sender_fence is set and senders pay).
  void fence_everyone() noexcept;
  bool on_service_thread() const noexcept;

 private:
  struct Parts;
  static int start_locked(const ServiceHooks& hooks) noexcept;
  static void stop_locked() noexcept;
  static void lock_for_fork() noexcept;
  static void unlock_after_fork() noexcept;
  static void continue_in_child() noexcept;
  static void remove_names_at_exit() noexcept;

  Parts* parts_ = nullptr;
};

}  // namespace verbatim::shm
