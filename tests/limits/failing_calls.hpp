// SPDX-License-Identifier: BSD-2-Clause
//
// Makes one allocation or one system call of the library fail: the linker leads what the archive
// calls (--wrap) to counting functions. Counts only while armed, in every thread of this process,
// the library's own included.
#pragma once

#include <string>

namespace verbatim::harness {

/// From now on calls are counted from 1, and number `which` fails as the kernel or libc would let
/// it fail; 0: none does.
void arm_failure(unsigned which);
/// Calls counted since it was armed.
unsigned disarm_failure();
/// The function whose call was made to fail; empty: none was.
std::string failed_call();

}  // namespace verbatim::harness
