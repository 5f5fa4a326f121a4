// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/fake_kernel.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

namespace verbatim::fake {

RecordPipe::RecordPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category());
  read_fd_ = ends[0];
  write_fd_ = ends[1];
  // Flags belong to an open file, so an own one leaves the program's O_NONBLOCK alone.
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", read_fd_);
  drain_fd_ = ::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (drain_fd_ < 0) throw std::system_error(errno, std::generic_category());
}

RecordPipe::~RecordPipe() {
  ::close(read_fd_);
  ::close(drain_fd_);
  ::close(write_fd_);
}

void RecordPipe::put(const void* record, std::size_t size) {
  if (::write(write_fd_, record, size) != static_cast<ssize_t>(size)) {
    throw std::system_error(errno, std::generic_category());
  }
}

std::uint32_t RecordPipe::drop(std::uint64_t user_handle, std::size_t record_size) {
  std::vector<AsyncRecord> kept;
  std::uint32_t dropped = 0;
  AsyncRecord record{};
  while (::read(drain_fd_, &record, record_size) == static_cast<ssize_t>(record_size)) {
    if (record.user_handle == user_handle) {
      ++dropped;
    } else {
      kept.push_back(record);
    }
  }
  for (const AsyncRecord& again : kept) put(&again, record_size);
  return dropped;
}

Kernel& Kernel::instance() {
  static Kernel kernel;
  return kernel;
}

int Kernel::open(RecordPipe** async) {
  *async = new RecordPipe;
  return 0;
}

void Kernel::close(RecordPipe* async) { delete async; }

int Kernel::reg_mr(std::uint32_t& lkey, std::uint32_t& rkey) {
  const std::lock_guard guard(mutex_);
  lkey = next_key_++;
  rkey = lkey ^ 0x1000000;  // not the same: nobody may rely on that
  regions_[lkey] = true;
  return 0;
}

int Kernel::dereg_mr(std::uint32_t lkey) {
  const std::lock_guard guard(mutex_);
  return regions_.erase(lkey) == 1 ? 0 : EINVAL;
}

RecordPipe* Kernel::create_channel() { return new RecordPipe; }
void Kernel::destroy_channel(RecordPipe* channel) { delete channel; }

int Kernel::create_cq(std::uint64_t user_handle, RecordPipe* channel, RecordPipe* async) {
  const std::lock_guard guard(mutex_);
  Object& cq = objects_[user_handle];
  cq.channel = channel;
  cq.async = async;
  return 0;
}

int Kernel::destroy_cq(std::uint64_t user_handle, DestroyReply& reply) {
  const std::lock_guard guard(mutex_);
  return destroy_locked(user_handle, reply);
}

int Kernel::create_qp(std::uint64_t user_handle, RecordPipe* async, std::uint32_t& qpn) {
  const std::lock_guard guard(mutex_);
  objects_[user_handle].async = async;
  qpn = next_qpn_++;
  return 0;
}

int Kernel::modify_qp(std::uint64_t user_handle, const ibv_qp_attr& attr, int mask) {
  const std::lock_guard guard(mutex_);
  ibv_qp_attr& now = objects_.at(user_handle).attributes;
  if ((mask & IBV_QP_STATE) != 0) {
    const bool anywhere = attr.qp_state == IBV_QPS_ERR || attr.qp_state == IBV_QPS_RESET;
    if (!anywhere && attr.qp_state != now.qp_state + 1) return EINVAL;
    now.qp_state = attr.qp_state;
  }
  if ((mask & IBV_QP_QKEY) != 0) now.qkey = attr.qkey;
  return 0;
}

int Kernel::query_qp(std::uint64_t user_handle, ibv_qp_attr& attr) {
  const std::lock_guard guard(mutex_);
  attr = objects_.at(user_handle).attributes;
  return 0;
}

int Kernel::destroy_qp(std::uint64_t user_handle, DestroyReply& reply) {
  const std::lock_guard guard(mutex_);
  return destroy_locked(user_handle, reply);
}

int Kernel::destroy_locked(std::uint64_t user_handle, DestroyReply& reply) {
  const auto found = objects_.find(user_handle);
  if (found == objects_.end()) return EINVAL;
  Object& object = found->second;
  if (object.channel != nullptr) {
    object.completions -= object.channel->drop(user_handle, sizeof(CompletionRecord));
  }
  if (object.async != nullptr) {
    object.asyncs -= object.async->drop(user_handle, sizeof(AsyncRecord));
  }
  reply = {object.completions, object.asyncs};
  objects_.erase(found);
  return 0;
}

int Kernel::query_gid(int index, ibv_gid& gid) {
  const std::lock_guard guard(mutex_);
  if (index < 0 || static_cast<std::size_t>(index) >= gids_.size()) return EINVAL;
  gid = gids_[static_cast<std::size_t>(index)];
  constexpr ibv_gid kEmpty{};
  return std::memcmp(&gid, &kEmpty, sizeof gid) == 0 ? ENODATA : 0;
}

int Kernel::query_pkey(int index, std::uint16_t& pkey) {
  constexpr std::uint16_t kTable[] = {0xffff, 0x8123, 0x0123};
  if (index < 0 || static_cast<std::size_t>(index) >= std::size(kTable)) return EINVAL;
  pkey = kTable[index];
  return 0;
}

void Kernel::set_gids(std::vector<ibv_gid> gids) {
  const std::lock_guard guard(mutex_);
  gids_ = std::move(gids);
  gids_.resize(kGidRows);
}

void Kernel::complete(std::uint64_t user_handle) {
  const std::lock_guard guard(mutex_);
  Object& cq = objects_.at(user_handle);
  const CompletionRecord record{user_handle};
  cq.channel->put(&record, sizeof record);
  ++cq.completions;
}

void Kernel::raise(std::uint64_t user_handle, ibv_event_type type) {
  const std::lock_guard guard(mutex_);
  Object& object = objects_.at(user_handle);
  const AsyncRecord record{user_handle, static_cast<std::uint32_t>(type), 0};
  object.async->put(&record, sizeof record);
  ++object.asyncs;
}

std::size_t Kernel::live_objects() {
  const std::lock_guard guard(mutex_);
  return objects_.size() + regions_.size();
}

}  // namespace verbatim::fake
