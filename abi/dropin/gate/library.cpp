// SPDX-License-Identifier: BSD-2-Clause
#include "abi/dropin/gate/library.hpp"

#include <dlfcn.h>

#include <cstddef>
#include <string_view>

#include "runtime/base/log.hpp"

namespace verbatim::gate {
namespace {

std::string_view folder_of(std::string_view file) noexcept {
  const std::size_t slash = file.rfind('/');
  if (slash == std::string_view::npos) return {};
  file.remove_suffix(file.size() - slash);
  return file;
}

}  // namespace

bool library_is_ours() noexcept {
  // A plugin may have pulled it in where no global lookup finds it.
  void* const library = ::dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  void* const function = ::dlsym(library, "ibv_get_device_list");
  ::dlclose(library);
  Dl_info theirs{};
  Dl_info ours{};
  if (function == nullptr || ::dladdr(function, &theirs) == 0 ||
      ::dladdr(reinterpret_cast<const void*>(&library_is_ours), &ours) == 0)
    return false;
  if (folder_of(theirs.dli_fname) == folder_of(ours.dli_fname)) return true;
  static constinit LogOnce once;
  if (once.first())
    log_warn(
        "libverbatim_gate.so is preloaded, but the libibverbs of this process is %s: the program "
        "sees no device of Verbatim; fix: start it by `verbatim exec`",
        theirs.dli_fname);
  return false;
}

}  // namespace verbatim::gate
