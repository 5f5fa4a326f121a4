// SPDX-License-Identifier: BSD-2-Clause
//
// Answers of libibverbs.so.1 to calls that no function of the archive is behind: one for each
// exported name and version (names.txt). `symbol` is the function, `version` what a program binds to.
#pragma once

#include "abi/dropin/private_names.hpp"
#include "abi/dropin/refused.hpp"

// Assembly and not an attribute: Clang has none. The arguments of the real functions are not looked
// at, so that they need not be declared.
#define DROPIN_VERSION(symbol, version)     \
  __asm__(".symver " #symbol ", " version); \
  extern "C" [[gnu::visibility("default")]]

#define DROPIN_REFUSED(type, symbol, version, answer)          \
  DROPIN_VERSION(symbol, version) type symbol();               \
  type symbol() {                                              \
    static constinit verbatim::LogOnce once;                   \
    if (once.first()) verbatim::dropin::tell_refused(version); \
    return answer;                                             \
  }

#define DROPIN_code(name, symbol, version) DROPIN_REFUSED(int, symbol, version, EOPNOTSUPP)
#define DROPIN_null(name, symbol, version) \
  DROPIN_REFUSED(void*, symbol, version, (errno = EOPNOTSUPP, nullptr))
#define DROPIN_minus(name, symbol, version) \
  DROPIN_REFUSED(int, symbol, version, (errno = EOPNOTSUPP, -1))

// What drivers call as they are loaded, and when they clean up: nothing is lost.
#define DROPIN_nothing(name, symbol, version)    \
  DROPIN_VERSION(symbol, version) void symbol(); \
  void symbol() {}

#define DROPIN_word(name, symbol, version)     \
  DROPIN_VERSION(symbol, version) bool symbol; \
  bool symbol = false;

// A function of private_names.hpp.
#define DROPIN_own(name, symbol, version) \
  DROPIN_VERSION(symbol, version)         \
  decltype(dropin_##name) symbol __attribute__((alias("dropin_" #name)));
