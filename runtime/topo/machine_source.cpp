// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/topo/machine_source.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/proc_text.hpp"
#include "runtime/base/unique_fd.hpp"
#include "runtime/topo/hash.hpp"
#include "runtime/topo/synthetic_size.hpp"
#include "runtime/topo/xml_shape.hpp"

namespace verbatim::topo {
namespace {

constexpr std::size_t kMaxText = 16u << 20;
constexpr std::size_t kMaxSynthetic = 4096;

}  // namespace

MachineSource::~MachineSource() { std::free(text_); }

bool MachineSource::find() noexcept {
  char boot[64];
  if (read_proc_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot))
    boot_ = static_cast<std::uint32_t>(hash_bytes(boot, std::strlen(boot))) | 1;

  const char* const file = environment_text("HWLOC_XMLFILE", PATH_MAX - 1);
  const char* const synthetic = environment_text("HWLOC_SYNTHETIC", kMaxSynthetic);
  if (file != nullptr) {
    origin_ = Origin::kXml;
    std::snprintf(name_, sizeof name_, "HWLOC_XMLFILE=%s", file);
    if (synthetic != nullptr) log_info("%s is used, HWLOC_SYNTHETIC is not", name_);
    return read_file(file);
  }
  if (synthetic != nullptr) {
    origin_ = Origin::kSynthetic;
    std::snprintf(name_, sizeof name_, "HWLOC_SYNTHETIC=%s", synthetic);
    if (synthetic_objects(synthetic) > kMaxSyntheticObjects) {
      log_error("%s: it is larger than any machine; where memory and processors are stays unknown",
                name_);
      return false;
    }
    text_ = ::strdup(synthetic);
    if (text_ == nullptr) return false;
    length_ = std::strlen(text_);
  }
  return true;
}

bool MachineSource::read_file(const char* path) noexcept {
  // (Not blocking: the name may be a pipe's.)
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    log_error("%s: %s; where memory and processors are stays unknown", name_, std::strerror(errno));
    return false;
  }
  if (!S_ISREG(status.st_mode) || status.st_size <= 0 ||
      static_cast<std::uint64_t>(status.st_size) > kMaxText) {
    log_error("%s is no file of 1 byte to 16 MiB; where memory and processors are stays unknown",
              name_);
    return false;
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  text_ = static_cast<char*>(std::malloc(size + 1));
  if (text_ == nullptr) return false;
  while (length_ < size) {
    const ssize_t got = ::read(fd.get(), text_ + length_, size - length_);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length_ += static_cast<std::size_t>(got);
  }
  text_[length_] = '\0';
  const XmlComplaint complaint = check_xml_shape(text_, length_);
  if (complaint.what == nullptr) return true;
  log_error("%s, line %u: %s; where memory and processors are stays unknown", name_, complaint.line,
            complaint.what);
  return false;
}

std::uint64_t MachineSource::key(std::uint32_t reader) const noexcept {
  std::uint64_t hash = mix(kLayoutVersion, reader);
  hash = mix(hash, boot_);
  hash = mix(hash, static_cast<std::uint64_t>(origin_));
  if (origin_ != Origin::kThisHost) return hash_bytes(text_, length_, hash);
  for (const char* online : {"/sys/devices/system/cpu/online", "/sys/devices/system/node/online"}) {
    char text[1024];
    if (read_proc_text(online, text, sizeof text)) hash = hash_bytes(text, std::strlen(text), hash);
  }
  return hash;
}

}  // namespace verbatim::topo
