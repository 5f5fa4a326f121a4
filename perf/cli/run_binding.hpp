// SPDX-License-Identifier: BSD-2-Clause
// Which processors a rank runs on: cores in the machine's order, in which neighbours are near.
#pragma once

#include <sched.h>

#include <vector>

namespace verbatim::cli {

/// One for each core that this process may use: its processors, as far as they may be used.
std::vector<cpu_set_t> allowed_cores();

/// While it lives, processes that are started begin on `processors`.
class StartedOn {
 public:
  explicit StartedOn(const cpu_set_t& processors);
  ~StartedOn();
  StartedOn(const StartedOn&) = delete;
  StartedOn& operator=(const StartedOn&) = delete;

 private:
  cpu_set_t before_;
  bool is_changed_ = false;
};

}  // namespace verbatim::cli
