// SPDX-License-Identifier: BSD-2-Clause
//
// One reading of the machine for all processes of a user on a host.
//
//   <user's folder>/.machine-<boot>-<key>   the bytes of a machine; replaced as a whole (rename)
//   <user's folder>/.machine-lock           held (flock) by who reads the machine for the others
//   <user's folder>/.machine-new-<pid>      on its way to be the first
//
// (A name of a fabric never begins with a dot.) The folder is ours alone, and its files are still
// believed only after all checks; a copy is checked and used, not the file, so that nobody can
// change it in between. What an earlier start of the host left goes away with the next reading.
//
// Any thread. Nothing here is needed: where it fails, the machine is read again, and
// VERBATIM_LOG=info says why.
#pragma once

#include <limits.h>

#include <cstdint>

#include "runtime/base/unique_fd.hpp"
#include "runtime/topo/snapshot.hpp"

namespace verbatim::topo {

class MachineShare {
 public:
  /// How long somebody else's reading is waited for.
  static constexpr std::uint64_t kPatienceNs = 5'000'000'000;

  /// False: there is no folder to share through.
  [[nodiscard]] bool open(std::uint32_t boot, std::uint64_t key) noexcept;
  /// A checked copy of what others read. False: there is none that can be believed.
  [[nodiscard]] bool fetch(Snapshot& snapshot) const noexcept;
  /// True: we are to read. False: somebody else has published meanwhile (fetch() again), or takes
  /// longer than our patience.
  [[nodiscard]] bool begin_reading() noexcept;
  /// Ends what begin_reading() began.
  void end_reading() noexcept;
  /// Makes `snapshot` what others fetch.
  void publish(const Snapshot& snapshot) const noexcept;

 private:
  void remove_leftovers() const noexcept;

  UniqueFd folder_;
  UniqueFd lock_;
  std::uint32_t boot_ = 0;
  std::uint64_t key_ = 0;
  char name_[48] = "";
  char path_[PATH_MAX] = "";
};

}  // namespace verbatim::topo
