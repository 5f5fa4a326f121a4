// SPDX-License-Identifier: BSD-2-Clause
// Whether processes here may copy from and to each other's memory: really tried. Main thread.
#pragma once

namespace verbatim::cli {

struct CopyCheck {
  enum Answer { kWorks, kRefused, kNotTried };
  Answer answer;
  int error;         // errno; 0: unknown
  const char* call;  // that failed
};

/// `permit`: let any process of the user attach, as the library does where yama restricts it.
CopyCheck check_copies(bool permit);

}  // namespace verbatim::cli
