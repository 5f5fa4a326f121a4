// SPDX-License-Identifier: BSD-2-Clause
// The elements of rxe's rings. <rdma/rdma_user_rxe.h> describes them for C; its send and receive
// elements end in flexible arrays inside of unions, which C++ lays out 8 bytes later, so they are
// written again here. tests/unit_rxe/layout.c holds the numbers below to the header, read as C.
#pragma once

#include <rdma/ib_user_verbs.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "providers/rxe/user_rxe.hpp"

namespace verbatim::rxe {

/// rxe_dma_info; rxe_sge elements or the inline bytes follow it.
struct DmaInfo {
  std::uint32_t length;
  std::uint32_t resid;  ///< what is left of it; the kernel counts down
  std::uint32_t cur_sge;
  std::uint32_t num_sge;
  std::uint32_t sge_offset;
  std::uint32_t reserved;
};

/// rxe_send_wqe. What is behind `iova` and not of `dma` is the kernel's alone.
struct SendElement {
  rxe_send_wr wr;
  std::uint32_t status;
  std::uint32_t state;
  std::uint64_t iova;
  std::uint32_t mask;
  std::uint32_t first_psn;
  std::uint32_t last_psn;
  std::uint32_t ack_length;
  std::uint32_t ssn;
  std::uint32_t has_rd_atomic;
  DmaInfo dma;

  [[nodiscard]] unsigned char* tail() noexcept {
    return reinterpret_cast<unsigned char*>(this) + sizeof *this;
  }
};

/// rxe_recv_wqe.
struct ReceiveElement {
  std::uint64_t wr_id;
  std::uint32_t reserved;
  std::uint32_t padding;
  DmaInfo dma;

  [[nodiscard]] unsigned char* tail() noexcept {
    return reinterpret_cast<unsigned char*>(this) + sizeof *this;
  }
};

/// What rxe_send_wr::wr holds of a FLUSH (`flush`, since Linux 6.2: older headers do not have it).
/// Source: Linux 6.12's <rdma/rdma_user_rxe.h>, which also lays the 8 bytes of an ATOMIC WRITE
/// (`atomic_wr`) where inline bytes would be.
struct FlushWords {
  std::uint64_t remote_addr;
  std::uint32_t length;
  std::uint32_t rkey;
  std::uint8_t type;   ///< ibv_placement_type
  std::uint8_t level;  ///< ibv_selectivity_level
  std::uint8_t padding[6];
};

static_assert(sizeof(FlushWords) == 24 && sizeof(FlushWords) <= sizeof(rxe_send_wr::wr));
static_assert(offsetof(FlushWords, length) == 8 && offsetof(FlushWords, rkey) == 12);
static_assert(offsetof(FlushWords, type) == 16 && offsetof(FlushWords, level) == 17);
static_assert(sizeof(DmaInfo) == 24 && sizeof(rxe_sge) == 16);
static_assert(sizeof(rxe_send_wr) == 144 && offsetof(rxe_send_wr, wr) == 24);
static_assert(offsetof(rxe_send_wr, ex) == 20 && offsetof(rxe_send_wr, wr.atomic.rkey) == 48);
static_assert(offsetof(rxe_send_wr, wr.ud.ah_num) == 36 &&
              offsetof(rxe_send_wr, wr.mw.access) == 52);
static_assert(sizeof(SendElement) == 208 && offsetof(SendElement, status) == 144);
// Slots are powers of two, so the smallest has room for an ATOMIC WRITE.
static_assert(std::bit_ceil(sizeof(SendElement)) >= sizeof(SendElement) + 8);
static_assert(offsetof(SendElement, iova) == 152 && offsetof(SendElement, dma) == 184);
static_assert(sizeof(ReceiveElement) == 40 && offsetof(ReceiveElement, dma) == 16);
static_assert(sizeof(ib_uverbs_wc) == 48 && offsetof(ib_uverbs_wc, ex) == 24);
static_assert(offsetof(ib_uverbs_wc, pkey_index) == 40 && offsetof(ib_uverbs_wc, port_num) == 46);
static_assert(offsetof(rxe_queue_buf, producer_index) == 128);
static_assert(offsetof(rxe_queue_buf, consumer_index) == 256);
static_assert(offsetof(rxe_queue_buf, data) == 384);

/// How many SGEs an element of this size holds behind its head.
template <class Element>
[[nodiscard]] constexpr std::uint32_t sges_in(std::size_t element_size) noexcept {
  return element_size < sizeof(Element)
             ? 0
             : static_cast<std::uint32_t>((element_size - sizeof(Element)) / sizeof(rxe_sge));
}

}  // namespace verbatim::rxe
