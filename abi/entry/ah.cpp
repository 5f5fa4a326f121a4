// SPDX-License-Identifier: BSD-2-Clause
// Address handles. Any thread.
#include "abi/entry/border.hpp"
#include "runtime/verbs/addresses.hpp"

using namespace verbatim;

VBT_ENTRY ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  return as_pointer(create_ah(Pd::from(pd), *attr));
}

VBT_ENTRY int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* wc, ibv_grh* grh,
                                  ibv_ah_attr* attr) {
  return as_minus_one(path_of_sender(Context::from(context), port, *wc, grh, *attr));
}

VBT_ENTRY ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, std::uint8_t port) {
  ibv_ah_attr attr;
  const Status status = path_of_sender(Context::from(pd->context), port, *wc, grh, attr);
  if (!status.ok()) return as_pointer(Result<Ah*>(status.error()));
  return as_pointer(create_ah(Pd::from(pd), attr));
}

VBT_ENTRY int ibv_destroy_ah(ibv_ah* ah) { return as_errno(destroy_ah(Ah::from(ah))); }

VBT_ENTRY int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attr,
                                          std::uint8_t mac[ETHERNET_LL_SIZE], std::uint16_t* vlan) {
  std::uint16_t found = 0;
  const Status status = resolve_eth_l2(Context::from(context), *attr, mac, found);
  if (status.ok() && vlan != nullptr) *vlan = found;
  return as_errno(status);
}
