// SPDX-License-Identifier: BSD-2-Clause
//
// Endpoint: memory of every kind beyond a plain registration, and memory windows.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "tests/support/endpoint.hpp"
#include "tests/support/fail.hpp"

namespace verbatim::harness {

RegionInfo Endpoint::keep_region(Region region) {
  region.lkey = region.mr->lkey;
  RegionInfo info;
  info.id = static_cast<std::int32_t>(regions_.size());
  info.lkey = region.mr->lkey;
  info.rkey = region.mr->rkey;
  info.address = region.iova;
  info.size = region.size;
  regions_.push_back(std::move(region));
  return info;
}

ibv_pd* Endpoint::foreign_pd() {
  if (!foreign_pd_) foreign_pd_.reset(ibv_alloc_pd(context()));
  if (!foreign_pd_) fail("ibv_alloc_pd", errno);
  return foreign_pd_.get();
}

RegionInfo Endpoint::register_as(RegionWish wish) {
  Region made;
  made.size = wish.size;
  if (wish.of >= 0) {
    const Region& source = regions_.at(static_cast<std::size_t>(wish.of));
    made.memory = source.memory;
    made.start = source.start + wish.offset;
  } else {
    made.size = SIZE_MAX;
  }
  ibv_pd* const in = wish.foreign_pd != 0 ? foreign_pd() : pd();
  const auto access = static_cast<unsigned>(wish.access);
  made.iova = (access & IBV_ACCESS_ZERO_BASED) != 0 ? 0
              : wish.with_iova != 0                 ? wish.iova
                                                    : reinterpret_cast<std::uintptr_t>(made.start);
  made.mr.reset(wish.with_iova != 0 ? ibv_reg_mr_iova2(in, made.start, made.size, wish.iova, access)
                                    : ibv_reg_mr(in, made.start, made.size, wish.access));
  if (!made.mr) fail("ibv_reg_mr", errno);
  return keep_region(std::move(made));
}

std::int32_t Endpoint::change_region(std::int32_t id, std::int32_t flags, RegionWish wish) {
  Region& region = regions_.at(static_cast<std::size_t>(id));
  const Region& source = regions_.at(static_cast<std::size_t>(wish.of >= 0 ? wish.of : id));
  unsigned char* const start = source.start + wish.offset;
  const int answer =
      ibv_rereg_mr(region.mr.get(), flags, wish.foreign_pd != 0 ? foreign_pd() : pd(), start,
                   wish.size, wish.access);
  if (answer != 0) return answer;
  region.lkey = region.mr->lkey;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    region.memory = source.memory;
    region.start = start;
    region.size = wish.size;
    const bool zero_based = (wish.access & IBV_ACCESS_ZERO_BASED) != 0;
    region.iova = zero_based ? 0 : reinterpret_cast<std::uintptr_t>(start);
  }
  return 0;
}

RegionInfo Endpoint::allocate_null() {
  Region region;
  region.mr.reset(ibv_alloc_null_mr(pd()));
  if (!region.mr) fail("ibv_alloc_null_mr", errno);
  region.size = region.mr->length;
  return keep_region(std::move(region));
}

RegionInfo Endpoint::allocate_losing(std::uint64_t size, std::int32_t access, std::uint64_t end,
                                     std::int32_t loss) {
  const int file = ::memfd_create("losing", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0) fail("memfd_create", errno);
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) fail("mmap", errno);
  Region region;
  region.memory = {memory, [size](void* at) { ::munmap(at, size); }};
  region.start = static_cast<unsigned char*>(memory);
  region.size = size;
  const RegionInfo made = add_region(std::move(region), access, pd());
  const bool lost = Loss{loss} == Loss::kTruncated
                        ? ::ftruncate(file, static_cast<off_t>(end)) == 0
                        : ::mprotect(static_cast<char*>(memory) + end, size - end, PROT_NONE) == 0;
  if (!lost) fail("memory that goes", errno);
  ::close(file);
  return made;
}

RegionInfo Endpoint::allocate_device(std::uint64_t size, std::int32_t access) {
  ibv_alloc_dm_attr attr{};
  attr.length = size;
  DmHandle device(ibv_alloc_dm(context(), &attr));
  if (!device) fail("ibv_alloc_dm", errno);
  Region region;
  region.mr.reset(ibv_reg_dm_mr(pd(), device.get(), 0, size,
                                static_cast<unsigned>(access) | IBV_ACCESS_ZERO_BASED));
  if (!region.mr) fail("ibv_reg_dm_mr", errno);
  region.size = size;
  region.device = static_cast<std::int32_t>(devices_.size());
  devices_.push_back(std::move(device));
  return keep_region(std::move(region));
}

std::vector<std::uint8_t> Endpoint::copy_from_device(std::int32_t id, std::uint64_t offset,
                                                     std::uint64_t length) {
  const std::int32_t device = regions_.at(static_cast<std::size_t>(id)).device;
  std::vector<std::uint8_t> bytes(length);
  const int error = ibv_memcpy_from_dm(
      bytes.data(), devices_.at(static_cast<std::size_t>(device)).get(), offset, length);
  if (error != 0) fail("ibv_memcpy_from_dm", error);
  return bytes;
}

std::int32_t Endpoint::copy_to_device(std::int32_t id, std::uint64_t offset,
                                      std::vector<std::uint8_t> bytes) {
  const std::int32_t device = regions_.at(static_cast<std::size_t>(id)).device;
  return ibv_memcpy_to_dm(devices_.at(static_cast<std::size_t>(device)).get(), offset, bytes.data(),
                          bytes.size());
}

WindowInfo Endpoint::allocate_window(std::int32_t type) {
  MwHandle made(ibv_alloc_mw(pd(), static_cast<ibv_mw_type>(type)));
  if (!made) fail("ibv_alloc_mw", errno);
  WindowInfo info;
  info.id = static_cast<std::int32_t>(windows_.size());
  info.rkey = made->rkey;
  info.type = type;
  windows_.push_back(std::move(made));
  return info;
}

std::int32_t Endpoint::free_window(std::int32_t id) {
  MwHandle& doomed = windows_.at(static_cast<std::size_t>(id));
  const int error = ibv_dealloc_mw(doomed.get());
  if (error == 0) (void)doomed.release();
  return error;
}

std::int32_t Endpoint::bind_window(std::int32_t qp_id, WindowBind bind) {
  ibv_mw* const mw = window(bind.window);
  ibv_mw_bind_info info{};
  info.mr = bind.region >= 0 ? mr(bind.region) : nullptr;
  info.addr = bind.address;
  info.length = bind.length;
  info.mw_access_flags = bind.access;
  if (mw->type == IBV_MW_TYPE_1) {
    ibv_mw_bind asked{bind.wr_id, bind.flags, info};
    return ibv_bind_mw(qp(qp_id), mw, &asked);
  }
  ibv_send_wr wr{};
  wr.wr_id = bind.wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind.flags;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = bind.rkey;
  wr.bind_mw.bind_info = info;
  ibv_send_wr* bad = nullptr;
  return ibv_post_send(qp(qp_id), &wr, &bad);
}

std::uint32_t Endpoint::window_key(std::int32_t id) { return window(id)->rkey; }

}  // namespace verbatim::harness
