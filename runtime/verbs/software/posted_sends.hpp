// SPDX-License-Identifier: BSD-2-Clause
// The memory of the requests that wait in a send queue. Each lies in one piece: its words, its SGEs, and
// the bytes that it was given inline. Under the send lock. Spec: man ibv_post_send.
//
// Most queue pairs never have more than a request or two waiting, so there are a few places at first,
// and in the end as many as the send queue has; a program's allocators are asked for all of them when
// the queue pair is created. Request number i lies at i modulo the places; those of [head, tail), the
// provider's numbers, wait.
//
//   Request   a struct that may be copied byte by byte, of whose members keep() writes clear(), wr_id,
//             opcode, flags, length, num_sge, is_inline; the provider has others
//   kInline   how many bytes a request may be given inline
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime/verbs/queue_memory.hpp"

namespace verbatim {

template <class Request, std::uint32_t kInline>
class PostedSends {
  static_assert(std::is_trivially_copyable_v<Request> && alignof(Request) >= alignof(ibv_sge));

 public:
  bool is_made() const noexcept { return places_ != nullptr; }
  /// Makes `most` places at once. False: no memory. REQUIRES: nothing waits.
  [[gnu::cold]] bool make(const QueueMemory& memory, std::uint32_t most,
                          std::uint32_t max_sge) noexcept {
    return is_made() || move_to(memory, std::bit_ceil(most), max_sge, 0, 0);
  }
  /// Is there a place for one more than the requests of [head, tail), of at most `most`? Makes more
  /// of them if not, which moves those that wait. False: no memory.
  bool has_place(const QueueMemory& memory, std::uint32_t most, std::uint32_t max_sge,
                 std::uint32_t head, std::uint32_t tail) noexcept {
    return tail - head < count_ || grow(memory, most, max_sge, head, tail);
  }
  void free(const QueueMemory& memory) noexcept {
    memory.give(places_);
    *this = {};
  }

  Request& at(std::uint32_t index) const noexcept {
    return *reinterpret_cast<Request*>(place(index));
  }
  ibv_sge* sges_of(std::uint32_t index) const noexcept {
    return reinterpret_cast<ibv_sge*>(place(index) + sizeof(Request));
  }

  /// Keeps request number `index`: its words but for those that only some operations have, and its
  /// SGEs. Bytes that are given inline are copied by copy(to, from, count), and are one SGE then.
  /// REQUIRES: a place; a sound list (request_list.hpp); not more inline than kInline.
  template <class Copy>
  Request& keep(std::uint32_t index, const ibv_send_wr& wr, const Copy& copy) const noexcept {
    Request& request = at(index);
    ibv_sge* const sges = sges_of(index);
    request.clear();
    request.wr_id = wr.wr_id;
    request.opcode = static_cast<decltype(request.opcode)>(wr.opcode);
    request.flags = static_cast<decltype(request.flags)>(wr.send_flags);
    request.num_sge = static_cast<decltype(request.num_sge)>(wr.num_sge);
    for (int i = 0; i < wr.num_sge; ++i) {
      sges[i] = wr.sg_list[i];
      request.length += sges[i].length;
    }
    if ((wr.send_flags & IBV_SEND_INLINE) == 0 || request.length == 0) return request;
    unsigned char* const bytes = inline_bytes_of(index);
    std::uint32_t filled = 0;
    for (int i = 0; i < wr.num_sge; ++i) {
      const ibv_sge& sge = wr.sg_list[i];
      copy(bytes + filled, reinterpret_cast<const unsigned char*>(sge.addr), sge.length);
      filled += sge.length;
    }
    sges[0] = {reinterpret_cast<std::uint64_t>(bytes), filled, 0};
    request.num_sge = 1;
    request.is_inline = true;
    return request;
  }

 private:
  static constexpr std::uint32_t kFirstPlaces = 4;
  static constexpr std::uint32_t kGrowth = 4;

  [[gnu::cold]] bool grow(const QueueMemory& memory, std::uint32_t most, std::uint32_t max_sge,
                          std::uint32_t head, std::uint32_t tail) noexcept {
    const std::uint32_t count = is_made() ? count_ * kGrowth : kFirstPlaces;
    return move_to(memory, std::min(std::bit_ceil(most), count), max_sge, head, tail);
  }
  /// Has `count` places from now on, with the requests of [head, tail) in them.
  [[gnu::cold]] bool move_to(const QueueMemory& memory, std::uint32_t count, std::uint32_t max_sge,
                             std::uint32_t head, std::uint32_t tail) noexcept {
    PostedSends larger;
    larger.count_ = count;
    const std::size_t bytes = sizeof(Request) + max_sge * sizeof(ibv_sge) + kInline;
    larger.place_bytes_ = static_cast<std::uint32_t>((bytes + alignof(Request) - 1) /
                                                     alignof(Request) * alignof(Request));
    larger.places_ = static_cast<unsigned char*>(
        memory.take_unset(std::size_t{count} * larger.place_bytes_, alignof(Request)));
    if (larger.places_ == nullptr) return false;
    for (std::uint32_t i = head; i != tail; ++i) {
      std::memcpy(larger.place(i), place(i), place_bytes_);
      if (larger.at(i).is_inline)
        larger.sges_of(i)->addr = reinterpret_cast<std::uint64_t>(larger.inline_bytes_of(i));
    }
    memory.give(places_);
    *this = larger;
    return true;
  }
  unsigned char* inline_bytes_of(std::uint32_t index) const noexcept {
    return place(index) + place_bytes_ - kInline;
  }
  unsigned char* place(std::uint32_t index) const noexcept {
    return places_ + std::size_t{index & (count_ - 1)} * place_bytes_;
  }

  unsigned char* places_ = nullptr;
  std::uint32_t count_ = 0;  ///< a power of two; 0 before the first request
  std::uint32_t place_bytes_ = 0;
};

}  // namespace verbatim
