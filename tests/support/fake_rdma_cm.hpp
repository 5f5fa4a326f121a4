// SPDX-License-Identifier: BSD-2-Clause
// The kernel's side of a descriptor of the connection manager: it parses what the library wrote,
// keeps identifiers, and gives the events that a test puts there. It can answer wrongly. One
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "providers/rdma_cm/identifier.hpp"

namespace verbatim::fake {

/// How its next answers are wrong.
enum class CmLie {
  kNone,
  kNothingWritten,  ///< success, without an answer
  kIdInUse,         ///< a new identifier gets the number of a living one
  kIdBeyond,        ///< ... or one out of all proportion
  kWideNumbers,     ///< sizes and states beyond their range
};

class RdmaCm : public rdma_cm::System {
 public:
  RdmaCm();

  /// An event about an identifier: what its creator called it comes back.
  void raise(const rdma_cm::Identifier& about, rdma_cm::EventType type, std::int32_t status = 0);
  void raise(const rdma_ucm_event_resp& record) { events.push_back(record); }
  /// Somebody asks `listener` for a connection: the number that it has in the kernel.
  std::uint32_t request(const rdma_cm::Identifier& listener, const char* private_data);
  [[nodiscard]] std::uint64_t uid_of(std::uint32_t id) const { return uids_.at(id); }
  [[nodiscard]] std::size_t living() const { return uids_.size(); }
  /// The last command with this number, as its structure.
  template <class Body>
  [[nodiscard]] Body last(std::uint32_t number) const {
    Body body{};
    const std::vector<unsigned char>& bytes = bodies_.at(number);
    if (bytes.size() == sizeof body) __builtin_memcpy(&body, bytes.data(), sizeof body);
    return body;
  }
  [[nodiscard]] bool heard(std::uint32_t number) const { return bodies_.contains(number); }

  CmLie lie = CmLie::kNone;
  int refusal = 0;  ///< an errno for every command, when it is not 0
  int waited = 0;   ///< how often events were waited for
  int wait_answer = 0;
  std::deque<rdma_ucm_event_resp> events;

 private:
  static int write_entry(const rdma_cm::System& self, int fd, const void* bytes,
                         std::size_t size) noexcept;
  static int wait_entry(const rdma_cm::System& self, int fd, int timeout_ms) noexcept;
  int command(const rdma_ucm_cmd_hdr& head, const unsigned char* body);
  std::uint32_t new_id(std::uint64_t uid);

  std::map<std::uint32_t, std::uint64_t> uids_;
  std::map<std::uint32_t, std::vector<unsigned char>> bodies_;
};

}  // namespace verbatim::fake
