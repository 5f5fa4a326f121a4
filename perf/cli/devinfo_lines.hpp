// SPDX-License-Identifier: BSD-2-Clause
// The blocks of `ibv_devinfo` output, each a pure function of what a query answered.
//
// Main thread; they write to stdout. Byte for byte what the classic tool prints for the same
// answers (tests/tools draws the answers at random and compares).
#pragma once

#include <infiniband/verbs.h>

#include <string_view>

namespace verbatim::cli {

/// Name, transport, versions, GUIDs; `board_id` only when not empty.
void print_device_identity(const ibv_device& device, const ibv_device_attr& attr,
                           std::string_view board_id);
/// What -v adds about the device as a whole.
void print_device_limits(const ibv_device_attr& attr);
void print_device_extended_caps(const ibv_device_attr_ex& attr);
/// Which of the device's atomics are so for the processor too: what the classic tool leaves out.
void print_pci_atomics(const ibv_pci_atomic_caps& caps);

void print_port(const ibv_port_attr& port);
/// What -v adds about a port, before its GIDs.
void print_port_details(const ibv_device& device, const ibv_port_attr& port);
void print_gid(int index, const union ibv_gid& gid, ibv_gid_type type, const ibv_port_attr& port);

}  // namespace verbatim::cli
