// SPDX-License-Identifier: BSD-2-Clause
//
// What a peer says of its memory: the header of its segment, which says where its tables are, and
// the records of its regions, which say where its memory is. Whatever it says, what we would touch
// lies inside what we have mapped of it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "providers/shm/transfer/reach.hpp"
#include "providers/shm/transfer/send_fast.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/fuzz/stranger.hpp"

namespace verbatim::fuzz {
namespace {

using namespace verbatim::shm;

constexpr std::uint64_t kArenas = 3;
constexpr std::uint32_t kRights = IBV_ACCESS_REMOTE_WRITE;
constexpr std::uint32_t kPeerQpn = 1;

/// May the queue pair of the scene use what has this holder?
bool ours(std::uint32_t holder) {
  return holder == 1 || holder == (holder::kWindowOfPd | 1u) ||
         holder == (holder::kWindowOfQp | kPeerQpn);
}

struct Scene {
  Stranger stranger{0x3333, 0xfa0};
  Peer peer;
  shm::Qp qp;
  QpRecord record{};
  unsigned char* memory = nullptr;

  Scene() {
    setenv("VERBATIM_LOG", "off", 0);
    // Addresses only: nothing here is touched.
    void* const at = mmap(nullptr, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    VBT_HOLDS(at != MAP_FAILED);
    memory = static_cast<unsigned char*>(at);
    for (std::uint32_t i = 0; i < kArenas; ++i) {
      peer.arenas[i].size = std::uint64_t{4096} << (2 * i);
      peer.arenas[i].base.store(memory + (i << 18));
    }
    // Nobody is there to fetch the others.
    for (auto& word : peer.refused.words) word.store(~std::uint64_t{0});
    qp.link.peer = &peer;
    qp.link.remote_pd = 1;
    record.dest_qpn = kPeerQpn;
    qp.own = &record;
  }
  bool mapped(const unsigned char* at, std::uint64_t bytes) const {
    for (const Arena& arena : peer.arenas) {
      const unsigned char* base = arena.base.load();
      if (base == nullptr || at < base) continue;
      const auto offset = static_cast<std::uint64_t>(at - base);
      if (offset <= arena.size && bytes <= arena.size - offset) return true;
    }
    return false;
  }
};

Scene& scene() {
  static Scene* const made = new Scene;
  return *made;
}

void judge_regions(Input& input, Scene& all) {
  RegionRecord table[4] = {};
  for (std::uint32_t i = 0; i < 4; ++i) {
    RegionRecord& record = table[i];
    record.iova = input.number();
    record.length = input.number();
    record.address = input.number();
    record.arena_offset = input.number();
    record.key = i << 8 | (input.take() & 3u);
    record.access = input.take();
    const std::uint32_t held = input.take();
    record.pd = (held & 1u) | (held & 6u) << 29;
    record.arena = input.take() % 5u;
    record.serial.store(input.take());
  }
  shm::Qp& qp = all.qp;
  qp.link.remote_regions = table;
  qp.link.remote_region_capacity = 4;
  qp.direct.write = {};
  for (int asks = 0; asks < 16; ++asks) {
    // What the application asks for: mostly something about a region that there is.
    const std::uint32_t key = static_cast<std::uint32_t>(input.flag() ? input.number() : 0) |
                              input.below(8) << 8 | (input.take() & 3u);
    const RegionRecord& meant = table[(key >> 8) % 4];
    const std::uint64_t start = (input.flag() ? meant.iova : 0) + input.number();
    const std::uint64_t bytes = input.flag() ? input.below(8192) : input.number();
    Region region;
    std::uint64_t offset;
    const bool known = find_region(table, 4, key, region);
    VBT_HOLDS(!known || (key >> 8 < 4 && region.serial != 0));
    if (known && region.contains(start, bytes, offset))
      VBT_HOLDS(offset <= region.length && bytes <= region.length - offset);

    unsigned char* at = mapped_bytes(qp, key, start, bytes, kRights);
    VBT_HOLDS(at == nullptr || all.mapped(at, bytes));
    std::uint64_t address;
    if (way_to(qp, key, start, bytes, kRights, at, address) == Reach::kDone)
      VBT_HOLDS(all.mapped(at, bytes));
    if (!find_target(qp, qp.direct.write, key, IBV_ACCESS_REMOTE_WRITE)) continue;
    const WriteTarget& target = qp.direct.write;
    VBT_HOLDS(target.rkey == key && all.mapped(target.base, target.length));
    VBT_HOLDS((table[key >> 8].access & kRights) == kRights && ours(table[key >> 8].pd));
  }
}

/// A file of this size and these seals, with a header of these words.
void judge_segment(Input& input, Scene& all) {
  all.stranger.restore();
  const std::uint32_t lies = input.below(8);
  for (std::uint32_t i = 0; i < lies; ++i) {
    const std::uint64_t at = input.below(sizeof(SegmentHeader) / 4) * 4;
    const std::uint64_t value = input.number();
    std::memcpy(all.stranger.base() + at, &value, 4);
  }
  const std::uint8_t how = input.take();
  UniqueFd file(memfd_create("header", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const std::uint64_t size =
      (how & 1u) != 0 ? Stranger::kBytes : input.number() % (std::uint64_t{1} << 31);
  VBT_HOLDS(ftruncate(file.get(), static_cast<off_t>(size)) == 0);
  if (pwrite(file.get(), all.stranger.base(), 4096, 0) != 4096) return;
  if ((how & 6u) != 0) VBT_HOLDS(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  PeerSegment segment;
  if (segment.map(file.get(), (how & 8u) != 0 ? file.get() : all.stranger.doorbell_fd()) == 0) {
    VBT_HOLDS((how & 6u) != 0 && size >= sizeof(SegmentHeader) && segment.identity() != 0);
    const auto inside = [&](const void* table, std::uint64_t table_bytes) {
      const auto offset =
          static_cast<std::uint64_t>(static_cast<const unsigned char*>(table) -
                                     reinterpret_cast<const unsigned char*>(&segment.live_head()));
      return offset <= size && table_bytes <= size - offset;
    };
    VBT_HOLDS(inside(segment.regions(), segment.region_capacity() * sizeof(RegionRecord)));
    VBT_HOLDS(inside(segment.qps(), segment.qp_capacity() * sizeof(QpRecord)));
    VBT_HOLDS(inside(segment.cqs(), kMaxCqs * sizeof(CqRecord)));
    for (int asks = 0; asks < 4; ++asks) {
      const std::uint64_t length = input.number();
      const auto* at = segment.at<std::uint64_t>(input.number(), length);
      VBT_HOLDS(at == nullptr || inside(at, length));
    }
  }
  segment.unmap();
}

}  // namespace

void run_one(Bytes bytes) {
  Input input(bytes);
  if (input.flag())
    judge_segment(input, scene());
  else
    judge_regions(input, scene());
}

}  // namespace verbatim::fuzz
