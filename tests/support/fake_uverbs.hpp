// SPDX-License-Identifier: BSD-2-Clause
// The kernel's side of a uverbs descriptor, as far as commands go: it parses what the library
// encoded, keeps objects with handles of one number space, and answers. It can be an older kernel,
// and it can answer wrongly. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "abi/kernel/write_call.hpp"
#include "providers/uverbs/object_table.hpp"
#include "providers/uverbs/system.hpp"

namespace verbatim::fake {

/// How much of the ABI it has.
enum class Age {
  kMethods,      ///< native ioctl methods
  kInvokeWrite,  ///< commands inside of an ioctl, but no method of its own for anything
  kWrite,        ///< write(2) only
};

/// How its next answers are wrong.
enum class Lie {
  kNone,
  kNothingWritten,  ///< success, without an answer
  kHandleInUse,     ///< a new object gets the handle of a living one
  kHandleBeyond,    ///< ... or one out of all proportion
  kNoDescriptor,    ///< a descriptor that is none
  kLengthShort,     ///< extended answers say that they are shorter than can be
  kLengthLong,      ///< ... or longer
  kTooMany,         ///< more rows than there was room for
  kWideNumbers,     ///< numbers of queue pairs and states beyond their range
};

class Uverbs : public uverbs::System {
 public:
  explicit Uverbs(Age age);
  ~Uverbs();
  Uverbs(const Uverbs&) = delete;
  Uverbs& operator=(const Uverbs&) = delete;

  /// What the next create commands' driver data is answered with.
  void set_driver_reply(std::vector<unsigned char> reply) { driver_reply_ = std::move(reply); }
  /// A record that the event descriptor will bring.
  void raise(std::uint64_t element, std::uint32_t type);
  void complete(std::uint64_t cq_number);
  /// The same of which only the beginning comes.
  void raise_part(std::size_t bytes);
  void complete_part(std::size_t bytes);
  /// Both descriptors end, when what is in them has been read.
  void end_events();
  [[nodiscard]] std::size_t living() const { return objects_.size(); }
  [[nodiscard]] std::uint64_t number_of(std::uint32_t handle) const;

  Lie lie = Lie::kNone;
  int refusal = 0;  ///< an errno for every call, when it is not 0
  std::uint32_t events_reported = 0;
  bool pages_on_demand = false;    ///< what the device says of it
  unsigned refused_access = 0;     ///< rights of regions, as a wrong argument
  bool pins_for_reading = false;   ///< a region cannot be made writable afterwards
  unsigned undying = ~0u;          ///< the handle of what is not destroyed: EBUSY
  std::uint64_t device_flags = 0;  ///< device_cap_flags_ex
  /// The last change of a region that was asked for.
  struct Change {
    std::uint32_t handle, flags, access, pd;
    std::uint64_t start, length, address;
  };
  Change changed{};
  unsigned qp_access = 0;  ///< rights of the last change of a queue pair
  unsigned methods_called = 0;
  unsigned invokes = 0;
  unsigned writes = 0;

 private:
  struct Object {
    uverbs::Kind kind;
    std::uint64_t number;
  };
  struct Call;

  static int ioctl_entry(const uverbs::System& self, int fd,
                         kernel::IoctlCall::Message& message) noexcept;
  static int write_entry(const uverbs::System& self, int fd, const void* bytes,
                         std::size_t size) noexcept;
  int method(kernel::IoctlCall::Message& message);
  int invoke(kernel::IoctlCall::Message& message);
  int write(const unsigned char* bytes, std::size_t size);
  int command(std::uint32_t number, const Call& call);
  int create(uverbs::Kind kind, std::uint64_t number, std::uint32_t& handle);
  int destroy(uverbs::Kind kind, std::uint32_t handle);
  void answer_driver(void* out, std::size_t size) const;
  [[nodiscard]] int new_descriptor(int& writer) const;

  Age age_;
  std::map<std::uint32_t, Object> objects_;
  std::vector<unsigned char> driver_reply_;
  int async_writer_ = -1;
  int completion_writer_ = -1;
};

}  // namespace verbatim::fake
