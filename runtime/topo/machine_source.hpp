// SPDX-License-Identifier: BSD-2-Clause
//
// Which machine is meant: this host, or the one that the user describes for hwloc's programs
// (HWLOC_XMLFILE, then HWLOC_SYNTHETIC), and the key under which processes share what was read.
// Any thread, as far as nobody calls setenv at that moment; setuid programs see this host only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/topo/machine_layout.hpp"

namespace verbatim::topo {

class MachineSource {
 public:
  MachineSource() noexcept = default;
  MachineSource(const MachineSource&) = delete;
  MachineSource& operator=(const MachineSource&) = delete;
  ~MachineSource();

  /// Reads the environment, and the XML file. False, with the reason logged: what the user names
  /// cannot be read.
  [[nodiscard]] bool find() noexcept;

  [[nodiscard]] Origin origin() const noexcept { return origin_; }
  /// The description, ended with '\0'; its length does not count that.
  [[nodiscard]] const char* text() const noexcept { return text_; }
  [[nodiscard]] std::size_t length() const noexcept { return length_; }
  /// What messages call the source: "HWLOC_XMLFILE=/tmp/x.xml", cut where it is long.
  [[nodiscard]] const char* name() const noexcept { return name_; }

  /// A number of this start of this host; 0: it cannot be told, so nothing can be shared.
  [[nodiscard]] std::uint32_t boot() const noexcept { return boot_; }
  /// A hash of the description and of what could change how it is read: `reader` (a version), the
  /// processors and nodes that are online.
  [[nodiscard]] std::uint64_t key(std::uint32_t reader) const noexcept;

 private:
  [[nodiscard]] bool read_file(const char* path) noexcept;

  Origin origin_ = Origin::kThisHost;
  char* text_ = nullptr;
  std::size_t length_ = 0;
  std::uint32_t boot_ = 0;
  char name_[128] = "this host";
};

}  // namespace verbatim::topo
