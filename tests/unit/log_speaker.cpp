// SPDX-License-Identifier: BSD-2-Clause
// Says one line of each level; the tests run it with different environments, because a process
// reads its level once.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"

namespace {

int speak() {
  errno = EXDEV;
  verbatim::log_error("an error %d", 1);
  verbatim::log_warn("a warning %s", "2");
  verbatim::log_info("a fact");
  verbatim::log_debug("a detail");
  static constinit verbatim::LogOnce once;
  for (int i = 0; i < 3; ++i) {
    if (once.first()) verbatim::log_error("once");
  }
  return errno == EXDEV ? 0 : 1;
}

int read_environment() {
  constexpr std::string_view kChoices[] = {"red", "green"};
  std::printf("%llu %zu %s\n",
              static_cast<unsigned long long>(
                  verbatim::environment_integer("VERBATIM_TEST_NUMBER", 5, 2, 100)),
              verbatim::environment_choice("VERBATIM_TEST_CHOICE", kChoices, 1),
              verbatim::environment_text("VERBATIM_TEST_TEXT", 8) == nullptr ? "no" : "yes");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "environment") == 0) return read_environment();
  if (argc == 2 && std::strcmp(argv[1], "long") == 0) {
    verbatim::log_error("%s", std::string(5000, 'x').c_str());
    return 0;
  }
  return speak();
}
