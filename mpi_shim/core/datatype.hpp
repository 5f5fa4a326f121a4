// SPDX-License-Identifier: BSD-2-Clause
// Datatypes: a type map compiled to what moves bytes. Two views are kept: the constructor's
// arguments (MPI_Type_get_envelope, _contents), and a list of blocks of one element of the type, in
// the order of its map, neighbours joined.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "mpi_shim/core/array.hpp"
#include "mpi_shim/core/handle.hpp"

namespace vmpi {

/// A value under a keyval, of a communicator or datatype (attributes.hpp).
struct AttributeValue {
  std::uint32_t keyval;
  void* value;
};

/// `count` blocks of `bytes` each, `stride` apart; the first at `offset` from the element's origin.
struct Blocks {
  std::int64_t offset;
  std::int64_t bytes;
  std::int64_t stride;
  std::int64_t count;
};

/// A predefined type of which a type consists, `count` in a row of the map: what MPI_Get_elements
/// and reductions count. Joined when neighbours are alike.
struct Signature {
  std::uint32_t basic;  ///< number of the predefined handle
  std::int64_t count;
};

struct Datatype {
  std::uint32_t handle = 0;
  std::int32_t references = 1;  ///< the program's handle, types made of it, operations under way
  bool is_predefined = false;
  bool is_committed = false;
  /// size == extent of the data, in one block: `count` elements are one run of bytes.
  bool is_contiguous = false;
  std::int64_t size = 0;  ///< bytes of data of one element
  std::int64_t lb = 0, extent = 0;
  std::int64_t true_lb = 0, true_extent = 0;
  Array<Blocks> blocks;
  Array<Signature> signature;

  // MPI_Type_get_envelope and _contents.
  int combiner = MPI_COMBINER_NAMED;
  Array<int> integers;
  Array<MPI_Aint> addresses;
  Array<MPI_Count> counts;
  Array<std::uint32_t> types;  ///< each holds a reference
  char name[MPI_MAX_OBJECT_NAME] = {};
  Array<AttributeValue> attributes;
};

/// Makes the predefined types. False: no memory.
[[nodiscard]] bool make_predefined_types() noexcept;
/// Null: no datatype, or a freed one.
[[nodiscard]] Datatype* find_datatype(MPI_Datatype handle) noexcept;
void retain(Datatype& type) noexcept;
/// Destroys it with the last reference.
void release(Datatype& type) noexcept;

/// Where the data of `count` elements begins and how many bytes it is, for a contiguous type.
[[nodiscard]] inline unsigned char* first_byte(const Datatype& type, const void* buffer) noexcept {
  return static_cast<unsigned char*>(const_cast<void*>(buffer)) + type.true_lb;
}

/// The packed form of `count` elements at `buffer` is a row of count * size bytes. Copies up to
/// `room` bytes of it from byte `from` on to `out`. Returns how many. Any `from` may follow any
/// other; one after the other is cheap.
std::size_t pack(const Datatype& type, std::int64_t count, const void* buffer, std::uint64_t from,
                 void* out, std::size_t room) noexcept;
/// The way back: `bytes` bytes at `in` are those of the packed form from byte `from` on.
void unpack(const Datatype& type, std::int64_t count, void* buffer, std::uint64_t from,
            const void* in, std::size_t bytes) noexcept;

/// Copies typed data to typed data within this process, as a message would: up to the shorter of
/// both. Returns the bytes.
std::uint64_t copy_typed(const Datatype& from_type, std::int64_t from_count, const void* from,
                         const Datatype& to_type, std::int64_t to_count, void* to) noexcept;

}  // namespace vmpi
