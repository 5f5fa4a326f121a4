// SPDX-License-Identifier: BSD-2-Clause
// What a rank of a test must find: if not, it says so and ends. The program has its number in `rank`.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(what)                                                                                \
  do {                                                                                             \
    if (!(what)) {                                                                                 \
      (void)std::fprintf(stderr, "rank %d: %s:%d: not so: %s\n", rank, __FILE__, __LINE__, #what); \
      std::exit(1);                                                                                \
    }                                                                                              \
  } while (false)
