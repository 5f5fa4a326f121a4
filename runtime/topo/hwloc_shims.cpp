// SPDX-License-Identifier: BSD-2-Clause
// The functions and variables to which the build turns hwloc's undefined names (CMakeLists.txt has
// the list).
#include "runtime/topo/hwloc_shims.hpp"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "runtime/base/log.hpp"

namespace verbatim::topo {
namespace {

/// Where the calling thread goes when hwloc gives up. (Initial-exec: the other models may allocate
/// and need the dynamic loader.)
[[gnu::tls_model("initial-exec")]] thread_local constinit jmp_buf* way_out = nullptr;
constinit std::atomic<bool> gave_up{false};

[[noreturn]] void leave() noexcept {
  gave_up.store(true, std::memory_order_relaxed);
  longjmp(*way_out, 1);  // never null: hwloc runs within run_guarded() only
}

}  // namespace

// Data that hwloc reaches through us; every thread writes the same.
extern "C" {
[[gnu::visibility("hidden")]] constinit std::atomic<FILE*> vbt_hwloc_stderr{nullptr};
[[gnu::visibility("hidden")]] constinit std::atomic<FILE*> vbt_hwloc_stdout{nullptr};
[[gnu::visibility("hidden")]] constinit std::atomic<char*> vbt_hwloc_program_invocation_name{
    nullptr};
}
static_assert(sizeof(std::atomic<FILE*>) == sizeof(FILE*));

bool run_guarded(void (*work)(void*), void* argument) noexcept {
  if (gave_up.load(std::memory_order_relaxed)) return false;
  vbt_hwloc_stderr.store(stderr, std::memory_order_relaxed);
  vbt_hwloc_stdout.store(stdout, std::memory_order_relaxed);
  vbt_hwloc_program_invocation_name.store(program_invocation_name, std::memory_order_relaxed);
  jmp_buf here;
  if (_setjmp(here) != 0) {
    way_out = nullptr;
    return false;
  }
  way_out = &here;
  work(argument);
  way_out = nullptr;
  return true;
}

extern "C" {

[[gnu::visibility("hidden")]] void* vbt_hwloc_dlopen(const char* name, int flags);
[[gnu::visibility("hidden")]] void* vbt_hwloc_dlsym(void* library, const char* name);
[[gnu::visibility("hidden")]] int vbt_hwloc_dlclose(void* library);
[[gnu::visibility("hidden")]] char* vbt_hwloc_dlerror();
[[gnu::visibility("hidden")]] void* vbt_hwloc_udev_new();
[[gnu::visibility("hidden")]] void* vbt_hwloc_udev_unref(void* udev);
[[gnu::visibility("hidden")]] void* vbt_hwloc_udev_device_new_from_subsystem_sysname(
    void* udev, const char* subsystem, const char* name);
[[gnu::visibility("hidden")]] const char* vbt_hwloc_udev_device_get_property_value(void* device,
                                                                                   const char* key);
[[gnu::visibility("hidden")]] void* vbt_hwloc_udev_device_unref(void* device);
[[gnu::visibility("hidden")]] char* vbt_hwloc_getenv(const char* name);
[[noreturn, gnu::visibility("hidden")]] void vbt_hwloc_abort();
[[noreturn, gnu::visibility("hidden")]] void vbt_hwloc_assert_fail(const char* expression,
                                                                   const char* file, unsigned line,
                                                                   const char* function);

void* vbt_hwloc_dlopen(const char*, int) { return nullptr; }
void* vbt_hwloc_dlsym(void*, const char*) { return nullptr; }
int vbt_hwloc_dlclose(void*) { return 0; }
char* vbt_hwloc_dlerror() { return nullptr; }

void* vbt_hwloc_udev_new() { return nullptr; }
void* vbt_hwloc_udev_unref(void*) { return nullptr; }
void* vbt_hwloc_udev_device_new_from_subsystem_sysname(void*, const char*, const char*) {
  return nullptr;
}
const char* vbt_hwloc_udev_device_get_property_value(void*, const char*) { return nullptr; }
void* vbt_hwloc_udev_device_unref(void*) { return nullptr; }

// What a snapshot was made of is its key: so nothing reaches hwloc but through machine_source.hpp.
char* vbt_hwloc_getenv(const char* name) {
  static char no_plugins[] = "";
  static char quiet[] = "2";
  if (strcmp(name, "HWLOC_PLUGINS_PATH") == 0) return no_plugins;
  // It would print banners; what it fails at, we say in one line.
  if (strcmp(name, "HWLOC_HIDE_ERRORS") == 0) return quiet;
  return nullptr;
}

void vbt_hwloc_abort() { leave(); }

void vbt_hwloc_assert_fail(const char* expression, const char* file, unsigned line, const char*) {
  const char* const slash = strrchr(file, '/');
  log_debug("hwloc gives up: %s (%s:%u)", expression, slash != nullptr ? slash + 1 : file, line);
  leave();
}

}  // extern "C"
}  // namespace verbatim::topo
