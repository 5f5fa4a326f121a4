// SPDX-License-Identifier: BSD-2-Clause
// The bytes of SGEs, by our own keys.
#include <algorithm>
#include <cstring>

#include "runtime/verbs/software/local_keys_fast.hpp"
#include "tests/support/packet/objects.hpp"

namespace verbatim::packet {

unsigned char* find(std::uint32_t pd, const ibv_sge& piece, std::uint32_t need) {
  const auto view = world().keys.view();
  unsigned char* at = nullptr;
  const OwnKeys<KeyRecord> keys{view.records, view.capacity, pd};
  return find_local_bytes(keys, piece.lkey, piece.addr, piece.length, need, at) ? at : nullptr;
}

bool gather(std::uint32_t pd, const Pieces& pieces, bool is_inline, Bytes& out) {
  for (const ibv_sge& piece : pieces) {
    if (piece.length == 0) continue;
    const unsigned char* const at =
        is_inline ? reinterpret_cast<const unsigned char*>(piece.addr) : find(pd, piece, 0);
    if (at == nullptr) return false;
    out.insert(out.end(), at, at + piece.length);
  }
  return true;
}

bool scatter(std::uint32_t pd, const Pieces& pieces, const Bytes& bytes) {
  std::size_t done = 0;
  for (ibv_sge piece : pieces) {
    piece.length =
        static_cast<std::uint32_t>(std::min<std::size_t>(piece.length, bytes.size() - done));
    if (piece.length == 0) continue;
    unsigned char* const at = find(pd, piece, IBV_ACCESS_LOCAL_WRITE);
    if (at == nullptr) return false;
    std::memcpy(at, bytes.data() + done, piece.length);
    done += piece.length;
  }
  return done == bytes.size();
}

}  // namespace verbatim::packet
