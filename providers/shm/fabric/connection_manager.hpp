// SPDX-License-Identifier: BSD-2-Clause
//
// Where processes meet: accepts, connects, shakes hands, makes Peers of strangers, carries their
// messages, and notices when they end. The service thread calls everything here but add_listener.
//
// Two processes have one Peer of each other, however many sockets they opened at the same moment:
// the one with the smaller identity closes the socket that the other had connected, once it has its
// own. Since it knows both only after the other has seen both, no message of the handshake is lost;
// questions under way on the closed socket are asked again on the other.
//
// Who connects and who is connected to may find that a HELLO does not fit: descriptors under way
// are limited for each user. It is owed then, and nobody is less alive for it.
//
// The end of a connection is not the end of a process: who leaves takes his names away first, so a
// peer without a connection is looked for under them until they are gone, or its process is.
//
// A stranger may flood, stall or lie: sockets never block, each wake-up handles a bounded number of
// messages, the handshakes that others begin are few (his oldest gives way) and short.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "providers/shm/fabric/connection.hpp"
#include "providers/shm/fabric/fabric_folder.hpp"
#include "providers/shm/fabric/hooks.hpp"
#include "providers/shm/fabric/peer_messages.hpp"
#include "providers/shm/fabric/peer_table.hpp"
#include "providers/shm/fabric/wake_socket.hpp"
#include "providers/shm/fabric/wanted_blocks.hpp"

namespace verbatim::shm {

/// What the connection manager works with, all of it owned by Process and longer lived.
struct Surroundings {
  OwnSegment& segment;
  FabricFolder& folder;
  PeerTable& peers;
  WantedBlocks& wanted;
  const ServiceHooks& hooks;
};

class ConnectionManager {
 public:
  static constexpr std::uint64_t kHandshakeNs = 5'000'000'000;
  /// Connections that wait for their handshake: of one process, and of all. Many processes that all
  /// meet at once are as many as they are.
  static constexpr std::uint32_t kMaxHalfOpenOfOne = 16;
  static constexpr std::uint32_t kMaxHalfOpen = 512;
  /// A dead peer that nobody holds is remembered so long: whoever asks for it hears at once that it
  /// is dead.
  static constexpr std::uint64_t kRetireAfterNs = 200'000'000;

  /// A living peer without a connection is looked for so often; one that nobody holds, after the
  /// time that a handshake has, as often as the second says.
  static constexpr std::uint64_t kSeekNs = 10'000'000;
  static constexpr std::uint64_t kSlowSeekNs = 1'000'000'000;

  explicit ConnectionManager(const Surroundings& around) noexcept : around_(around) {}

  /// `epoll` and `wakes` (whose place peers get) stay the caller's.
  void open(int epoll, const WakeSocket& wakes) noexcept;
  /// REQUIRES: the service thread has ended, or calls this, and none is added any more. In a forked
  /// child nothing is said to anybody. `keeps_epoll`: that descriptor may be somebody else's.
  void close(bool forked, bool keeps_epoll) noexcept;
  /// The sockets that we listen on are still open under their numbers.
  [[nodiscard]] bool has_its_listeners() const noexcept;

  /// Also in a forked child, at once: its copies would stand behind the names when we are dead.
  void close_listeners() noexcept;
  /// Accepts on the socket of one more block of ours. Any thread. 0 or an errno.
  int add_listener(UniqueFd socket) noexcept;
  /// Accepts on another socket instead for the block that was the n-th to come. 0 or an errno.
  int replace_listener(std::uint32_t n, UniqueFd socket) noexcept;

  void on_listener(EventSource& source) noexcept;
  void on_connection(Connection& connection) noexcept;
  void on_death(Peer& peer) noexcept;

  /// Does what is due (connects, time limits, unsent answers, life locks) and says when to come
  /// again.
  std::uint64_t run_due(std::uint64_t now) noexcept;
  /// Asks peers for the arenas that were wanted since the last call.
  void ask_for_arenas() noexcept;
  /// Lets arenas that were refused be asked for again: their owner may have shared them since.
  void forget_refusals() noexcept;
  /// Frees what was closed. REQUIRES: no event of an old batch is left.
  void bury() noexcept;
  /// Peers that live, ourselves not counted.
  std::uint32_t living() const noexcept { return living_; }

 private:
  struct Listener {
    EventSource source;
    KeptFd socket;
  };

  Connection* open_connection(UniqueFd socket, std::uint64_t now) noexcept;
  /// Before one of `pid` is accepted: the oldest gives way, his own before others'.
  void make_room_for(pid_t pid) noexcept;
  void close_connection(Connection& connection) noexcept;
  /// 0 when a connection is under way, or an errno. `sought`: the lost peer that is looked for
  /// there; ESRCH when another process listens.
  int connect_block(std::uint32_t block, std::uint64_t now, const Peer* sought) noexcept;
  int say_hello(Connection& connection) noexcept;
  /// Says it now, or owes it.
  void greet(Connection& connection) noexcept;
  /// To who answered us: we know it now.
  void say_met(Connection& connection) noexcept;
  /// It knows us: who waited for that moves on.
  void note_met_by(Peer& peer) noexcept;
  bool watch(int fd, EventSource& source) noexcept;
  /// Whether what went wrong with the descriptors `used` can be another's doing. The application
  /// may have closed them, or what we have had for longer: the service thread finds that out, and
  /// says so.
  bool may_blame(std::initializer_list<int> used) const noexcept;
  void pause_accepting(std::uint64_t now) noexcept;

  // Steps of run_due: each says when it wants to be called next.
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  std::uint64_t connect_wanted(std::uint64_t now) noexcept;
  bool is_awaited(const Connection& connection) noexcept;
  std::uint64_t close_late_handshakes(std::uint64_t now) noexcept;
  std::uint64_t resume_accepting(std::uint64_t now) noexcept;
  std::uint64_t send_all_unsent(std::uint64_t now) noexcept;
  std::uint64_t check_life_locks(std::uint64_t now) noexcept;
  std::uint64_t seek_lost(std::uint64_t now) noexcept;
  std::uint64_t retire_peers(std::uint64_t now) noexcept;

  /// False: the connection has to be closed.
  bool handle(Connection& connection, Received& received) noexcept;
  /// Some of its descriptors were lost, and it is not to blame. False as of handle().
  bool do_without(Connection& connection, const Received& received) noexcept;
  bool meet(Connection& connection, const HelloMessage& hello, Received& received) noexcept;
  bool join(Connection& connection, Peer& peer) noexcept;
  void close_doubles(Peer& peer) noexcept;
  Peer* make_acquaintance(Connection& connection, const HelloMessage& hello,
                          Received& received) noexcept;
  /// Its last connection has ended.
  void lose(Peer& peer) noexcept;
  /// False: none of its names leads to it any more.
  bool seek(Peer& peer, std::uint64_t now) noexcept;
  /// It is looked for no longer.
  void stop_seeking(Peer& peer) noexcept;
  void declare_dead(Peer& peer, const char* how) noexcept;
  void remove_names(const Peer& peer) noexcept;

  void answer_want(Connection& connection, std::uint32_t arena) noexcept;
  void take_arena(Peer& peer, const ArenaMessage& message, UniqueFd& file) noexcept;
  void refuse(Peer& peer, std::uint32_t arena) noexcept;
  void ask_peer_for_arenas(Peer& peer) noexcept;
  void send_unsent(Connection& connection, std::uint64_t now) noexcept;

  Surroundings around_;
  int epoll_ = -1;
  const WakeSocket* wakes_ = nullptr;
  Listener listeners_[kMaxBlocksPerProcess] = {};
  std::atomic<std::uint32_t> listener_count_{0};
  Connection* oldest_ = nullptr;  ///< all connections, in order of their opening
  Connection* newest_ = nullptr;
  Connection* closed_ = nullptr;
  std::uint32_t half_open_ = 0;
  std::uint32_t living_ = 0;
  std::uint32_t dead_ = 0;  ///< not retired yet
  std::uint64_t next_retire_ = 0;
  std::uint32_t life_locks_ = 0;  ///< living peers that only a record lock tells about
  std::uint64_t next_life_check_ = 0;
  std::uint32_t lost_ = 0;  ///< living peers without a connection
  std::uint64_t next_seek_ = 0;
  std::uint64_t unsent_tried_ = 0;
  std::uint64_t accept_paused_until_ = 0;
  bool unsent_ = false;
  bool unread_ = false;       ///< what is unsent is so for long: its reader does not read
  bool owes_hellos_ = false;  ///< the last time that they were tried, or later
};

}  // namespace verbatim::shm
