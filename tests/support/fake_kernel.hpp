// SPDX-License-Identifier: BSD-2-Clause
// A kernel small enough to read: it owns keys, QP numbers, QP states, GID and P_Key tables, and the
// descriptors that events come through, and knows nothing of the library. Programs see it through
// system-call-like functions that answer 0 or an errno. Any thread (one mutex).
//
// Event descriptors carry records, as the real ones do: 8 bytes {user handle} on a completion
// channel, 16 bytes {user handle, event type, reserved} on the asynchronous one. Destroying an
// object drops its unread records and tells how many had been read.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace verbatim::fake {

struct CompletionRecord {
  std::uint64_t user_handle;
};
struct AsyncRecord {
  std::uint64_t user_handle;
  std::uint32_t type;
  std::uint32_t reserved;
};

/// A pipe with records in it. The writer's and the dropper's side of a descriptor that programs
/// hold.
class RecordPipe {
 public:
  RecordPipe();
  ~RecordPipe();
  RecordPipe(const RecordPipe&) = delete;
  RecordPipe& operator=(const RecordPipe&) = delete;
  int user_fd() const { return read_fd_; }
  void put(const void* record, std::size_t size);
  /// Takes the unread records of one user handle out; returns how many.
  std::uint32_t drop(std::uint64_t user_handle, std::size_t record_size);

 private:
  int read_fd_;
  int drain_fd_;  ///< the same pipe, but never blocking
  int write_fd_;
};

struct DestroyReply {
  std::uint32_t completion_events = 0;  ///< read so far, dropped ones not counted
  std::uint32_t async_events = 0;
};

class Kernel {
 public:
  static constexpr std::uint32_t kFirstKey = 0xabc000;
  static constexpr std::uint32_t kFirstQpn = 0x700001;
  static constexpr std::size_t kGidRows = 200;

  static Kernel& instance();

  // Commands.
  int open(RecordPipe** async);
  void close(RecordPipe* async);
  int reg_mr(std::uint32_t& lkey, std::uint32_t& rkey);
  int dereg_mr(std::uint32_t lkey);
  RecordPipe* create_channel();
  void destroy_channel(RecordPipe* channel);
  int create_cq(std::uint64_t user_handle, RecordPipe* channel, RecordPipe* async);
  int destroy_cq(std::uint64_t user_handle, DestroyReply& reply);
  int create_qp(std::uint64_t user_handle, RecordPipe* async, std::uint32_t& qpn);
  /// Only the order RESET, INIT, RTR, RTS, and ERR and RESET from everywhere: not the library's
  /// table.
  int modify_qp(std::uint64_t user_handle, const ibv_qp_attr& attr, int mask);
  int query_qp(std::uint64_t user_handle, ibv_qp_attr& attr);
  int destroy_qp(std::uint64_t user_handle, DestroyReply& reply);
  int query_gid(int index, ibv_gid& gid);
  int query_pkey(int index, std::uint16_t& pkey);

  // What hardware would do. Rows that are not given are empty.
  void set_gids(std::vector<ibv_gid> gids);
  void complete(std::uint64_t user_handle);
  void raise(std::uint64_t user_handle, ibv_event_type type);
  std::size_t live_objects();

 private:
  struct Object {
    RecordPipe* channel = nullptr;
    RecordPipe* async = nullptr;
    std::uint32_t completions = 0;
    std::uint32_t asyncs = 0;
    ibv_qp_attr attributes{};
  };
  int destroy_locked(std::uint64_t user_handle, DestroyReply& reply);

  std::mutex mutex_;
  std::uint32_t next_key_ = kFirstKey;
  std::uint32_t next_qpn_ = kFirstQpn;
  std::map<std::uint64_t, Object> objects_;
  std::map<std::uint32_t, bool> regions_;
  std::vector<ibv_gid> gids_;
};

}  // namespace verbatim::fake
