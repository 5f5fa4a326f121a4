// SPDX-License-Identifier: BSD-2-Clause
// The packed form of a type is a row of numbers, which its signature names: each is turned round.
#include "mpi_shim/core/external.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "mpi_shim/core/checked.hpp"
#include "mpi_shim/core/datatype_predefined.hpp"
#include "mpi_shim/core/op_kernels.hpp"

namespace vmpi {
namespace {

static_assert(std::endian::native == std::endian::little);

// Parts of complex numbers are turned one by one.
[[nodiscard]] int parts_of(const Basic& basic) noexcept {
  return basic.type_class == BasicClass::kComplex ? 2 : 1;
}

[[nodiscard]] std::int64_t external_bytes(const Datatype& type) noexcept {
  std::int64_t bytes = 0;
  for (const Signature& entry : type.signature)
    bytes += entry.count * (entry.inner != nullptr ? external_bytes(*entry.inner)
                                                   : find_basic(entry.basic)->external);
  return bytes;
}

void turn(const unsigned char* from, unsigned char* to, int bytes) noexcept {
  for (int i = 0; i < bytes; ++i) to[i] = from[bytes - 1 - i];
}

/// A number of `bytes` bytes becomes one of `external`. Integers keep their value or are refused.
[[nodiscard]] bool to_external(const Basic& basic, int bytes, int external, const unsigned char* in,
                               unsigned char* out) noexcept {
  if (bytes == external &&
      (basic.type_class != BasicClass::kFloating && basic.type_class != BasicClass::kComplex)) {
    turn(in, out, bytes);
    return true;
  }
  if (basic.type_class == BasicClass::kFloating || basic.type_class == BasicClass::kComplex) {
    const bool is_long_double = basic.number >= 0x220 && basic.number <= 0x225;
    if (!is_long_double || __LDBL_MANT_DIG__ == 113) {
      turn(in, out, bytes);
      return true;
    }
#ifdef VMPI_HAS_QUAD
    long double number = 0;
    std::memcpy(&number, in, sizeof number);
    const Quad quad = number;
    turn(reinterpret_cast<const unsigned char*>(&quad), out, external);
    return true;
#else
    return false;
#endif
  }
  // Longer than outside: what is left out must be sign, or nothing.
  const bool is_signed = basic.type_class == BasicClass::kSigned;
  const unsigned char fill = is_signed && (in[external - 1] & 0x80) != 0 ? 0xff : 0;
  for (int i = external; i < bytes; ++i)
    if (in[i] != fill) return false;
  turn(in, out, external);
  return true;
}

[[nodiscard]] bool from_external(const Basic& basic, int bytes, int external,
                                 const unsigned char* in, unsigned char* out) noexcept {
  const bool is_long_double = basic.number >= 0x220 && basic.number <= 0x225;
  if (is_long_double && __LDBL_MANT_DIG__ != 113) {
#ifdef VMPI_HAS_QUAD
    Quad quad = 0;
    turn(in, reinterpret_cast<unsigned char*>(&quad), external);
    const auto number = static_cast<long double>(quad);
    std::memset(out, 0, static_cast<std::size_t>(bytes));
    std::memcpy(out, &number, sizeof number);
    return true;
#else
    return false;
#endif
  }
  turn(in, out, external);
  const bool is_negative = basic.type_class == BasicClass::kSigned && (in[0] & 0x80) != 0;
  for (int i = external; i < bytes; ++i) out[i] = is_negative ? 0xff : 0;
  return true;
}

/// Walks over the numbers of a buffer in pieces.
template <bool kPacks>
class Converter {
 public:
  Converter(const Datatype& type, std::int64_t count, void* buffer, unsigned char* outside) noexcept
      : type_(type), count_(count), buffer_(buffer), outside_(outside) {}

  [[nodiscard]] bool walk(const Datatype& part) noexcept {
    for (const Signature& entry : part.signature) {
      if (entry.inner == nullptr) {
        if (!row(*find_basic(entry.basic), entry.count)) return false;
        continue;
      }
      for (std::int64_t i = 0; i < entry.count; ++i)
        if (!walk(*entry.inner)) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] bool row(const Basic& basic, std::int64_t count) noexcept {
    alignas(16) unsigned char piece[2048];
    const auto most = static_cast<std::int64_t>(sizeof piece) / basic.bytes;
    for (; count > 0; count -= std::min(count, most)) {
      const std::int64_t some = std::min(count, most);
      const auto bytes = static_cast<std::size_t>(some * basic.bytes);
      if constexpr (kPacks) pack(type_, count_, buffer_, at_, piece, bytes);
      if (!convert(basic, some * parts_of(basic), piece)) return false;
      if constexpr (!kPacks) unpack(type_, count_, buffer_, at_, piece, bytes);
      at_ += bytes;
    }
    return true;
  }

  [[nodiscard]] bool convert(const Basic& basic, std::int64_t numbers,
                             unsigned char* inside) noexcept {
    const int bytes = basic.bytes / parts_of(basic);
    const int external = basic.external / parts_of(basic);
    for (; numbers > 0; --numbers, inside += bytes, outside_ += external) {
      const bool is_done = kPacks ? to_external(basic, bytes, external, inside, outside_)
                                  : from_external(basic, bytes, external, outside_, inside);
      if (!is_done) return false;
    }
    return true;
  }

  const Datatype& type_;
  std::int64_t count_;
  void* buffer_;
  std::uint64_t at_ = 0;
  unsigned char* outside_;
};

template <bool kPacks>
int convert_all(const Datatype& type, std::int64_t count, void* buffer,
                unsigned char* outside) noexcept {
  Converter<kPacks> converter(type, count, buffer, outside);
  for (std::int64_t i = 0; i < count; ++i)
    if (!converter.walk(type)) return MPI_ERR_CONVERSION;
  return MPI_SUCCESS;
}

}  // namespace

std::int64_t external_size(const Datatype& type, std::int64_t count) noexcept {
  // At most four times the bytes inside: a short number does not become a long one.
  Checked checked;
  (void)checked.product(4, checked.product(type.size, count));
  return checked.overflowed() ? -1 : external_bytes(type) * count;
}

int pack_external(const Datatype& type, std::int64_t count, const void* buffer,
                  void* out) noexcept {
  return convert_all<true>(type, count, const_cast<void*>(buffer),
                           static_cast<unsigned char*>(out));
}

int unpack_external(const Datatype& type, std::int64_t count, void* buffer,
                    const void* in) noexcept {
  return convert_all<false>(type, count, buffer,
                            static_cast<unsigned char*>(const_cast<void*>(in)));
}

}  // namespace vmpi
