// SPDX-License-Identifier: BSD-2-Clause
//
// Where the driver of a kernel device does otherwise than the specification says, by name: what is
// specified, what the driver does, which was seen on Linux 6.1 and 6.12 (both of Debian 12), or on
// the one of them that is named, and is in its source. The suite takes it from that driver alone,
// or skips the sentence with these words.
//
// Nothing stands here that a provider can set right on its own side of the kernel: that is mended,
// with a test over the fake kernel. Any thread.
#pragma once

#include <infiniband/verbs.h>

#include <compare>
#include <cstdint>
#include <string>

namespace verbatim::harness {

/// Drivers are told apart by the vendor that their devices name (ibv_device_attr).
inline constexpr std::uint32_t kRxeVendor = 0xffffff;

struct KernelVersion {
  unsigned major = 0;
  unsigned minor = 0;
  auto operator<=>(const KernelVersion&) const = default;
};
/// Between the two kernels that were seen, where exactly a driver changed is not known.
inline constexpr KernelVersion kLinux612{6, 12};
inline constexpr KernelVersion kFirstLinux{0, 0};
inline constexpr KernelVersion kNoLinux{~0u, 0};

struct Quirk {
  std::uint32_t vendor;
  const char* specified;
  const char* done;
  KernelVersion since = kFirstLinux;
  KernelVersion before = kNoLinux;
};

inline constexpr Quirk kOneStatusForLocalErrors{
    kRxeVendor,
    "IBTA 11.6.2: LOC_PROT_ERR where memory is not what a key says, LOC_LEN_ERR where a length is "
    "wrong",
    "LOC_QP_OP_ERR, of a request and of a receive"};
inline constexpr Quirk kArmedTellsOfLaterOnesOnly{
    kRxeVendor,
    "the doorbells of mlx4 and mlx5: a queue that is armed while completions lie unpolled tells at "
    "once",
    "tells of the next one that is added, as IBTA 11.4.2.2 promises"};
inline constexpr Quirk kLimitToldByTheNextReceive{
    kRxeVendor,
    "IBTA 10.2.9.3: a shared receive queue that is armed tells when fewer receives are left than "
    "the limit",
    "looks when a receive is used up"};
inline constexpr Quirk kInvalidatesAsAnOperation{
    kRxeVendor,
    "IBTA 11.6.2: a local invalidate of what is no bound window is a memory management operation "
    "error, MW_BIND_ERR",
    "LOC_QP_OP_ERR"};
inline constexpr Quirk kDiesOfAnInvalidate{
    kRxeVendor,
    "IBTA 11.6.2: a local invalidate of a window that is not bound is a memory management "
    "operation "
    "error, MW_BIND_ERR",
    "the kernel reads its region, at address 0, and panics"};
inline constexpr Quirk kOneStatusForRefusals{
    kRxeVendor,
    "IBTA 9.7.5.2.8: a message longer than its receive is an invalid request, REM_INV_REQ_ERR",
    "REM_OP_ERR, as for any receive that fails"};
inline constexpr Quirk kNoEventsOfResponders{
    kRxeVendor,
    "IBTA 11.6.3.2: a responder that refuses a request tells of it by QP_ACCESS_ERR or QP_REQ_ERR",
    "no event"};
inline constexpr Quirk kUsesTheReceiveOfARefusedWrite{
    kRxeVendor, "IBTA 9.9.3, 10.3.1: a receive that no message used is flushed, WR_FLUSH_ERR",
    "of one packet with immediate data, whose key is refused, the receive ends in REM_ACCESS_ERR"};
inline constexpr Quirk kNoLastReceiveEvent{
    kRxeVendor,
    "IBTA 11.6.3.2: LAST_WQE_REACHED when a queue pair in error will take no more shared receives",
    "no event, before Linux 6.12", kFirstLinux, kLinux612};
inline constexpr Quirk kFindsBadMemoryOfReadsLate{
    kRxeVendor,
    "a READ or an atomic whose own memory is no good fails before what is behind it is sent",
    "when the answer comes, from Linux 6.12 on: what is behind it has been sent, without a fence",
    kLinux612};
inline constexpr Quirk kFlushedIsNotSolicited{
    kRxeVendor, "man ibv_req_notify_cq: an unsuccessful completion counts as solicited",
    "a flushed one does not, from Linux 6.12 on: who is armed for solicited ones sleeps on",
    kLinux612};
inline constexpr Quirk kTellsOfEveryDrain{
    kRxeVendor, "IBTA 10.3.1.5: SQ_DRAINED when that was asked for", "SQ_DRAINED always"};
inline constexpr Quirk kNoSendQueueError{
    kRxeVendor, "IBTA 10.3.1.6: a local error of an unreliable service stops its send queue (SQE)",
    "it ends the queue pair (ERR)"};
inline constexpr Quirk kWindowsWithoutBounds{
    kRxeVendor, "IBTA 10.6.7.2.3: a window opens its own range", "a window opens the whole region"};
inline constexpr Quirk kChangesBoundRegions{
    kRxeVendor, "IBTA 11.2.8.5: a region with windows bound to it is not reregistered",
    "its domain and its rights are changed all the same, from Linux 6.12 on", kLinux612};
inline constexpr Quirk kNoAlternatePaths{
    kRxeVendor, "IBTA 17.2.8: a device with AUTO_PATH_MIG takes an alternate path",
    "says AUTO_PATH_MIG; the kernel takes none on Ethernet"};

inline constexpr Quirk kFreesSlotsEarly{
    kRxeVendor,
    "IBTA 10.8.5.1: a request keeps its place in the queue until its completion is polled",
    "until its completion is written"};
inline constexpr Quirk kRepeatsPlacementAtAddressZero{
    kRxeVendor, "IBTA 9.7.5.1.1, A19: a request that is repeated is the one that it was",
    "an ATOMIC WRITE or a FLUSH asks for address 0 then, and is refused: REM_ACCESS_ERR",
    kLinux612};
inline constexpr Quirk kNoNewPathOfConnectionsWithoutAnswers{
    kRxeVendor, "IBTA table 91: a drained UC queue pair takes a new path",
    "EINVAL: the kernel adds the path's port to the request, which its own table does not have "
    "there"};

inline constexpr Quirk kHopLimitOfTheRoute{
    kRxeVendor, "IBTA 8.3, A17: a datagram's hop limit is that of its address handle",
    "the kernel takes that of the route"};

/// Of the running kernel; {0, 0} where it does not say.
KernelVersion kernel_version();
/// Empty, or the reason to skip.
std::string quirk_of(std::uint32_t vendor, const Quirk& quirk);

/// Whether `seen` is the status that is specified, or the word that this vendor's driver has for
/// it.
bool is_status(std::uint32_t vendor, ibv_wc_status seen, ibv_wc_status specified);

}  // namespace verbatim::harness
