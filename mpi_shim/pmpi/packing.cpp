// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/pmpi/packing.hpp"

#include <cstdlib>

#include "mpi_shim/pmpi/handles.hpp"

namespace vmpi::pmpi {

Elements derived_elements(Count count, Handle type) noexcept {
  const Library& mpi = library();
  int each = 0;
  if (type == 0 || type == mpi.type_null) return {0, false, false};
  if (mpi.call.type_size(type, &each) != kSuccess) return {0, false, false};
  // What is larger than an int can say is too long, whatever the count is.
  if (each < 0) return {count == 0 ? 0 : kMostBytes + 1, false, true};
  return {bytes_of(count, static_cast<std::uint64_t>(each)), false, true};
}

Elements elements_of(Count count, Handle type) noexcept {
  if (count < 0) [[unlikely]]
    return {0, false, false};
  const PredefinedType* const known = find_type(type);
  if (known == nullptr) [[unlikely]]
    return derived_elements(count, type);
  return {bytes_of(count, known->bytes), true, true};
}

Packed::~Packed() { std::free(memory_); }

bool Packed::reserve(std::uint64_t bytes) noexcept {
  std::free(memory_);
  memory_ = std::malloc(bytes != 0 ? bytes : 1);
  bytes_ = static_cast<int>(bytes);
  return memory_ != nullptr;
}

namespace {

/// Elements at some address, as MPI_Pack takes them. At MPI_BOTTOM, which is 0, lie those of absolute
/// addresses, and MPICH takes it for no buffer: then they are given as relative to another one.
class Placed {
 public:
  Placed(void* at, Count count, Handle type, void* other) noexcept
      : at_(at), count_(static_cast<int>(count)), type_(type) {
    if (at != nullptr) return;
    const Functions& call = library().call;
    const std::intptr_t back = -reinterpret_cast<std::intptr_t>(other);
    Handle made = 0;
    error_ = call.type_create_hindexed(1, &count_, &back, type, &made);
    if (error_ != kSuccess) return;
    made_ = made;
    error_ = call.type_commit(&made);
    at_ = other;
    count_ = 1;
    type_ = handle_of(made);
  }
  ~Placed() {
    if (made_ != 0) (void)library().call.type_free(&made_);
  }
  Placed(const Placed&) = delete;
  Placed& operator=(const Placed&) = delete;

  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] void* at() const noexcept { return at_; }
  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] Handle type() const noexcept { return type_; }

 private:
  void* at_;
  int count_;
  Handle type_;
  Handle made_ = 0;
  int error_ = kSuccess;
};

}  // namespace

int Packed::pack(const Communicator& communicator, const void* from, Count count,
                 Handle type) noexcept {
  if (bytes_ == 0) return kSuccess;
  const Placed elements(const_cast<void*>(from), count, type, memory_);
  if (elements.error() != kSuccess) return elements.error();
  const Library& mpi = library();
  int at = 0;
  const int error = mpi.call.pack(elements.at(), elements.count(), elements.type(), memory_, bytes_,
                                  &at, communicator.handle);
  if (error != kSuccess) return error;
  return at == bytes_ ? kSuccess : mpi.error_other;
}

int Packed::unpack(const Communicator& communicator, void* to, Count count, Handle type) noexcept {
  if (bytes_ == 0) return kSuccess;
  const Placed elements(to, count, type, memory_);
  if (elements.error() != kSuccess) return elements.error();
  const Library& mpi = library();
  int at = 0;
  const int error = mpi.call.unpack(memory_, bytes_, &at, elements.at(), elements.count(),
                                    elements.type(), communicator.handle);
  if (error != kSuccess) return error;
  return at == bytes_ ? kSuccess : mpi.error_other;
}

}  // namespace vmpi::pmpi
