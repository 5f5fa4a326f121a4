// SPDX-License-Identifier: BSD-2-Clause
// The table of datatypes, and how long they live.
#include "mpi_shim/core/datatype.hpp"

#include "mpi_shim/core/datatype_predefined.hpp"

namespace vmpi {
namespace {

HandleTable<HandleKind::kDatatype, Datatype> table;

}  // namespace

Datatype* find_datatype_by_number(std::uint32_t number) noexcept {
  return number < kFirstOfOurs ? find_predefined_type(number) : table.find(number);
}

Datatype* find_datatype(MPI_Datatype handle) noexcept {
  Datatype* const type = find_datatype_by_number(number_of(handle));
  return type != nullptr && type->program_handles > 0 ? type : nullptr;
}

Datatype* new_datatype() noexcept { return table.make(); }

void retain(Datatype& type) noexcept {
  if (!type.is_predefined) ++type.references;
}

// Types made of types may nest as deep as memory allows: no recursion. Those whose last reference is
// gone wait in a row, linked by `references`, which nobody needs any more.
void release(Datatype& type) noexcept {
  if (type.is_predefined || --type.references > 0) return;
  std::uint32_t next = type.handle;
  type.references = 0;
  while (next != 0) {
    Datatype& gone = *table.find(next);
    next = static_cast<std::uint32_t>(gone.references);
    for (const std::uint32_t number : gone.types) {
      Datatype* const part = find_datatype_by_number(number);
      if (part == nullptr || part->is_predefined || --part->references > 0) continue;
      part->references = static_cast<std::int32_t>(next);
      next = part->handle;
    }
    table.release(gone);
  }
}

void drop_datatypes() noexcept {
  table.clear();
  drop_predefined_types();
}

namespace {

/// Of less than one element.
std::int64_t elements_within(const Datatype& type, std::int64_t bytes) noexcept {
  std::int64_t elements = 0;
  for (const Signature& entry : type.signature) {
    if (bytes == 0) break;
    const std::int64_t unit =
        entry.inner != nullptr ? entry.inner->size : size_of_basic(entry.basic);
    const std::int64_t whole = bytes / unit < entry.count ? bytes / unit : entry.count;
    elements += whole * (entry.inner != nullptr ? entry.inner->elements : 1);
    bytes -= whole * unit;
    if (whole == entry.count || bytes == 0) continue;
    const std::int64_t rest = entry.inner != nullptr ? elements_within(*entry.inner, bytes) : -1;
    return rest < 0 ? -1 : elements + rest;
  }
  return elements;
}

std::int64_t bytes_within(const Datatype& type, std::int64_t elements) noexcept {
  std::int64_t bytes = 0;
  for (const Signature& entry : type.signature) {
    if (elements == 0) break;
    const std::int64_t unit = entry.inner != nullptr ? entry.inner->elements : 1;
    const std::int64_t whole = elements / unit < entry.count ? elements / unit : entry.count;
    bytes += whole * (entry.inner != nullptr ? entry.inner->size : size_of_basic(entry.basic));
    elements -= whole * unit;
    if (whole == entry.count || elements == 0) continue;
    return bytes + bytes_within(*entry.inner, elements);
  }
  return bytes;
}

}  // namespace

std::int64_t elements_of_bytes(const Datatype& type, std::uint64_t bytes) noexcept {
  if (type.size == 0) return bytes == 0 ? 0 : -1;
  const auto size = static_cast<std::uint64_t>(type.size);
  const std::int64_t rest = elements_within(type, static_cast<std::int64_t>(bytes % size));
  if (rest < 0) return -1;
  std::int64_t all = 0;
  const bool too_many =
      __builtin_mul_overflow(static_cast<std::int64_t>(bytes / size), type.elements, &all) ||
      __builtin_add_overflow(all, rest, &all);
  return too_many ? -1 : all;
}

std::int64_t bytes_of_elements(const Datatype& type, std::int64_t elements) noexcept {
  if (type.elements == 0) return 0;
  std::int64_t all = 0;
  const bool too_many =
      __builtin_mul_overflow(elements / type.elements, type.size, &all) ||
      __builtin_add_overflow(all, bytes_within(type, elements % type.elements), &all);
  return too_many ? -1 : all;
}

}  // namespace vmpi
