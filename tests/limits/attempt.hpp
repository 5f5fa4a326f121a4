// SPDX-License-Identifier: BSD-2-Clause
//
// How a life with the library calls its verbs and judges what they answer, so that every verb may
// fail, once, and the life still ends whole. One thread.
#pragma once

#include <infiniband/verbs.h>
#include <sched.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "tests/limits/conversation.hpp"
#include "tests/support/deadline.hpp"

namespace verbatim::harness {

class Attempt {
 protected:
  bool note(const char* verb, int error) {
    if (error == 0) return true;
    if (error < 0 || error > 4095) broken(verb, "answered " + std::to_string(error));
    if (course_.refusal.empty()) course_.refusal = std::string(verb) + ": " + std::strerror(error);
    return false;
  }
  void broken(const char* verb, const std::string& what) {
    if (course_.broken.empty()) course_.broken = std::string(verb) + " " + what;
  }
  /// A verb that makes something: NULL comes with an errno.
  template <class T, class Make>
  bool make(const char* verb, T*& out, Make&& make_it) {
    errno = 0;
    out = make_it();
    if (out != nullptr) return true;
    if (errno == 0) broken(verb, "made nothing and left errno 0");
    return note(verb, errno == 0 ? EIO : errno);
  }
  /// A verb that ends something: one failure of the system may make it refuse once, not twice.
  template <class T, class End>
  void end(const char* verb, T*& object, End&& end_it) {
    if (object == nullptr) return;
    if (int error = end_it(object); error != 0) {
      note(verb, error);
      error = end_it(object);
      if (error != 0) broken(verb, std::string("refuses for good: ") + std::strerror(error));
    }
    object = nullptr;
  }
  bool failed_completion(ibv_wc_status status) {
    if (status == IBV_WC_SUCCESS) return false;
    if (course_.refusal.empty())
      course_.refusal = std::string("completion: ") + ibv_wc_status_str(status);
    return true;
  }
  /// So many successes. A completion in error is a clean answer too; none at all is not.
  bool collect(ibv_cq* cq, unsigned wanted) {
    const Deadline deadline(10'000);
    while (wanted != 0) {
      ibv_wc found{};
      const int got = ibv_poll_cq(cq, 1, &found);
      if (got < 0) {
        broken("ibv_poll_cq", "answered " + std::to_string(got));
        return false;
      }
      if (got == 0) {
        if (deadline.passed()) {
          broken("ibv_poll_cq", "found no completion for a request that was accepted");
          return false;
        }
        sched_yield();
        continue;
      }
      if (failed_completion(found.status)) return false;
      --wanted;
    }
    return true;
  }

  Course course_;
};

}  // namespace verbatim::harness
