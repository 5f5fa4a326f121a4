// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/top_segments.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string_view>

#include "providers/shm/wire/layout.hpp"
#include "runtime/base/printable.hpp"

namespace verbatim::cli {
namespace {

using shm::QpRecord;
using shm::SegmentHeader;

constexpr std::string_view kSegmentName = "/memfd:verbatim-segment";
constexpr std::uint32_t kMostEntries = 1u << 16;

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

class File {
 public:
  explicit File(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

  bool read(std::uint64_t offset, void* to, std::size_t bytes) const {
    return pread(fd_, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  }
  /// No byte of the range was ever written.
  bool is_hole(std::uint64_t offset, std::uint64_t bytes) const {
    const off_t data = lseek(fd_, static_cast<off_t>(offset), SEEK_DATA);
    return data < 0 || static_cast<std::uint64_t>(data) >= offset + bytes;
  }

 private:
  int fd_;
};

/// A copy of a shared structure, which may hold atomics.
template <class T>
class Copy {
 public:
  bool read(const File& file, std::uint64_t offset) { return file.read(offset, bytes_, sizeof(T)); }
  const T& operator*() const { return *reinterpret_cast<const T*>(bytes_); }
  const T* operator->() const { return reinterpret_cast<const T*>(bytes_); }

 private:
  alignas(T) unsigned char bytes_[sizeof(T)] = {};
};

std::vector<std::string> entries_of(const std::string& path) {
  std::vector<std::string> names;
  const Directory directory(opendir(path.c_str()));
  while (directory != nullptr) {
    const dirent* const entry = readdir(directory.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') names.emplace_back(entry->d_name);
  }
  return names;
}

std::string printable(const char* text, std::size_t most) {
  std::string name(text, strnlen(text, most));
  make_printable_name(name.data(), name.size());
  return name;
}

/// The process that holds the record lock that every owner holds on its segment; 0: nobody does.
pid_t owner_of(const File& file) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  if (fcntl(file.fd(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
  return lock.l_pid;
}

/// Receives that senders may use: from `next` on, those whose credits carry the lap of their place
/// or (when `later` ones count) a later lap. They are posted in order, so a search by halves tells.
std::uint32_t posted_receives(const File& file, std::uint64_t size, std::uint64_t credits,
                              std::uint32_t log, std::uint64_t next) {
  const std::uint64_t entries = std::uint64_t{1} << log;
  if (log > 16 || credits == 0 || credits > size || entries * 8 > size - credits) return 0;
  std::uint64_t low = 0, high = entries;
  while (low < high) {
    const std::uint64_t middle = (low + high) / 2;
    const std::uint64_t index = next + middle;
    std::uint64_t credit;
    if (!file.read(credits + (index & (entries - 1)) * 8, &credit, sizeof credit)) return 0;
    const auto lap = static_cast<std::uint32_t>(index >> log) + 1;
    if (static_cast<std::int32_t>(static_cast<std::uint32_t>(credit >> 32) - lap) >= 0)
      low = middle + 1;
    else
      high = middle;
  }
  return static_cast<std::uint32_t>(low);
}

bool is_known_type(std::uint32_t type) {
  return type == IBV_QPT_RC || type == IBV_QPT_UC || type == IBV_QPT_UD ||
         type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV || type == QpRecord::kXrcQueue;
}

QueuePairView view_of(const File& file, std::uint64_t size, const QpRecord& record) {
  QueuePairView view;
  view.number = record.qpn;
  view.type = record.type;
  view.is_xrc_queue = record.type == QpRecord::kXrcQueue;
  view.state = record.state;
  view.peer = record.dest_qpn;
  // Two words of a living process, not of one moment.
  view.sent_messages = record.posted - std::min(record.undone, record.posted);
  view.sent_bytes = record.sent_bytes;
  view.received_messages = record.consumed.load(std::memory_order_relaxed);
  view.received_bytes = record.received_bytes;
  view.errors = record.errors.load(std::memory_order_relaxed);
  view.send_depth = record.sq_entries;
  view.sends_outstanding =
      static_cast<std::uint32_t>(record.posted) - record.polled.load(std::memory_order_relaxed);
  if (view.sends_outstanding > view.send_depth) view.sends_outstanding = 0;
  // Those of a UD queue pair's own are kept like a shared queue's.
  view.shares_receives = record.srq != 0 && (record.type != IBV_QPT_UD || record.rq_max_sge == 0);
  if (record.srq != 0) {
    Copy<shm::SrqRecord> queue;
    if (record.srq > size || sizeof(shm::SrqRecord) > size - record.srq ||
        !queue.read(file, record.srq))
      return view;
    const std::uint64_t store = queue->store.load(std::memory_order_relaxed);
    view.receive_depth = store == 0 ? 0 : 1u << std::min(shm::extent::log(store), 16u);
    view.receives_posted =
        posted_receives(file, size, shm::extent::offset(store), shm::extent::log(store),
                        queue->taken.load(std::memory_order_relaxed));
  } else if (std::has_single_bit(record.rq_entries) && record.rq_entries <= kMostEntries) {
    view.receive_depth = record.rq_entries;
    const std::uint64_t places = record.rq_credits.load(std::memory_order_relaxed);
    view.receives_posted = posted_receives(file, size, shm::extent::offset(places),
                                           shm::extent::log(places), view.received_messages);
  }
  return view;
}

/// Datagrams, and what goes to an XRC queue, come over endpoints, which are counted for the one
/// that they speak for.
void read_queue_pairs(const File& file, std::uint64_t size, const SegmentHeader& header,
                      ProcessView& process) {
  const std::uint64_t blocks = std::min<std::uint64_t>(
      header.block_count.load(std::memory_order_relaxed), shm::kMaxBlocksPerProcess);
  const std::uint64_t count =
      std::min<std::uint64_t>(header.qp_capacity, blocks * shm::kQpnsPerBlock);
  std::map<std::uint32_t, QueuePairView> found;
  std::vector<std::pair<std::uint32_t, QueuePairView>> endpoints;
  constexpr std::uint64_t kAtOnce = 64;
  for (std::uint64_t first = 0; first < count; first += kAtOnce) {
    const std::uint64_t at = header.qp_table + first * sizeof(QpRecord);
    if (file.is_hole(at, kAtOnce * sizeof(QpRecord))) continue;
    for (std::uint64_t i = first; i < std::min(first + kAtOnce, count); ++i) {
      Copy<QpRecord> record;
      if (!record.read(file, header.qp_table + i * sizeof(QpRecord))) return;
      if (record->qpn == 0 || !is_known_type(record->type)) continue;
      const QueuePairView view = view_of(file, size, *record);
      if (record->speaks_for != 0) {
        // One that leads nowhere has been counted there.
        if (record->dest_qpn != 0) endpoints.emplace_back(record->speaks_for, view);
      } else {
        found[view.number] = view;
      }
    }
  }
  for (const auto& [parent, endpoint] : endpoints) {
    const auto known = found.find(parent);
    if (known == found.end()) continue;
    known->second.received_messages += endpoint.received_messages;
    known->second.received_bytes += endpoint.received_bytes;
    known->second.errors += endpoint.errors;
  }
  for (const auto& [number, view] : found) process.queue_pairs.push_back(view);
}

bool read_segment(const File& file, pid_t pid, std::set<ino_t>& seen, ProcessView& process) {
  struct stat status {};
  if (file.fd() < 0 || fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const auto size = static_cast<std::uint64_t>(status.st_size);
  // A forked child has its parent's segment open too.
  if (size < sizeof(SegmentHeader) || size > shm::kMostSegmentBytes || owner_of(file) != pid)
    return false;
  Copy<SegmentHeader> header;
  if (!header.read(file, 0) || header->magic != shm::kSegmentMagic ||
      header->layout_version != shm::kLayoutVersion ||
      header->header_bytes != sizeof(SegmentHeader) || header->qp_capacity > shm::kMaxQps ||
      header->qp_table > size ||
      std::uint64_t{header->qp_capacity} * sizeof(QpRecord) > size - header->qp_table)
    return false;
  if (!seen.insert(status.st_ino).second) return false;
  process.pid = pid;
  process.name = printable(header->program, sizeof header->program);
  process.fabric = header->fabric;
  process.keys = header->key_count.load(std::memory_order_relaxed);
  process.cqs = header->cq_count.load(std::memory_order_relaxed);
  process.srqs = header->srq_count.load(std::memory_order_relaxed);
  read_queue_pairs(file, size, *header, process);
  return true;
}

void name_peers(std::vector<ProcessView>& processes) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, pid_t> owners;
  for (const ProcessView& process : processes)
    for (const QueuePairView& view : process.queue_pairs)
      owners[{process.fabric, view.number}] = process.pid;
  for (ProcessView& process : processes)
    for (QueuePairView& view : process.queue_pairs)
      if (const auto owner = owners.find({process.fabric, view.peer}); owner != owners.end())
        view.peer_pid = owner->second;
}

}  // namespace

std::vector<ProcessView> read_processes() {
  std::vector<ProcessView> processes;
  std::set<ino_t> seen;
  for (const std::string& pid : entries_of("/proc")) {
    struct stat status {};
    const std::string home = "/proc/" + pid;
    if (stat(home.c_str(), &status) != 0 || status.st_uid != geteuid()) continue;
    for (const std::string& number : entries_of(home + "/fd")) {
      const std::string path = home + "/fd/" + number;
      char target[64];
      const ssize_t length = readlink(path.c_str(), target, sizeof target);
      if (length <= 0 ||
          !std::string_view(target, static_cast<std::size_t>(length)).starts_with(kSegmentName))
        continue;
      ProcessView process;
      if (read_segment(File(path), static_cast<pid_t>(std::stol(pid)), seen, process))
        processes.push_back(std::move(process));
    }
  }
  std::sort(processes.begin(), processes.end(),
            [](const ProcessView& a, const ProcessView& b) { return a.pid < b.pid; });
  name_peers(processes);
  return processes;
}

}  // namespace verbatim::cli
