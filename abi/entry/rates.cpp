// SPDX-License-Identifier: BSD-2-Clause
// Static rates in other units. The multiples of 2.5 Gbit/s exist only for the rates that the oldest
// programs know and for some of the newest, as in rdma-core: programs compare. Spec: IBTA
// PathRecord:Rate.
#include "abi/entry/border.hpp"

namespace {

struct Rate {
  ibv_rate code;
  int multiple;  ///< -1: has none
  int mbps;
};

constexpr int kNoMultiple = -1;

constexpr Rate kRates[] = {
    {IBV_RATE_2_5_GBPS, 1, 2500},
    {IBV_RATE_5_GBPS, 2, 5000},
    {IBV_RATE_10_GBPS, 4, 10000},
    {IBV_RATE_20_GBPS, 8, 20000},
    {IBV_RATE_30_GBPS, 12, 30000},
    {IBV_RATE_40_GBPS, 16, 40000},
    {IBV_RATE_60_GBPS, 24, 60000},
    {IBV_RATE_80_GBPS, 32, 80000},
    {IBV_RATE_120_GBPS, 48, 120000},
    {IBV_RATE_14_GBPS, kNoMultiple, 14062},
    {IBV_RATE_56_GBPS, kNoMultiple, 56250},
    {IBV_RATE_112_GBPS, kNoMultiple, 112500},
    {IBV_RATE_168_GBPS, kNoMultiple, 168750},
    {IBV_RATE_25_GBPS, kNoMultiple, 25781},
    {IBV_RATE_100_GBPS, kNoMultiple, 103125},
    {IBV_RATE_200_GBPS, kNoMultiple, 206250},
    {IBV_RATE_300_GBPS, kNoMultiple, 309375},
    {IBV_RATE_28_GBPS, 11, 28125},
    {IBV_RATE_50_GBPS, 20, 53125},
    {IBV_RATE_400_GBPS, 160, 425000},
    {IBV_RATE_600_GBPS, 240, 637500},
    {IBV_RATE_800_GBPS, 320, 850000},
    {IBV_RATE_1200_GBPS, 480, 1275000},
};

}  // namespace

VBT_ENTRY int ibv_rate_to_mult(ibv_rate rate) {
  for (const Rate& row : kRates) {
    if (row.code == rate) return row.multiple;
  }
  return -1;
}

VBT_ENTRY ibv_rate mult_to_ibv_rate(int multiple) {
  for (const Rate& row : kRates) {
    if (row.multiple == multiple && multiple != kNoMultiple) return row.code;
  }
  return IBV_RATE_MAX;
}

VBT_ENTRY int ibv_rate_to_mbps(ibv_rate rate) {
  for (const Rate& row : kRates) {
    if (row.code == rate) return row.mbps;
  }
  return -1;
}

VBT_ENTRY ibv_rate mbps_to_ibv_rate(int mbps) {
  for (const Rate& row : kRates) {
    if (row.mbps == mbps) return row.code;
  }
  return IBV_RATE_MAX;
}
