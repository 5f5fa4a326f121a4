// SPDX-License-Identifier: BSD-2-Clause
//
// A test that needs another process starts its own executable again with the name of a role:
//
//   VBT_ROLE(echo) {                       // int echo(Control& control), the exit status
//     control.send_value(control.receive_value<int>());
//     return 0;
//   }
//   TEST(Control, ...) { Child child("echo"); child.control().send_value(7); ... }
//
// posix_spawn and a fresh program image rather than fork: a forked child would inherit the
// library's mappings, sockets and locks, but not its thread.
#pragma once

#include <optional>

#include "tests/support/control.hpp"

namespace verbatim::harness {

using RoleBody = int (*)(Control&);

struct Role {
  Role(const char* role_name, RoleBody role_body);
  const char* name;
  RoleBody body;
  Role* next;
};

/// The exit status, if argv names a role. Called by main() before GoogleTest sees argv.
std::optional<int> run_role_if_named(int argc, char** argv);

/// The descriptor on which a child finds its control channel.
inline constexpr int kControlFd = 3;

}  // namespace verbatim::harness

#define VBT_ROLE(role_name)                                                                \
  static int role_name##_role(::verbatim::harness::Control& control);                      \
  static ::verbatim::harness::Role role_name##_registration{#role_name, role_name##_role}; \
  static int role_name##_role([[maybe_unused]] ::verbatim::harness::Control& control)
