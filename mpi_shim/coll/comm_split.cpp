// SPDX-License-Identifier: BSD-2-Clause
// All ranks learn the colors and keys of all; each picks its own color's out.
#include <sys/utsname.h>

#include <cstdio>
#include <cstdlib>

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/comm_create.hpp"
#include "mpi_shim/coll/context_agreement.hpp"
#include "mpi_shim/coll/intercomm.hpp"

namespace vmpi {
namespace {

struct Choice {
  std::uint64_t color;
  std::int32_t key;
  std::int32_t rank;  ///< its place among all, whatever it says
};

int by_key(const void* a, const void* b) noexcept {
  const auto& left = *static_cast<const Choice*>(a);
  const auto& right = *static_cast<const Choice*>(b);
  if (left.key != right.key) return left.key < right.key ? -1 : 1;
  return left.rank < right.rank ? -1 : 1;
}

/// Those of a group that have this color, in the order of their keys. Null: no memory.
[[nodiscard]] Group* pick(const Group& group, Array<Choice>& choices, std::uint64_t color,
                          bool has_color) noexcept {
  Array<int> members;
  std::size_t alike = 0;
  for (std::size_t i = 0; i < choices.size() && has_color; ++i)
    if (choices[i].color == color)
      choices[alike++] = {color, choices[i].key, static_cast<std::int32_t>(i)};
  std::qsort(static_cast<void*>(choices.data()), alike, sizeof(Choice), by_key);
  for (std::size_t i = 0; i < alike; ++i)
    if (!members.push_back(group.members[static_cast<std::size_t>(choices[i].rank)]))
      return nullptr;
  return make_group(members.data(), alike);
}

[[nodiscard]] int split_by(Comm& from, std::uint64_t color, bool has_color, int key,
                           Comm** out) noexcept {
  *out = nullptr;
  // No color is all ones: it is that of a rank that has none.
  const std::uint64_t said = has_color ? color : ~std::uint64_t{0};
  Comm& local = from.local != nullptr ? *from.local : from;
  Array<Choice> ours;
  Array<Choice> theirs;
  const std::size_t remote_size =
      from.remote != nullptr ? static_cast<std::size_t>(from.remote->size()) : 0;
  if (!ours.resize(static_cast<std::size_t>(local.size())) || !theirs.resize(remote_size))
    return MPI_ERR_NO_MEM;
  ours[static_cast<std::size_t>(local.rank())] = {said, key, local.rank()};
  Slices all;
  all.buffer = ours.data();
  all.count = sizeof(Choice);
  all.one_type = &byte_type();
  int error = allgather(local, {MPI_IN_PLACE, 0, &byte_type()}, all);
  if (error != MPI_SUCCESS) return error;
  if (from.remote != nullptr) {
    Comm* const peer = from.rank() == 0 ? &from : nullptr;
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Choice));
    error = swap_bytes(local, 0, peer, 0, apart_tag(next_tag(from)), ours.data(),
                       local.size() * kBytes, theirs.data(), from.remote->size() * kBytes);
    if (error != MPI_SUCCESS) return error;
  }
  // Memory is asked for before the others are: a group that cannot be made is not missed then.
  Group* const group = pick(*from.group, ours, color, has_color);
  Group* const remote =
      from.remote != nullptr ? pick(*from.remote, theirs, color, has_color) : nullptr;
  error = group == nullptr || (from.remote != nullptr && remote == nullptr)
              ? MPI_ERR_NO_MEM
              : make_or_give_back(from, *group, remote, agree_on_context(from), out);
  if (remote != nullptr) release(*remote);
  if (group != nullptr) release(*group);
  return error;
}

/// Of the host's name and of when it was started: two containers that cannot share memory have
/// names of their own.
[[nodiscard]] std::uint64_t host_number() noexcept {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&hash](const char* text) noexcept {
    for (; *text != '\0'; ++text)
      hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
  };
  struct utsname host;
  if (uname(&host) == 0) add(host.nodename);
  if (std::FILE* const file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    char boot[64] = {};
    if (std::fgets(boot, sizeof(boot), file) != nullptr) add(boot);
    (void)std::fclose(file);
  }
  return hash;
}

}  // namespace

int split(Comm& from, int color, int key, Comm** out) noexcept {
  const bool has_color = color != MPI_UNDEFINED;
  // MPI_UNDEFINED is negative, and so no program's color.
  return split_by(from, static_cast<std::uint64_t>(static_cast<std::int64_t>(color)), has_color,
                  key, out);
}

int split_by_host(Comm& from, int key, Comm** out) noexcept {
  return split_by(from, host_number(), true, key, out);
}

}  // namespace vmpi
