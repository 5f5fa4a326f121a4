// SPDX-License-Identifier: BSD-2-Clause
// The supervisor's side of two measuring processes. They are this same program, started twice with
// another role. The destructor ends both; a failure at either end comes out of run() as an
// exception that names the block.
#pragma once

#include <string>

#include "perf/ends/request.hpp"
#include "perf/ends/shared_page.hpp"
#include "perf/support/affinity.hpp"
#include "perf/support/process.hpp"

namespace verbatim::perf {

class Pair {
 public:
  /// `fabric`: the folder in which the two ends' library instances find each other.
  Pair(const CorePair& cores, const std::string& fabric);
  ~Pair();
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  /// One block at both ends; the near end's reply, with the larger errors of either end thrown.
  Reply run(const Request& request, const std::string& what);

  const Histogram& stamps() const { return shared_->stamps; }
  pid_t near_pid() const { return near_.pid(); }
  pid_t far_pid() const { return far_.pid(); }

 private:
  Fd memory_;
  SharedPage* shared_ = nullptr;
  Fd near_socket_;
  Fd far_socket_;
  Child near_;
  Child far_;
};

}  // namespace verbatim::perf
