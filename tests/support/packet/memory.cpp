// SPDX-License-Identifier: BSD-2-Clause
// The bytes of SGEs, by our own keys.
#include "runtime/verbs/software/local_keys_fast.hpp"
#include "tests/support/packet/objects.hpp"

namespace verbatim::packet {

struct Finder {
  std::uint32_t pd;
  std::uint32_t need;
  bool is_inline;

  bool operator()(const ibv_sge& sge, std::uint64_t bytes, MemoryPlace& out) const {
    const auto view = world().keys.view();
    const OwnKeys<KeyRecord> keys{view.records, view.capacity, pd};
    out = {reinterpret_cast<unsigned char*>(sge.addr), bytes};
    return is_inline || find_local_bytes(keys, sge.lkey, sge.addr, bytes, need, out.at);
  }
};

bool gather(std::uint32_t pd, const ibv_sge* list, std::uint32_t count, bool is_inline,
            Bytes& out) {
  MemoryPlace places[kLimits.max_sge];
  out.resize(bytes_of(list, count));
  return find_places(list, count, out.size(), places, Finder{pd, 0, is_inline}) == IBV_WC_SUCCESS &&
         verbatim::gather(out.data(), places, count, 0, out.size());
}

ibv_wc_status scatter(std::uint32_t pd, const ibv_sge* list, std::uint32_t count,
                      const Bytes& bytes) {
  MemoryPlace places[kLimits.max_sge];
  const Finder finder{pd, IBV_ACCESS_LOCAL_WRITE, false};
  const ibv_wc_status status = find_places(list, count, bytes.size(), places, finder);
  if (status == IBV_WC_SUCCESS)
    static_cast<void>(verbatim::scatter(places, count, 0, bytes.data(), bytes.size()));
  return status;
}

}  // namespace verbatim::packet
