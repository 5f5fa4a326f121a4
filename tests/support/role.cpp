// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/role.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "tests/support/condition.hpp"

namespace verbatim::harness {
namespace {

Role* first_role = nullptr;
constexpr std::string_view kRoleFlag = "--vbt-role=";
/// A role that outlives its test is ended by this, whatever it waits for.
constexpr unsigned kLifetimeSeconds = 600;

}  // namespace

Role::Role(const char* role_name, RoleBody role_body)
    : name(role_name), body(role_body), next(first_role) {
  first_role = this;
}

std::optional<int> run_role_if_named(int argc, char** argv) {
  if (argc < 2 || !std::string_view(argv[1]).starts_with(kRoleFlag)) return std::nullopt;
  const std::string_view wanted = std::string_view(argv[1]).substr(kRoleFlag.size());
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kLifetimeSeconds);
  fcntl(kControlFd, F_SETFD, FD_CLOEXEC);
  apply_condition();
  for (Role* role = first_role; role != nullptr; role = role->next) {
    if (wanted != role->name) continue;
    try {
      Control control(kControlFd);
      return role->body(control);
    } catch (const PeerGone&) {
      // The test ended, or failed and gave up; it knows why.
      return EXIT_FAILURE;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "role %s: %s\n", role->name, error.what());
      return EXIT_FAILURE;
    }
  }
  std::fprintf(stderr, "no role is called %s\n", argv[1] + kRoleFlag.size());
  return EXIT_FAILURE;
}

}  // namespace verbatim::harness
