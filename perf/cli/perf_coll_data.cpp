// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_coll_data.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "perf/cli/failure.hpp"

namespace verbatim::cli {
namespace {

/// In turn, so that none is met where the call before has left it in the caches.
constexpr std::size_t kPairs = 4;
constexpr unsigned char kWiped = 0xa5;

/// Of a byte that one rank sends to another: neighbours, ranks and rounds differ.
unsigned char byte_at(std::uint64_t i, int from, int to, std::uint64_t round) {
  return static_cast<unsigned char>(13 * i + (i >> 8) + 131 * static_cast<std::uint64_t>(from) +
                                    29 * static_cast<std::uint64_t>(to) + 17 * round + 5);
}

}  // namespace

void check_coll_memory(const CollOptions& options, int ranks, std::uint64_t bytes) {
  const CollCall& call = *options.call;
  const std::uint64_t gives = call.reduces ? 1 : coll_slices(call.gives, ranks);
  const std::uint64_t gets = call.reduces ? 1 : coll_slices(call.gets, ranks);
  const std::uint64_t all = (options.keeps_buffer ? 1 : kPairs) * (gives + gets) * bytes;
  if (all > options.most_memory)
    fail(
        "%s of %llu bytes by %d ranks takes %llu bytes of each, and the limit is %llu: smaller "
        "sizes "
        "(-m, -s), or a larger -M",
        call.name, static_cast<unsigned long long>(bytes), ranks,
        static_cast<unsigned long long>(all), static_cast<unsigned long long>(options.most_memory));
  // What MPI counts and places by is an int.
  if (std::max(gives, gets) * bytes > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
    fail("%s of %llu bytes by %d ranks has places beyond an int: smaller sizes (-m, -s)", call.name,
         static_cast<unsigned long long>(bytes), ranks);
}

CollData::CollData(const CollOptions& options, int rank, int ranks, std::uint64_t bytes)
    : options_(options), call_(*options.call), rank_(rank), ranks_(ranks) {
  lay_out(bytes / options.type->size);
  const std::uint64_t one = slice_bytes();
  given_bytes_ = call_.reduces ? vector_ * options.type->size : slices_of(call_.gives) * one;
  // In place what is given lies there first.
  taken_bytes_ = call_.reduces ? given_bytes_ : slices_of(call_.gets) * one;
  const std::size_t pairs = options.keeps_buffer ? 1 : kPairs;
  for (std::size_t i = 0; i < pairs; ++i) {
    Pair pair;
    pair.given = make(given_bytes_);
    pair.taken = pair.given != nullptr ? make(taken_bytes_) : nullptr;
    if (pair.given != nullptr) pairs_.push_back(pair);
    if (pair.taken == nullptr) {
      for (const Pair& each : pairs_) {
        drop(each.given);
        drop(each.taken);
      }
      fail("there is no memory for buffers of %llu bytes: smaller sizes (-m, -s)",
           static_cast<unsigned long long>(given_bytes_ + taken_bytes_));
    }
  }
}

CollData::~CollData() {
  for (const Pair& pair : pairs_) {
    drop(pair.given);
    drop(pair.taken);
  }
}

unsigned char* CollData::make(std::uint64_t bytes) const {
  void* memory = nullptr;
  const std::uint64_t room = bytes == 0 ? 1 : bytes;
  if (!options_.is_alloc)
    memory = std::malloc(room);
  else if (MPI_Alloc_mem(static_cast<MPI_Aint>(room), MPI_INFO_NULL, &memory) != MPI_SUCCESS)
    memory = nullptr;
  if (memory != nullptr) std::memset(memory, kWiped, room);
  return static_cast<unsigned char*>(memory);
}

void CollData::drop(unsigned char* buffer) const {
  if (buffer == nullptr) return;
  if (options_.is_alloc)
    MPI_Free_mem(buffer);
  else
    std::free(buffer);
}

std::uint64_t CollData::slice_bytes() const {
  return static_cast<std::uint64_t>(arguments_.count) * options_.type->size;
}

void CollData::lay_out(std::uint64_t elements) {
  const auto ranks = static_cast<std::uint64_t>(ranks_);
  const bool has_slices = slices_of(call_.gives) > 1 || slices_of(call_.gets) > 1;
  const std::uint64_t slice = call_.is_scattered ? elements / ranks : elements;
  arguments_.count = static_cast<int>(slice);
  arguments_.type = options_.type->handle;
  arguments_.op = options_.op->handle;
  arguments_.root = options_.root;
  const bool is_of_blocks = std::string_view(call_.name) == "reduce_scatter_block";
  vector_ = is_of_blocks ? slice * ranks : elements;
  std::uint64_t place = 0;
  for (std::uint64_t i = 0; i < ranks; ++i) {
    const std::uint64_t end =
        call_.is_scattered && !is_of_blocks ? elements * (i + 1) / ranks : place + slice;
    counts_.push_back(static_cast<int>(end - place));
    displacements_.push_back(static_cast<int>(place));
    byte_displacements_.push_back(static_cast<int>(place * options_.type->size));
    place = has_slices ? end : 0;
  }
  types_.assign(ranks, options_.type->handle);
  arguments_.counts = counts_.data();
  arguments_.displacements = displacements_.data();
  arguments_.byte_displacements = byte_displacements_.data();
  arguments_.types = types_.data();
}

void CollData::write_slice(unsigned char* at, int from, int to) const {
  const std::uint64_t bytes = slice_bytes();
  for (std::uint64_t i = 0; i < bytes; ++i) at[i] = byte_at(i, from, to, round_);
}

void CollData::write_given(unsigned char* at) const {
  if (call_.reduces) {
    options_.type->fill(at, 0, static_cast<std::int64_t>(vector_), rank_, round_,
                        options_.op->handle == MPI_PROD);
    return;
  }
  const std::uint64_t slices = slices_of(call_.gives);
  for (std::uint64_t i = 0; i < slices; ++i)
    write_slice(at + i * slice_bytes(), rank_, slices > 1 ? static_cast<int>(i) : 0);
}

const CollArguments& CollData::prepare(std::uint64_t round) {
  const Pair& pair = pairs_[round % pairs_.size()];
  // Of one buffer the same values stand in it as long as nothing overwrites them.
  const bool writes =
      !options_.keeps_buffer || !is_written_ || options_.is_in_place || options_.validates;
  is_written_ = true;
  round_ = round;
  if (options_.root_rotates)
    arguments_.root = static_cast<int>(round % static_cast<std::uint64_t>(ranks_));
  taken_ = pair.taken;
  arguments_.given = pair.given;
  arguments_.taken = pair.taken;
  if (options_.validates) std::memset(pair.taken, kWiped, taken_bytes_);
  unsigned char* from = pair.given;
  if (call_.gives == CollSide::kOneOfRoot) {
    from = pair.taken;
  } else if (options_.is_in_place && (!call_.has_root || is_root())) {
    if (call_.gives == CollSide::kEachOfRoot) {
      arguments_.taken = MPI_IN_PLACE;
    } else {
      arguments_.given = MPI_IN_PLACE;
      from = pair.taken;
      // Its slice lies where it will lie among those of all.
      if (!call_.reduces && slices_of(call_.gives) < slices_of(call_.gets))
        from += static_cast<std::uint64_t>(rank_) * slice_bytes();
    }
  }
  const bool gives = call_.gives == CollSide::kOneOfRoot || call_.gives == CollSide::kEachOfRoot
                         ? is_root()
                         : call_.gives != CollSide::kNone;
  if (gives && writes) write_given(from);
  return arguments_;
}

std::string CollData::wrong_slice(const unsigned char* at, int from, int to) const {
  const std::uint64_t bytes = slice_bytes();
  for (std::uint64_t i = 0; i < bytes; ++i) {
    if (at[i] == byte_at(i, from, to, round_)) continue;
    return "byte " + std::to_string(i) + " of what rank " + std::to_string(from) + " gave is " +
           std::to_string(at[i]) + ", not " + std::to_string(byte_at(i, from, to, round_));
  }
  return {};
}

std::string CollData::wrong_vector() const {
  const std::string_view name = call_.name;
  const auto self = static_cast<std::size_t>(rank_);
  std::int64_t first = 0;
  auto count = static_cast<std::int64_t>(vector_);
  int end = ranks_;
  if (call_.is_scattered) {
    first = displacements_[self];
    count = counts_[self];
  }
  if (name == "scan") end = rank_ + 1;
  if (name == "exscan") end = rank_;
  if (end == 0 || (call_.has_root && !is_root())) return {};  // it gets nothing
  const std::int64_t at =
      options_.type->first_wrong(taken_, first, count, 0, end, round_, number_of(*options_.op));
  return at < 0 ? std::string()
                : "element " + std::to_string(at) + " is not the " + options_.op->mpi_name +
                      " of " + std::to_string(end) + " ranks";
}

std::string CollData::wrong_slices() const {
  if (call_.gets == CollSide::kNone) return {};
  if (call_.gives == CollSide::kOneOfRoot) return wrong_slice(taken_, arguments_.root, 0);
  if (call_.gives == CollSide::kEachOfRoot)
    return arguments_.taken == MPI_IN_PLACE ? std::string()
                                            : wrong_slice(taken_, arguments_.root, rank_);
  if (call_.gets == CollSide::kEachOfRoot && !is_root()) return {};
  for (int from = 0; from < ranks_; ++from) {
    const std::string why = wrong_slice(taken_ + static_cast<std::uint64_t>(from) * slice_bytes(),
                                        from, call_.gives == CollSide::kEach ? rank_ : 0);
    if (!why.empty()) return why;
  }
  return {};
}

std::string CollData::wrong() const {
  const std::string why = call_.reduces ? wrong_vector() : wrong_slices();
  if (why.empty()) return {};
  return std::string(call_.name) + " of " +
         std::to_string(call_.reduces ? vector_ * options_.type->size : slice_bytes()) +
         " bytes: " + why + " (round " + std::to_string(round_) + ")";
}

}  // namespace verbatim::cli
