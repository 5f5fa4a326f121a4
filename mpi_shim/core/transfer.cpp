// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/transfer.hpp"

#include <cstdlib>

#include "mpi_shim/core/fabric.hpp"

namespace vmpi {

TransferTable transfers;

namespace {

int rights_for(Exposure exposure) noexcept {
  switch (exposure) {
    case Exposure::kRead:
      return IBV_ACCESS_REMOTE_READ;
    case Exposure::kReadInto:
      return IBV_ACCESS_LOCAL_WRITE;
    case Exposure::kWritten:
      return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  }
  return 0;
}

}  // namespace

Transfer* find_transfer(std::uint32_t id, std::uint32_t rank, Transfer::Step step) noexcept {
  Transfer* const found = transfers.find(id);
  return found != nullptr && found->rank == rank && found->step == step ? found : nullptr;
}

void release_transfer(Transfer& transfer) noexcept {
  if (transfer.mr != nullptr && !transfer.is_mr_kept) (void)ibv_dereg_mr(transfer.mr);
  std::free(transfer.temporary);
  transfers.release(transfer);
}

bool expose(Transfer& transfer, std::uint64_t bytes, Exposure exposure) noexcept {
  const Request& request = *transfer.request;
  if (request.type->is_contiguous) {
    transfer.local = first_byte(*request.type, request.buffer);
  } else {
    transfer.temporary = std::malloc(bytes);
    if (transfer.temporary == nullptr) return false;
    transfer.local = static_cast<unsigned char*>(transfer.temporary);
    if (exposure == Exposure::kRead)
      (void)pack(*request.type, request.count, request.buffer, 0, transfer.temporary, bytes);
  }
  transfer.mr = mr_of_mapped(transfer.local, bytes);
  transfer.is_mr_kept = transfer.mr != nullptr;
  // Memory that malloc gave may be unmapped and mapped anew behind our back, so its registration
  // lives as long as the transfer.
  if (transfer.mr == nullptr)
    transfer.mr = ibv_reg_mr(fabric.pd, transfer.local, bytes, rights_for(exposure));
  if (transfer.mr != nullptr) return true;
  std::free(transfer.temporary);
  transfer.temporary = nullptr;
  return false;
}

}  // namespace vmpi
