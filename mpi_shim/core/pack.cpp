// SPDX-License-Identifier: BSD-2-Clause
// Moves bytes between typed memory and the packed form, from any byte of it on. Addresses are
// numbers: MPI_BOTTOM and displacements that wrap are legal, pointers to them are not.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "mpi_shim/core/datatype.hpp"

namespace vmpi {
namespace {

using Address = std::uintptr_t;

[[nodiscard]] Address address_of(const void* buffer) noexcept {
  return reinterpret_cast<Address>(buffer);
}
[[nodiscard]] Address plus(Address at, std::int64_t bytes) noexcept {
  return at + static_cast<Address>(bytes);
}
[[nodiscard]] Address plus(Address at, std::int64_t steps, std::int64_t stride) noexcept {
  return at + static_cast<Address>(steps) * static_cast<Address>(stride);
}

/// `count` runs of `bytes`, `stride` apart in memory and `packed_stride` in the packed form, where
/// dense ones follow each other. The size is a number, or a constant, for which the copy is inlined.
template <bool kPacks, bool kIsDense, class Size>
void copy_runs_of(unsigned char* packed, std::int64_t packed_stride, Address at,
                  std::int64_t stride, Size bytes, std::int64_t count) noexcept {
  if constexpr (kIsDense) packed_stride = bytes;
  for (; count > 0; --count, at = plus(at, stride), packed += packed_stride) {
    void* const data = reinterpret_cast<void*>(at);
    if constexpr (kPacks)
      std::memcpy(packed, data, static_cast<std::size_t>(bytes));
    else
      std::memcpy(data, packed, static_cast<std::size_t>(bytes));
  }
}

template <bool kPacks, bool kIsDense>
void copy_runs(unsigned char* packed, std::int64_t packed_stride, Address at, std::int64_t stride,
               std::int64_t bytes, std::int64_t count) noexcept {
  const auto copy = [&](auto size) noexcept {
    copy_runs_of<kPacks, kIsDense>(packed, packed_stride, at, stride, size, count);
  };
  switch (bytes) {
    case 1:
      return copy(std::integral_constant<std::int64_t, 1>());
    case 2:
      return copy(std::integral_constant<std::int64_t, 2>());
    case 4:
      return copy(std::integral_constant<std::int64_t, 4>());
    case 8:
      return copy(std::integral_constant<std::int64_t, 8>());
    case 12:
      return copy(std::integral_constant<std::int64_t, 12>());
    case 16:
      return copy(std::integral_constant<std::int64_t, 16>());
    case 24:
      return copy(std::integral_constant<std::int64_t, 24>());
    case 32:
      return copy(std::integral_constant<std::int64_t, 32>());
    case 64:
      return copy(std::integral_constant<std::int64_t, 64>());
    default:
      return copy(bytes);
  }
}

/// A few short runs: of many such elements each run is moved of all of them at once. Elements that
/// overlap are not: later ones must overwrite earlier ones.
[[nodiscard]] bool is_small(const Datatype& type, std::int64_t stride) noexcept {
  const auto stride_of = static_cast<std::uint64_t>(stride < 0 ? ~stride : stride);
  if (type.blocks.size() > 8 || stride_of < static_cast<std::uint64_t>(type.true_extent))
    return false;
  for (const Blocks& block : type.blocks)
    if (block.inner != nullptr || block.count > 4 || block.bytes > 64) return false;
  return true;
}

template <bool kPacks>
class Mover {
 public:
  Mover(void* packed, std::uint64_t room) noexcept
      : packed_(static_cast<unsigned char*>(packed)), left_(room) {}

  [[nodiscard]] std::uint64_t left() const noexcept { return left_; }

  void run(Address at, std::uint64_t bytes) noexcept {
    void* const data = reinterpret_cast<void*>(at);
    if constexpr (kPacks)
      std::memcpy(packed_, data, bytes);
    else
      std::memcpy(data, packed_, bytes);
    packed_ += bytes;
    left_ -= bytes;
  }

  void runs(Address at, std::int64_t bytes, std::int64_t stride, std::int64_t count) noexcept {
    copy_runs<kPacks, true>(packed_, bytes, at, stride, bytes, count);
    pass(bytes * count);
  }

  /// One element from byte `skip` of its packed form on, as far as there is room.
  void part(const Datatype& type, Address at, std::int64_t skip) noexcept {
    std::size_t i = 0;
    if (skip != 0) {
      const Blocks* const after =
          std::upper_bound(type.blocks.begin(), type.blocks.end(), skip,
                           [](std::int64_t value, const Blocks& b) { return value < b.before; });
      i = static_cast<std::size_t>(after - type.blocks.begin()) - 1;
      skip -= type.blocks[i].before;
    }
    for (; i < type.blocks.size() && left_ != 0; ++i, skip = 0) blocks(type.blocks[i], at, skip);
  }

  /// A whole element; there is room.
  void whole(const Datatype& type, Address at) noexcept {
    for (const Blocks& block : type.blocks) {
      if (block.inner == nullptr)
        runs(plus(at, block.offset), block.bytes, block.stride, block.count);
      else
        wholes(*block.inner, plus(at, block.offset), block.stride, block.count);
    }
  }

  void wholes(const Datatype& type, Address at, std::int64_t stride, std::int64_t count) noexcept {
    if (type.blocks.size() == 1 && type.blocks[0].count == 1 && type.blocks[0].inner == nullptr)
      return runs(plus(at, type.blocks[0].offset), type.blocks[0].bytes, stride, count);
    if (count >= 4 && is_small(type, stride)) return small_ones(type, at, stride, count);
    for (; count > 0; --count, at = plus(at, stride)) whole(type, at);
  }

 private:
  void pass(std::int64_t bytes) noexcept {
    packed_ += bytes;
    left_ -= static_cast<std::uint64_t>(bytes);
  }

  void small_ones(const Datatype& type, Address at, std::int64_t stride,
                  std::int64_t count) noexcept {
    constexpr std::int64_t kAtOnce = 128;  // they stay in the first cache until all are moved
    while (count > 0) {
      const std::int64_t some = std::min(count, kAtOnce);
      for (const Blocks& block : type.blocks)
        for (std::int64_t i = 0; i < block.count; ++i)
          copy_runs<kPacks, false>(packed_ + block.before + i * block.bytes, type.size,
                                   plus(at, block.offset + i * block.stride), stride, block.bytes,
                                   some);
      pass(some * type.size);
      at = plus(at, some, stride);
      count -= some;
    }
  }

  void blocks(const Blocks& block, Address element, std::int64_t skip) noexcept {
    const Address at = plus(element, block.offset);
    std::int64_t i = 0;
    if (skip != 0) {
      i = skip / block.bytes;
      skip %= block.bytes;
      if (skip != 0) one(block, plus(at, i++ * block.stride), skip);
    }
    const std::int64_t whole =
        std::min(block.count - i,
                 static_cast<std::int64_t>(left_ / static_cast<std::uint64_t>(block.bytes)));
    if (block.inner == nullptr)
      runs(plus(at, i * block.stride), block.bytes, block.stride, whole);
    else
      wholes(*block.inner, plus(at, i * block.stride), block.stride, whole);
    i += whole;
    if (i < block.count && left_ != 0) one(block, plus(at, i * block.stride), 0);
  }

  void one(const Blocks& block, Address at, std::int64_t skip) noexcept {
    if (block.inner != nullptr) return part(*block.inner, at, skip);
    run(plus(at, skip), std::min(static_cast<std::uint64_t>(block.bytes - skip), left_));
  }

  unsigned char* packed_;
  std::uint64_t left_;
};

template <bool kPacks>
std::uint64_t move(const Datatype& type, std::int64_t count, const void* buffer, std::uint64_t from,
                   void* packed, std::uint64_t room) noexcept {
  const std::uint64_t size = static_cast<std::uint64_t>(type.size);
  std::uint64_t all = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(count), size, &all)) all = UINT64_MAX;
  if (count <= 0 || from >= all) return 0;
  room = std::min(room, all - from);
  Mover<kPacks> mover(packed, room);
  if (type.is_contiguous) {
    mover.run(plus(address_of(first_byte(type, buffer)), static_cast<std::int64_t>(from)), room);
    return room;
  }
  auto element = static_cast<std::int64_t>(from / size);
  const auto skip = static_cast<std::int64_t>(from % size);
  const auto at = [&](std::int64_t i) { return plus(address_of(buffer), i, type.extent); };
  if (skip != 0) mover.part(type, at(element++), skip);
  const auto whole = static_cast<std::int64_t>(mover.left() / size);
  if (whole > 0) mover.wholes(type, at(element), type.extent, whole);
  if (mover.left() != 0) mover.part(type, at(element + whole), 0);
  return room;
}

}  // namespace

std::size_t pack(const Datatype& type, std::int64_t count, const void* buffer, std::uint64_t from,
                 void* out, std::size_t room) noexcept {
  return move<true>(type, count, buffer, from, out, room);
}

void unpack(const Datatype& type, std::int64_t count, void* buffer, std::uint64_t from,
            const void* in, std::size_t bytes) noexcept {
  move<false>(type, count, buffer, from, const_cast<void*>(in), bytes);
}

std::uint64_t copy_typed(const Datatype& from_type, std::int64_t from_count, const void* from,
                         const Datatype& to_type, std::int64_t to_count, void* to) noexcept {
  const auto bytes_of = [](const Datatype& type, std::int64_t count) {
    return count <= 0 ? 0
                      : static_cast<std::uint64_t>(type.size) * static_cast<std::uint64_t>(count);
  };
  const std::uint64_t bytes =
      std::min(bytes_of(from_type, from_count), bytes_of(to_type, to_count));
  if (bytes == 0) return 0;
  if (to_type.is_contiguous) {
    if (from_type.is_contiguous) {
      std::memmove(first_byte(to_type, to), first_byte(from_type, from), bytes);
      return bytes;
    }
    return pack(from_type, from_count, from, 0, first_byte(to_type, to), bytes);
  }
  if (from_type.is_contiguous) {
    unpack(to_type, to_count, to, 0, first_byte(from_type, from), bytes);
    return bytes;
  }
  constexpr std::size_t kPiece = 16384;  // stays in the first cache
  alignas(64) unsigned char piece[kPiece];
  for (std::uint64_t done = 0; done < bytes;) {
    const std::size_t some = pack(from_type, from_count, from, done, piece,
                                  std::min<std::uint64_t>(kPiece, bytes - done));
    unpack(to_type, to_count, to, done, piece, some);
    done += some;
  }
  return bytes;
}

}  // namespace vmpi
