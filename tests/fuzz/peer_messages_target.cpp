// SPDX-License-Identifier: BSD-2-Clause
//
// What strangers send to the sockets in the fabric folder: messages of any bytes, with any
// descriptors, in any order, on several sockets at once. A connection manager by itself takes them,
// on our thread and by our clock, so that a round is the same each time.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>

#include "providers/shm/fabric/connection_manager.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/time/clock.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/stranger.hpp"
#include "tests/support/fabric_directory.hpp"

namespace verbatim::fuzz {
namespace {

using namespace verbatim::shm;

struct Counts {
  std::uint32_t ready = 0;
  std::uint32_t dead = 0;
};
Counts counts;

void ready(Peer& peer) noexcept {
  ++counts.ready;
  // Somebody has work for it: two of its arenas are asked for.
  for (const std::uint32_t arena : {0u, 5u}) {
    peer.asked.set(arena);
    peer.wanted_arena_count.fetch_add(1);
  }
}
void dead(Peer&) noexcept { ++counts.dead; }

/// A process as far as the connection manager is concerned.
class Exchange {
 public:
  Exchange() {
    setenv("VERBATIM_LOG", "off", 0);
    static const harness::FabricDirectory directory;
    VBT_HOLDS(folder_.open() == 0);
    VBT_HOLDS(segment_.create() == 0);
    VBT_HOLDS(epoll_.valid() && wakes_.open(folder_) == 0);
    connections_.open(epoll_.get(), wakes_);
    UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    address_.sun_family = AF_UNIX;
    VBT_HOLDS(bind(listener.get(), reinterpret_cast<sockaddr*>(&address_),
                   sizeof(sa_family_t)) == 0);  // the kernel chooses a name
    length_ = sizeof address_;
    VBT_HOLDS(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address_), &length_) == 0);
    VBT_HOLDS(listen(listener.get(), 16) == 0);
    VBT_HOLDS(connections_.add_listener(static_cast<UniqueFd&&>(listener)) == 0);
    int error = 0;
    shared_ = alloc_shared(1u << 16, error);
    ArenaView view;
    VBT_HOLDS(shared_ != nullptr && arena_of(shared_, 1, view));
    arena_share(view.number);
    arena_ = view.number;
  }

  UniqueFd connected(std::uint64_t now) {
    UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address_), length_) == 0) return fd;
    turn(now);  // so many at once fit the listener's queue
    VBT_HOLDS(connect(fd.get(), reinterpret_cast<sockaddr*>(&address_), length_) == 0);
    return fd;
  }
  /// All that has come in by now.
  void turn(std::uint64_t now) {
    epoll_event events[16];
    for (int turns = 0; turns < 64; ++turns) {
      (void)connections_.run_due(now);
      connections_.ask_for_arenas();
      connections_.bury();
      const int count = epoll_wait(epoll_.get(), events, 16, 0);
      if (count <= 0) return;
      for (int i = 0; i < count; ++i) {
        auto& source = *static_cast<EventSource*>(events[i].data.ptr);
        if (source.kind == EventSource::kListener) connections_.on_listener(source);
        if (source.kind == EventSource::kConnection)
          connections_.on_connection(*static_cast<Connection*>(source.object));
        VBT_HOLDS(source.kind != EventSource::kDeath);  // that is ourselves
      }
    }
  }
  Peer* first_peer() { return peers_.first(); }
  std::uint32_t living() const { return connections_.living(); }
  std::uint32_t arena() const { return arena_; }
  std::uint64_t own_identity() { return segment_.head().identity; }
  int own_fd(std::uint32_t i) { return i == 0 ? segment_.fd() : segment_.doorbell_fd(); }

 private:
  OwnSegment segment_;
  FabricFolder folder_;
  PeerTable peers_;
  WantedBlocks wanted_;
  ServiceHooks hooks_{.request = nullptr,
                      .asked = nullptr,
                      .cq_wake = nullptr,
                      .tick = nullptr,
                      .sweep = nullptr,
                      .due = nullptr,
                      .peer_ready = ready,
                      .peer_knows_us = [](Peer&) noexcept {},
                      .peer_dead = dead,
                      .dead_stay = []() noexcept {},
                      .arena_ready = [](Peer&) noexcept {},
                      .names_stand = nullptr,
                      .failed = nullptr,
                      .ends = nullptr};
  UniqueFd epoll_{epoll_create1(EPOLL_CLOEXEC)};
  WakeSocket wakes_;
  ConnectionManager connections_{Surroundings{segment_, folder_, peers_, wanted_, hooks_}};
  sockaddr_un address_{};
  socklen_t length_ = 0;
  void* shared_ = nullptr;
  std::uint32_t arena_ = 0;
};

struct Scene {
  Exchange exchange;
  Stranger strangers[2] = {{0x1111, 0xfa0}, {0x2222, 0xfa1}};
  /// What else may be sent along.
  UniqueFd pipe_read, pipe_write;
  UniqueFd shrinkable{memfd_create("shrinkable", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  UniqueFd arena{memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  UniqueFd huge{memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB)};

  Scene() {
    int ends[2];
    VBT_HOLDS(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    pipe_read.reset(ends[0]);
    pipe_write.reset(ends[1]);
    VBT_HOLDS(ftruncate(shrinkable.get(), 1 << 20) == 0);
    VBT_HOLDS(ftruncate(arena.get(), 1 << 16) == 0);
    VBT_HOLDS(fcntl(arena.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    if (!huge.valid()) return;
    VBT_HOLDS(ftruncate(huge.get(), 4 << 20) == 0);
    VBT_HOLDS(fcntl(huge.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  }
  int descriptor(std::uint32_t i) {
    const int all[] = {strangers[0].segment_fd(),
                       strangers[0].doorbell_fd(),
                       strangers[0].place_fd(),
                       strangers[1].segment_fd(),
                       strangers[1].doorbell_fd(),
                       strangers[1].place_fd(),
                       pipe_write.get(),
                       shrinkable.get(),
                       arena.get(),
                       huge.valid() ? huge.get() : arena.get(),
                       exchange.own_fd(0),
                       exchange.own_fd(1),
                       0};
    return all[i % std::size(all)];
  }
};

Scene& scene() {
  static Scene* const made = new Scene;
  return *made;
}

void judge_parser(Bytes bytes, std::uint32_t fd_count) {
  Message message;
  if (!parse_message(bytes, fd_count, message)) return;
  const bool hello = message.type == MessageType::kHello;
  VBT_HOLDS(hello || message.arena.arena < kMaxArenas);
  VBT_HOLDS(bytes.size() == (hello ? sizeof message.hello : sizeof message.arena));
  VBT_HOLDS(fd_count == (hello ? 3u : message.type == MessageType::kArena ? 1u : 0u));
}

/// A message of the protocol, maybe spoilt somewhere; or bytes.
void speak(Input& input, Scene& all, int socket) {
  unsigned char bytes[96] = {};
  std::size_t length = 0;
  int fds[kMaxMessageFds] = {};
  std::size_t fd_count = 0;
  const std::uint8_t how = input.take();
  const Stranger& stranger = all.strangers[how >> 7];
  switch (how % 4) {
    case 0: {
      HelloMessage hello = stranger.hello((how & 0x40u) != 0);
      if ((how & 0x3cu) == 0) hello.identity = all.exchange.own_identity();
      std::memcpy(bytes, &hello, length = sizeof hello);
      fds[0] = stranger.segment_fd();
      fds[1] = stranger.doorbell_fd();
      fds[2] = stranger.place_fd();
      fd_count = 3;
      break;
    }
    case 3:
      length = input.below(sizeof bytes + 1);
      for (auto& byte : std::span(bytes).first(length)) byte = input.take();
      break;
    default: {
      ArenaMessage message;
      message.head.type = static_cast<MessageType>(2 + input.below(4));
      message.arena = (how & 8u) != 0    ? input.below(8)
                      : (how & 32u) != 0 ? static_cast<std::uint32_t>(input.number())
                                         : all.exchange.arena();
      message.size = (how & 16u) != 0 ? 1u << 16 : input.number();
      std::memcpy(bytes, &message, length = sizeof message);
      fds[0] = all.arena.get();
      fd_count = message.head.type == MessageType::kArena ? 1 : 0;
      break;
    }
  }
  const std::uint8_t spoil = input.take();
  if ((spoil & 1u) != 0) bytes[input.below(sizeof bytes)] ^= input.take();
  if ((spoil & 6u) == 6u) length = input.below(sizeof bytes + 1);
  if ((spoil & 24u) == 24u) fd_count = input.below(kMaxMessageFds + 1);
  if ((spoil & 32u) != 0 && fd_count != 0) fds[input.below(3)] = all.descriptor(input.take());
  judge_parser({bytes, length}, static_cast<std::uint32_t>(fd_count));
  (void)send_message(socket, bytes, length, {fds, fd_count});
}

/// One word of what the next to be met shows of itself.
void lie_in_header(Input& input, Stranger& stranger) {
  const std::uint64_t at = input.below(sizeof(SegmentHeader) / 4) * 4;
  const std::uint64_t value = input.number();
  std::memcpy(stranger.base() + at, &value, 4);
}

int lowest_free_descriptor() {
  const UniqueFd free(dup(STDERR_FILENO));
  return free.get();
}

}  // namespace

void run_one(Bytes bytes) {
  Scene& all = scene();
  Input input(bytes);
  judge_parser(bytes, bytes.empty() ? 0 : bytes.back() % 4);
  counts = {};
  for (Stranger& stranger : all.strangers) stranger.restore();
  const int before = lowest_free_descriptor();
  const std::uint64_t now = now_ns();
  {
    UniqueFd sockets[3];
    for (int steps = 0; !input.empty() && steps < 100; ++steps) {
      const std::uint8_t step = input.take();
      UniqueFd& socket = sockets[step % 3];
      if (!socket.valid()) socket = all.exchange.connected(now);
      switch (step / 3 % 8) {
        case 0:
          socket.reset();
          break;
        case 1:
          (void)shutdown(socket.get(), SHUT_WR);
          break;
        case 2:
          lie_in_header(input, all.strangers[step & 1]);
          break;
        case 3:
        case 4:
          all.exchange.turn(now);
          break;
        default:
          speak(input, all, socket.get());
          break;
      }
    }
    all.exchange.turn(now);
    // What was believed is what files of the system say, not what strangers do.
    for (Peer* peer = all.exchange.first_peer(); peer != nullptr; peer = peer->next) {
      VBT_HOLDS(peer->pid == getpid() && peer->wake.valid());
      for (const Arena& arena : peer->arenas)
        VBT_HOLDS(arena.base.load() == nullptr || arena.size == 1u << 16);
    }
  }
  all.exchange.turn(now);
  VBT_HOLDS(counts.ready >= counts.dead && all.exchange.living() == 0);
  // The dead are forgotten, and with them everything that they had sent.
  all.exchange.turn(now_ns() + 2 * ConnectionManager::kRetireAfterNs + 2'000'000'000);
  VBT_HOLDS(all.exchange.first_peer() == nullptr);
  VBT_HOLDS(lowest_free_descriptor() == before);
}

}  // namespace verbatim::fuzz
