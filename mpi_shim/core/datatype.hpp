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

struct Datatype;

/// `count` blocks of `bytes` each, `stride` apart; the first at `offset` from the element's origin.
struct Blocks {
  std::int64_t offset;
  std::int64_t bytes;
  std::int64_t stride;
  std::int64_t count;
  /// Null: each block is a run of bytes. Else each is one element of this type, whose own blocks say
  /// what it consists of; what is nested deep or often stays small so.
  const Datatype* inner;
  std::int64_t before;  ///< bytes of the packed element that the earlier Blocks are
};

/// A predefined type of which a type consists, `count` in a row of the map: what MPI_Get_elements
/// counts. Joined when neighbours are alike.
struct Signature {
  std::uint32_t basic;  ///< number of the predefined handle
  std::int64_t count;
  const Datatype* inner;  ///< not null: `count` times this type's signature instead
};

struct Datatype {
  std::uint32_t handle = 0;
  std::int32_t references = 1;  ///< the program's handles, types made of it, operations under way
  /// How often the program holds it: a type that was freed comes back by MPI_Type_get_contents.
  std::int32_t program_handles = 1;
  bool is_predefined = false;
  bool is_committed = false;
  /// size == extent of the data, in one block: `count` elements are one run of bytes.
  bool is_contiguous = false;
  bool has_bounds = false;     ///< its bounds were given by MPI_Type_create_resized, here or inside
  std::int32_t alignment = 1;  ///< largest of its predefined types
  std::int32_t depth = 0;      ///< of `inner`
  std::int64_t size = 0;       ///< bytes of data of one element
  std::int64_t elements = 0;   ///< predefined types in it; a pair counts as two
  std::int64_t lb = 0, extent = 0;
  std::int64_t true_lb = 0, true_extent = 0;
  Array<Blocks> blocks;
  Array<Signature> signature;

  // MPI_Type_get_envelope and _contents.
  int combiner = MPI_COMBINER_NAMED;
  Array<int> integers;
  Array<MPI_Aint> addresses;
  Array<MPI_Count> counts;        ///< of the large-count constructors
  Array<std::uint32_t> types;     ///< each holds a reference
  std::uint32_t inner_types = 0;  ///< so many at the end of `types` are ours, not the program's
  char name[MPI_MAX_OBJECT_NAME] = {};
  Array<AttributeValue> attributes;
};

/// Makes the predefined types. False: no memory.
[[nodiscard]] bool make_predefined_types() noexcept;
/// MPI_Finalize: gives the memory of all types back, of those that the program forgot too.
void drop_datatypes() noexcept;
/// Null: no datatype, or a freed one.
[[nodiscard]] Datatype* find_datatype(MPI_Datatype handle) noexcept;
/// By its number; also of a type that only other types hold.
[[nodiscard]] Datatype* find_datatype_by_number(std::uint32_t number) noexcept;
/// A new one without content. Null: no memory.
[[nodiscard]] Datatype* new_datatype() noexcept;
/// Its name, "a derived type" without one.
[[nodiscard]] inline const char* name_of(const Datatype& type) noexcept {
  return type.name[0] != '\0' ? type.name : "a derived type";
}
// MPI_Type_dup's and MPI_Type_free's part of the attributes (attributes.cpp); errors are those of
// the program's callbacks.
[[nodiscard]] int copy_attributes(const Datatype& from, Datatype& to) noexcept;
[[nodiscard]] int delete_attributes(Datatype& type) noexcept;
[[nodiscard]] inline MPI_Datatype handle_of(const Datatype& type) noexcept {
  return reinterpret_cast<MPI_Datatype>(static_cast<std::uintptr_t>(type.handle));
}
void retain(Datatype& type) noexcept;
/// Destroys it with the last reference.
void release(Datatype& type) noexcept;

/// Where the data of `count` elements begins and how many bytes it is, for a contiguous type.
[[nodiscard]] inline unsigned char* first_byte(const Datatype& type, const void* buffer) noexcept {
  // By numbers: `buffer` may be MPI_BOTTOM, of which no pointer is reckoned.
  return reinterpret_cast<unsigned char*>(reinterpret_cast<std::uintptr_t>(buffer) +
                                          static_cast<std::uintptr_t>(type.true_lb));
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

/// Predefined types in the first `bytes` bytes of the packed form of any count of elements. -1: it
/// ends within one.
[[nodiscard]] std::int64_t elements_of_bytes(const Datatype& type, std::uint64_t bytes) noexcept;
/// The way back. -1: more than 2^63 bytes.
[[nodiscard]] std::int64_t bytes_of_elements(const Datatype& type, std::int64_t elements) noexcept;

}  // namespace vmpi
