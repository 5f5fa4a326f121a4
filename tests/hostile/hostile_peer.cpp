// SPDX-License-Identifier: BSD-2-Clause
//
// The hostile process: no verbs program, only a stranger with sockets. It scribbles over everything
// that it may write: its own segment, the victim's doorbells; it misuses the ways to wake; it says
// anything on the sockets in the fabric folder and passes anything along; it changes its files
// after they were looked at, claims the numbers and the identity of others, and comes back as
// somebody else.
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "providers/shm/fabric/fabric_folder.hpp"
#include "providers/shm/fabric/peer_messages.hpp"
#include "providers/shm/fabric/wake_socket.hpp"
#include "tests/fuzz/liar.hpp"
#include "tests/hostile/orders.hpp"
#include "tests/hostile/xrc_liar.hpp"
#include "tests/support/deadline.hpp"
#include "tests/support/role.hpp"

namespace verbatim::hostile {
namespace {

using namespace verbatim::shm;
using fuzz::Input;
using fuzz::Liar;
using fuzz::Stranger;
using fuzz::Target;

/// Somebody that one has met: what he sent, and his segment to read in.
struct Met {
  UniqueFd socket;
  HelloMessage hello;
  UniqueFd fds[3];
  const unsigned char* segment = nullptr;
  std::uint64_t bytes = 0;
  Doorbells* doorbells = nullptr;

  Met() = default;
  Met(const Met&) = delete;
  ~Met() {
    if (segment != nullptr) munmap(const_cast<unsigned char*>(segment), bytes);
    if (doorbells != nullptr) munmap(static_cast<void*>(doorbells), sizeof(Doorbells));
  }
  const QpRecord* record_of(std::uint32_t qpn) const {
    const auto& head = *reinterpret_cast<const SegmentHeader*>(segment);
    return reinterpret_cast<const QpRecord*>(segment + head.qp_table) + qpn % kQpnsPerBlock;
  }
};

class HostilePeer {
 public:
  explicit HostilePeer(const HostileOrder& order) : order_(order), random_(order.seed) {
    VBT_HOLDS(folder_.open() == 0 && wakes_.open(folder_) == 0);
    // Whom it will pretend to be: he answers as the honest do.
    Stranger caller(random_() | 1, order_.block);
    VBT_HOLDS(meet(caller, order_.honest_qpn, honest_));
    honest_.socket.reset();
    VBT_HOLDS(fcntl(growing_.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    become_somebody();
  }

  void run() {
    for (std::uint32_t round = 0; round < order_.rounds; ++round) {
      keep_up(round);
      do_something();
      if (round % 4 == 0) let_victim_act();
    }
  }

 private:
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_()) % bound; }
  bool connect_to(std::uint32_t qpn, UniqueFd& socket) {
    return harness::wait_until([&] { return folder_.connect(qpn >> kQpnBlockBits, socket) == 0; },
                               5000);
  }
  /// An honest handshake, but for who makes it.
  bool meet(const Stranger& as, std::uint32_t qpn, Met& met) {
    if (!connect_to(qpn, met.socket) || as.introduce(met.socket.get(), below(2) == 0) != 0)
      return false;
    Received received;
    int error = EAGAIN;
    if (!harness::wait_until(
            [&] {
              error = receive_message(met.socket.get(), received);
              return error != EAGAIN;
            },
            5000))
      return false;
    Message message;
    if (error != 0 || !parse_message({received.data, received.bytes}, received.fd_count, message) ||
        message.type != MessageType::kHello)
      return false;
    met.hello = message.hello;
    for (int i = 0; i < 3; ++i) met.fds[i] = static_cast<UniqueFd&&>(received.fds[i]);
    met.bytes = static_cast<std::uint64_t>(lseek(met.fds[0].get(), 0, SEEK_END));
    void* const segment =
        mmap(nullptr, met.bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, met.fds[0].get(), 0);
    void* const bells = mmap(nullptr, sizeof(Doorbells), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_NORESERVE, met.fds[1].get(), 0);
    VBT_HOLDS(segment != MAP_FAILED && bells != MAP_FAILED);
    met.segment = static_cast<unsigned char*>(segment);
    met.doorbells = static_cast<Doorbells*>(bells);
    return Stranger::say_met(met.socket.get()) == 0;
  }

  /// A new identity, which the victim will meet.
  void become_somebody() {
    liars_.clear();
    xrc_.reset();
    for (int tries = 0;; ++tries) {
      VBT_HOLDS(tries < 100);
      victim_.emplace();
      stranger_.emplace(random_() | 1, order_.block);
      if (meet(*stranger_, order_.victim.qpns[0], *victim_)) break;
    }
    VBT_HOLDS(wakes_.connect(stranger_->place_fd(), own_wake_) == 0);
    VBT_HOLDS(wakes_.connect(victim_->fds[2].get(), victim_wake_) == 0);
    claim_two_blocks();
    if (below(2) == 0) let_wakes_wait();
    for (std::uint32_t i = 0; i < kQps; ++i) {
      Target& target = targets_[i];
      target.qpn = order_.victim.qpns[i];
      target.record = victim_->record_of(target.qpn);
      target.arena_bytes = 1u << 16;
      for (std::uint32_t k = 0; k < 4; ++k) {
        target.keys[k] = order_.victim.keys[k];
        target.addresses[k] = order_.victim.addresses[k];
      }
      sessions_[i] = 0;
      liars_.push_back(std::make_unique<Liar>(*stranger_, i, target));
      liars_[i]->be_ready();
    }
    xrc_.emplace(*stranger_, order_.victim, VictimView{victim_->segment, victim_->bytes});
    xrc_->be_honest();
  }

  /// Ours and the honest one's, whom the victim may not have met yet.
  void claim_two_blocks() {
    SegmentHeader& head = stranger_->head();
    head.blocks[0].store(order_.block);
    head.blocks[1].store(order_.honest_qpn >> kQpnBlockBits);
    head.block_count.store(2);
  }

  /// Whoever sends to our wake socket now finds it full.
  void let_wakes_wait() {
    char byte = 0;
    while (send(own_wake_.get(), &byte, 1, MSG_DONTWAIT) == 1) {
    }
  }

  /// What the victim needs to see of an honest process, so that there is something to spoil.
  void keep_up(std::uint32_t round) {
    const std::uint32_t i = round % kQps;
    const std::uint64_t session = targets_[i].record->accepts.load();
    if (session != sessions_[i] || round % 512 == i) {
      sessions_[i] = session;
      liars_[i]->be_ready();
      if (session != 0) liars_[i]->connect();
      claim_two_blocks();
    }
    if (round % 256 == 0)
      for (auto& liar : liars_) liar->record().active.store(0);
    if (round % 64 == 0) {
      xrc_->be_honest();
      ask_to_connect_to(xrc_->queue_to_connect_to());
    }
    if (round % 16 == 0) hear();
  }

  /// It is no use to lie to somebody who had no time to look.
  void let_victim_act() {
    const auto acts = [this] {
      std::uint64_t sum = 0;
      for (const Target& target : targets_)
        sum += target.record->active.load() + target.record->consumed.load();
      return sum;
    };
    const std::uint64_t before = acts();
    (void)harness::wait_until([&] { return acts() != before; }, 1);
  }

  /// The victim asks for arenas; or has had enough of us.
  void hear() {
    for (int messages = 0; messages < 8; ++messages) {
      Received received;
      const int error = receive_message(victim_->socket.get(), received);
      if (error == EAGAIN) return;
      if (error != 0) {
        become_somebody();
        return;
      }
      Message message;
      if (parse_message({received.data, received.bytes}, received.fd_count, message) &&
          message.type == MessageType::kWantArena)
        answer_want(message.arena.arena);
    }
  }
  void answer_want(std::uint32_t arena) {
    ArenaMessage message;
    message.head.type = MessageType::kArena;
    message.arena = arena;
    message.size = below(4) == 0 ? random_() : 1u << 16;
    UniqueFd file(memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    VBT_HOLDS(file.valid() && ftruncate(file.get(), 1 << 16) == 0);
    if (below(8) != 0) VBT_HOLDS(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    const int fd = below(8) == 0 ? any_descriptor() : file.get();
    if (below(4) == 0) message.head.type = MessageType::kRefused;
    (void)send_message(victim_->socket.get(), &message, sizeof message,
                       {&fd, message.head.type == MessageType::kArena ? 1u : 0u});
  }

  void do_something() {
    switch (below(100)) {
      case 0:
      case 1:
      case 2:
      case 3:
        scribble_on_doorbells();
        return;
      case 4:
      case 5:
        disturb_wake_sockets();
        return;
      case 6:
      case 7:
        talk_nonsense();
        return;
      case 8:
        flood_with_sockets();
        return;
      case 9:
      case 10:
        talk_on_own_socket();
        return;
      case 11:
        change_files();
        return;
      case 12:
        claim_numbers();
        return;
      case 13:
        if (below(4) == 0) steal_identity();
        return;
      case 14:
        if (below(8) == 0) become_somebody();
        return;
      default:
        if (below(2) == 0)
          lie();
        else
          lie_of_xrc();
        return;
    }
  }
  void lie_of_xrc() {
    unsigned char bytes[64];
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random_());
    Input input(bytes);
    if (xrc_->act(input)) ask_to_connect_to(xrc_->queue_to_connect_to());
  }
  void ask_to_connect_to(std::uint32_t index) {
    victim_->doorbells->service.ring(index);
    victim_->doorbells->requests.ring(index);
    wake();
  }

  void lie() {
    unsigned char bytes[64];
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random_());
    Input input(bytes);
    const std::uint32_t i = below(kQps);
    if (!liars_[i]->act(input)) return;
    ask_to_connect_to(targets_[i].qpn % kQpnsPerBlock);
  }
  void wake() {
    const char byte = 0;
    (void)send(victim_wake_.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  void scribble_on_doorbells() {
    auto* words = reinterpret_cast<std::atomic<std::uint64_t>*>(victim_->doorbells);
    constexpr std::uint32_t kWords = offsetof(Doorbells, cqs[4]) / sizeof(std::uint64_t);
    for (std::uint32_t n = 1 + below(64); n != 0; --n) {
      const std::uint64_t value = below(16) == 0 ? 0 : random_() << below(64);
      words[below(kWords)].store(value);
    }
    wake();
  }
  void disturb_wake_sockets() {
    unsigned char bytes[2048] = {};
    const int fds[] = {any_descriptor(), any_descriptor()};
    switch (below(4)) {
      case 0:
        for (int i = 0; i < 200; ++i) wake();
        break;
      case 1:
        for (int i = 0; i < 20; ++i)
          (void)send_message(victim_wake_.get(), bytes, below(sizeof bytes), {fds, below(3)});
        break;
      case 2:  // room again, for one
        (void)recv(stranger_->woken_fd(), bytes, sizeof bytes, MSG_DONTWAIT);
        break;
      default:
        let_wakes_wait();
        break;
    }
  }
  int any_descriptor() {
    const int all[] = {stranger_->segment_fd(),
                       stranger_->doorbell_fd(),
                       stranger_->place_fd(),
                       honest_.fds[0].get(),
                       honest_.fds[1].get(),
                       honest_.fds[2].get(),
                       victim_->fds[0].get(),
                       victim_->fds[1].get(),
                       victim_->fds[2].get(),
                       growing_.get(),
                       huge_.valid() ? huge_.get() : 0,
                       0,
                       victim_->socket.get()};
    return all[below(std::size(all))];
  }
  void talk_nonsense() {
    UniqueFd socket;
    if (!connect_to(order_.victim.qpns[0], socket)) return;
    for (std::uint32_t messages = 1 + below(3); messages != 0; --messages) {
      unsigned char bytes[200];
      for (auto& byte : bytes) byte = static_cast<unsigned char>(random_());
      std::size_t length = below(sizeof bytes);
      if (below(4) != 0) {
        const HelloMessage hello = stranger_->hello(true);
        std::memcpy(bytes, &hello, length = sizeof hello);
        if (below(2) == 0) bytes[below(sizeof hello)] ^= static_cast<unsigned char>(random_());
      }
      int fds[3] = {any_descriptor(), any_descriptor(), any_descriptor()};
      (void)send_message(socket.get(), bytes, length, {fds, below(4)});
    }
    if (below(4) == 0) silent_.push_back(static_cast<UniqueFd&&>(socket));
  }
  void flood_with_sockets() {
    while (silent_.size() > 60) silent_.pop_front();
    for (int i = 0; i < 20; ++i) {
      UniqueFd socket;
      if (folder_.connect(order_.victim.qpns[0] >> kQpnBlockBits, socket) == 0)
        silent_.push_back(static_cast<UniqueFd&&>(socket));
    }
  }
  void talk_on_own_socket() {
    ArenaMessage message;
    message.head.type = static_cast<MessageType>(2 + below(4));
    message.arena = below(1100);
    message.size = random_() >> below(64);
    const int fd = any_descriptor();
    const bool with_file = (message.head.type == MessageType::kArena) != (below(50) == 0);
    for (std::uint32_t n = 1 + below(50); n != 0; --n)
      (void)send_message(victim_->socket.get(), &message, sizeof message,
                         {&fd, with_file ? 1u : 0u});
  }
  void change_files() {
    const int fd = stranger_->segment_fd();
    constexpr auto kBytes = static_cast<off_t>(Stranger::kBytes);
    switch (below(3)) {
      case 0:
        (void)!ftruncate(fd, kBytes << below(12));
        break;
      case 1:
        (void)!ftruncate(fd, 0);  // it is sealed against this
        break;
      default:
        (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, below(256) * 4096, 65536);
        (void)fallocate(stranger_->doorbell_fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                        sizeof(Doorbells));
        break;
    }
  }
  void claim_numbers() {
    SegmentHeader& head = stranger_->head();
    const std::uint32_t claims[] = {order_.honest_qpn >> kQpnBlockBits,
                                    order_.victim.qpns[0] >> kQpnBlockBits,
                                    order_.block,
                                    static_cast<std::uint32_t>(random_()),
                                    0,
                                    order_.block};
    for (auto& block : head.blocks) block.store(claims[below(std::size(claims))]);
    head.block_count.store(below(3) == 0 ? static_cast<std::uint32_t>(random_()) : 16);
  }
  /// The honest one's name, and files, from our mouth.
  void steal_identity() {
    UniqueFd socket;
    if (!connect_to(order_.victim.qpns[0], socket)) return;
    const int fds[] = {honest_.fds[0].get(), honest_.fds[1].get(),
                       below(2) == 0 ? honest_.fds[2].get() : stranger_->place_fd()};
    (void)send_message(socket.get(), &honest_.hello, sizeof honest_.hello, fds);
    silent_.push_back(static_cast<UniqueFd&&>(socket));
  }

  HostileOrder order_;
  std::mt19937_64 random_;
  FabricFolder folder_;
  WakeSocket wakes_;
  UniqueFd own_wake_, victim_wake_;
  Met honest_;
  std::optional<Met> victim_;
  std::optional<Stranger> stranger_;
  Target targets_[kQps];
  std::vector<std::unique_ptr<Liar>> liars_;
  std::optional<XrcLiar> xrc_;
  std::uint64_t sessions_[kQps] = {};
  std::deque<UniqueFd> silent_;
  UniqueFd growing_{memfd_create("growing", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  UniqueFd huge_{memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB)};
};

VBT_ROLE(hostile_peer) {
  HostilePeer peer(control.receive_value<HostileOrder>());
  control.send_value(std::int32_t{0});  // the victim knows it
  (void)control.receive_value<std::int32_t>();
  peer.run();
  control.send_value(std::int32_t{0});
  return 0;
}

}  // namespace
}  // namespace verbatim::hostile
