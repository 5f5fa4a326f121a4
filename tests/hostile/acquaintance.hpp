// SPDX-License-Identifier: BSD-2-Clause
//
// What a stranger has of a process that it has met: a look at its segment, its doorbells, and the
// way to wake it.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "providers/shm/fabric/fabric_folder.hpp"
#include "providers/shm/fabric/peer_messages.hpp"
#include "providers/shm/fabric/wake_socket.hpp"
#include "tests/fuzz/stranger.hpp"
#include "tests/hostile/victim_view.hpp"
#include "tests/support/deadline.hpp"

namespace verbatim::hostile {

class Acquaintance {
 public:
  Acquaintance() = default;
  Acquaintance(const Acquaintance&) = delete;
  Acquaintance& operator=(const Acquaintance&) = delete;
  ~Acquaintance() {
    if (view_.segment != nullptr) munmap(const_cast<unsigned char*>(view_.segment), view_.bytes);
    if (doorbells_ != nullptr) munmap(static_cast<void*>(doorbells_), sizeof(shm::Doorbells));
  }

  /// Introduces `stranger` to the process that `qpn` leads to, as an honest one does.
  void make(const fuzz::Stranger& stranger, std::uint32_t qpn) {
    shm::FabricFolder folder;
    ASSERT_EQ(folder.open(), 0);
    ASSERT_TRUE(harness::wait_until(
        [&] { return folder.connect(qpn >> shm::kQpnBlockBits, socket_) == 0; }));
    ASSERT_EQ(stranger.introduce(socket_.get(), false), 0);
    shm::Received answer;
    ASSERT_TRUE(
        harness::wait_until([&] { return shm::receive_message(socket_.get(), answer) == 0; }));
    ASSERT_EQ(answer.fd_count, 3u);
    const auto bytes = static_cast<std::uint64_t>(lseek(answer.fds[0].get(), 0, SEEK_END));
    void* const segment =
        mmap(nullptr, bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, answer.fds[0].get(), 0);
    ASSERT_NE(segment, MAP_FAILED);
    view_ = {static_cast<const unsigned char*>(segment), bytes};
    void* const bells = mmap(nullptr, sizeof(shm::Doorbells), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_NORESERVE, answer.fds[1].get(), 0);
    ASSERT_NE(bells, MAP_FAILED);
    doorbells_ = static_cast<shm::Doorbells*>(bells);
    shm::WakeSocket own;
    ASSERT_EQ(own.open(folder), 0);
    ASSERT_EQ(own.connect(answer.fds[2].get(), wake_), 0);
  }

  const VictimView& view() const { return view_; }
  /// Of a queue pair in the first block of its numbers.
  const shm::QpRecord& record_of(std::uint32_t qpn) const {
    return *view_.record(qpn % shm::kQpnsPerBlock);
  }
  void announce(const shm::QpRecord& message_for) {
    doorbells_->cqs[message_for.cq % shm::kMaxCqs].ring(message_for.cq_bit %
                                                        shm::CqDoorbells::kBells);
  }
  /// Of its service thread, for this queue pair.
  void ring(std::uint32_t qpn) {
    doorbells_->service.ring(qpn % shm::kQpnsPerBlock);
    doorbells_->requests.ring(qpn % shm::kQpnsPerBlock);
  }
  void wake() {
    const char byte = 0;
    (void)send(wake_.get(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }

 private:
  UniqueFd socket_, wake_;
  VictimView view_{};
  shm::Doorbells* doorbells_ = nullptr;
};

}  // namespace verbatim::hostile
