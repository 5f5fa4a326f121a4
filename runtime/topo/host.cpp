// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/topo/host.hpp"

#include <atomic>
#include <utility>

#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/topo/machine_check.hpp"
#include "runtime/topo/machine_read.hpp"
#include "runtime/topo/machine_share.hpp"
#include "runtime/topo/machine_source.hpp"
#include "runtime/topo/snapshot.hpp"

namespace verbatim::topo {
namespace {

struct Found {
  explicit Found(Snapshot&& bytes) noexcept
      : snapshot(std::move(bytes)), machine(snapshot.bytes()) {}
  Snapshot snapshot;
  Machine machine;
};

constinit Machine nothing_known;
constinit std::atomic<const Machine*> kept{nullptr};

bool read_here(const MachineSource& source, std::uint64_t key, Snapshot& snapshot) noexcept {
  if (!read_machine(source, snapshot)) return false;
  snapshot.head().key = key;
  snapshot.head().checksum = machine_checksum(snapshot.bytes(), snapshot.size());
  const char* const wrong = check_machine(snapshot.bytes(), snapshot.size());
  if (wrong == nullptr) return true;
  log_error("%s: %s; where memory and processors are stays unknown", source.name(), wrong);
  return false;
}

}  // namespace

bool find_machine(Snapshot& storage) noexcept {
  MachineSource source;
  if (!source.find()) return false;
  const std::uint64_t key = source.key(reader_version());
  MachineShare share;
  if (reader_version() == 0 || !share.open(source.boot(), key))
    return read_here(source, key, storage);
  if (share.fetch(storage)) return true;
  if (!share.begin_reading() && share.fetch(storage)) {
    share.end_reading();
    return true;
  }
  const bool found = read_here(source, key, storage);
  if (found) share.publish(storage);
  share.end_reading();
  return found;
}

const Machine& host_machine() noexcept {
  const Machine* have = kept.load(std::memory_order_acquire);
  if (have != nullptr) return *have;
  Snapshot snapshot;
  Found* const found = find_machine(snapshot) ? make_nothrow<Found>(std::move(snapshot)) : nullptr;
  const Machine* const ours = found != nullptr ? &found->machine : &nothing_known;
  // Publishes the tables; pairs with the load above.
  if (kept.compare_exchange_strong(have, ours, std::memory_order_acq_rel)) return *ours;
  destroy_nothrow(found);
  return *have;
}

}  // namespace verbatim::topo
