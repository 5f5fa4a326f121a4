// SPDX-License-Identifier: BSD-2-Clause
// Each call for a list asks the providers anew, since devices come and go, and keeps the objects of
// the devices that are known already. The list's mutex is held meanwhile, so a provider may be
// reading the kernel under it; a forked child makes the mutex anew.
#include "runtime/verbs/device_list.hpp"

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/sync/mutex.hpp"
#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/context_objects.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/provider_names.hpp"
#include "runtime/verbs/provider_registry.hpp"
#include "runtime/verbs/unclaimed_devices.hpp"

namespace verbatim {
namespace {

constinit Mutex list_mutex;
/// Every living Device, in the order of its discovery; under list_mutex.
constinit Device* known_devices = nullptr;
constinit std::atomic<bool> fork_known{false};

/// Who was at the list is no thread of the child's. A fork does not wait for him, since he may be
/// asking the kernel: each step of his leaves a list that can be walked.
void remake_lock_in_child() noexcept {
  ::new (&list_mutex) Mutex;
  remake_objects_lock_in_child();
}

/// Registers the handler of fork() before the lock is taken for the first time. It takes no lock:
/// two threads may come here, and twice is as good as once.
int prepare_for_forks() noexcept {
  if (fork_known.load(std::memory_order_acquire)) return 0;
  const int error = ::pthread_atfork(nullptr, nullptr, remake_lock_in_child);
  fork_known.store(error == 0, std::memory_order_release);
  return error;
}

template <std::size_t N>
void copy_text(char (&to)[N], const char* from) noexcept {
  const std::size_t length = ::strnlen(from, N - 1);
  std::memcpy(to, from, length);
  to[length] = '\0';
}

/// The same name is not enough: a kernel device that was removed and made anew is another one,
/// though somebody may still hold the old.
bool is_same(const Device& known, const Device& found) noexcept {
  return known.provider == found.provider && known.index == found.index &&
         known.guid == found.guid && std::strcmp(known.plain.name, found.plain.name) == 0 &&
         std::strcmp(known.plain.dev_name, found.plain.dev_name) == 0;
}

Device* find_known_locked(const Device& found) noexcept {
  for (Device* device = known_devices; device != nullptr; device = device->next) {
    if (is_same(*device, found)) return device;
  }
  return nullptr;
}

void append_known_locked(Device* device) noexcept {
  Device** end = &known_devices;
  while (*end != nullptr) end = &(*end)->next;
  device->next = nullptr;
  *end = device;
}

void release_locked(Device* device) noexcept {
  if (device->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (Device** at = &known_devices; *at != nullptr; at = &(*at)->next) {
    if (*at == device) {
      *at = device->next;
      break;
    }
  }
  destroy_nothrow(device);
}

/// The array that is being filled. Holds one reference per entry.
struct Listing {
  ibv_device** entries = nullptr;
  std::size_t count = 0;
  std::size_t room = 0;

  /// Whose device of this name is in it, or null.
  [[nodiscard]] const Device* named(const char* name) const noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      if (std::strcmp(entries[i]->name, name) == 0) return &Device::from(entries[i]);
    }
    return nullptr;
  }

  [[nodiscard]] bool append(Device* device) noexcept {
    if (count + 1 >= room) {  // the terminating null needs a place too
      const std::size_t more = room == 0 ? 8 : room * 2;
      auto* grown = static_cast<ibv_device**>(std::realloc(entries, more * sizeof *entries));
      if (grown == nullptr) return false;
      entries = grown;
      room = more;
    }
    device->references.fetch_add(1, std::memory_order_relaxed);
    entries[count++] = &device->plain;
    entries[count] = nullptr;
    return true;
  }
};

/// Moves what one provider found into the listing; 0 or ENOMEM. Consumes the chain.
int list_found_locked(Listing& listing, Device* found) noexcept {
  int result = 0;
  while (found != nullptr) {
    Device* const next = found->next;
    if (const Device* const listed = listing.named(found->plain.name)) {
      log_warn(
          "device %s is offered by provider %s and again by provider %s; the second is left out",
          found->plain.name, listed->provider->name, found->provider->name);
      destroy_nothrow(found);
      found = next;
      continue;
    }
    Device* device = find_known_locked(*found);
    if (device == nullptr) {
      device = found;
      append_known_locked(device);
    } else {
      destroy_nothrow(found);
    }
    // A device that came into the world here must not stay in it without a reference.
    device->references.fetch_add(1, std::memory_order_relaxed);
    if (!listing.append(device)) result = ENOMEM;
    release_locked(device);
    found = next;
  }
  return result;
}

void free_listing_locked(ibv_device** list) noexcept {
  for (ibv_device** entry = list; *entry != nullptr; ++entry) release_locked(&Device::from(*entry));
  std::free(list);
}

}  // namespace

DeviceSink::~DeviceSink() {
  while (first_ != nullptr) {
    Device* const next = first_->next;
    destroy_nothrow(first_);
    first_ = next;
  }
}

int DeviceSink::add(const DeviceDescription& found) noexcept {
  Device* const device = make_nothrow<Device>();
  if (device == nullptr) return ENOMEM;
  copy_text(device->plain.name, found.name);
  copy_text(device->plain.dev_name, found.dev_name);
  copy_text(device->plain.dev_path, found.dev_path);
  copy_text(device->plain.ibdev_path, found.ibdev_path);
  device->plain.node_type = found.node_type;
  device->plain.transport_type = found.transport_type;
  device->guid = found.guid;
  device->index = found.index;
  device->kernel_index = found.kernel_index;
  device->provider = &provider_;
  (last_ == nullptr ? first_ : last_->next) = device;
  last_ = device;
  return 0;
}

Device* DeviceSink::take() noexcept {
  Device* const chain = first_;
  first_ = last_ = nullptr;
  return chain;
}

Result<ibv_device**> get_device_list(int& count) noexcept {
  const auto providers = provider_table();
  if (providers.empty()) {
    log_error(
        "no provider is compiled into this program (RDMA_STATIC_PROVIDERS=none), so there is no "
        "device");
    return Error{ENOSYS, "no provider"};
  }
  check_asked_drivers(providers);
  if (const int error = prepare_for_forks(); error != 0) {
    log_error("the list of devices: %s", std::strerror(error));
    return Error{error, "no memory"};
  }
  const LockGuard guard(list_mutex);
  Listing listing;
  UnclaimedDevices unclaimed;
  int first_error = 0;
  for (const ProviderTable* provider : providers) {
    DeviceSink sink(*provider, &unclaimed);
    int error = provider->list_devices(sink);
    // What was found before a failure is still there to be used.
    const int listed = list_found_locked(listing, sink.take());
    if (error == 0) error = listed;
    if (error == 0) continue;
    log_warn("provider %s cannot list its devices: %s", provider->name, std::strerror(error));
    if (first_error == 0) first_error = error;
  }
  static constinit LogOnce told;
  if (unclaimed.any() && told.first()) unclaimed.tell(providers);
  if (listing.count == 0) {
    std::free(listing.entries);
    log_error(
        "no device: none of the %zu provider%s of this program (%s%s) found one; VERBATIM_LOG=info "
        "tells of kernel devices that cannot be used",
        providers.size(), providers.size() == 1 ? "" : "s", providers[0]->name,
        providers.size() == 1 ? "" : ", ...");
    return Error{first_error == 0 ? ENODEV : first_error, "no device"};
  }
  count = static_cast<int>(listing.count);
  return listing.entries;
}

void free_device_list(ibv_device** list) noexcept {
  if (list == nullptr) return;
  const LockGuard guard(list_mutex);
  free_listing_locked(list);
}

void retain_device(Device& device) noexcept {
  device.references.fetch_add(1, std::memory_order_relaxed);
}

void release_device(Device& device) noexcept {
  const LockGuard guard(list_mutex);
  release_locked(&device);
}

}  // namespace verbatim
