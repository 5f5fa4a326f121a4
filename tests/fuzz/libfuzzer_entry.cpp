// SPDX-License-Identifier: BSD-2-Clause
// libFuzzer's way into a target.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/input.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  verbatim::fuzz::run_one({data, size});
  return 0;
}
