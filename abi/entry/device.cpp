// SPDX-License-Identifier: BSD-2-Clause
// Devices and contexts: the list, open and close, attributes. Any thread.
#include <algorithm>
#include <cstring>

#include "abi/entry/border.hpp"
#include "runtime/verbs/contexts.hpp"
#include "runtime/verbs/device_list.hpp"

namespace verbatim {
namespace {

ibv_context* with_slots(Result<Context*> opened) noexcept {
  if (opened.ok()) {
    verbs_context& slots = opened.value()->extended;
    fill_device_slots(slots);
    fill_port_slots(slots);
    fill_domain_slots(slots);
    fill_memory_slots(slots);
    fill_window_slots(slots);
    fill_cq_slots(slots);
    fill_srq_slots(slots);
    fill_qp_slots(slots);
    fill_ethernet_slots(slots);
    fill_old_slots(slots.context.ops);
  }
  return as_pointer(opened);
}

// `size` is that of the caller's structure: older programs have a shorter one, newer ones longer.
int query_device_ex_slot(ibv_context* context, const ibv_query_device_ex_input* input,
                         ibv_device_attr_ex* attr, std::size_t size) {
  if (input != nullptr && input->comp_mask != 0) return EINVAL;
  if (attr == nullptr || size < sizeof attr->orig_attr) return EINVAL;
  ibv_device_attr_ex all;
  const Status status = query_device(Context::from(context), all);
  if (!status.ok()) return as_errno(status);
  std::memset(static_cast<void*>(attr), 0, size);
  std::memcpy(static_cast<void*>(attr), &all, std::min(size, sizeof all));
  return 0;
}

int query_rt_values_slot(ibv_context* context, ibv_values_ex* values) {
  return as_errno(query_rt_values(Context::from(context), *values));
}

}  // namespace

void fill_device_slots(verbs_context& slots) noexcept {
  slots.query_device_ex = query_device_ex_slot;
  slots.query_rt_values = query_rt_values_slot;
}

}  // namespace verbatim

using namespace verbatim;

VBT_ENTRY ibv_device** ibv_get_device_list(int* num_devices) {
  int count = 0;
  const Result<ibv_device**> list = get_device_list(count);
  if (num_devices != nullptr) *num_devices = count;
  if (list.ok()) return list.value();
  errno = list.error().code;
  return nullptr;
}

VBT_ENTRY void ibv_free_device_list(ibv_device** list) { free_device_list(list); }

VBT_ENTRY const char* ibv_get_device_name(ibv_device* device) {
  return device == nullptr ? nullptr : device->name;
}

VBT_ENTRY int ibv_get_device_index(ibv_device* device) { return Device::from(device).kernel_index; }

VBT_ENTRY __be64 ibv_get_device_guid(ibv_device* device) { return Device::from(device).guid; }

VBT_ENTRY ibv_context* ibv_open_device(ibv_device* device) {
  if (device == nullptr) {
    errno = EINVAL;
    return nullptr;
  }
  return with_slots(open_device(Device::from(device)));
}

VBT_ENTRY int ibv_close_device(ibv_context* context) {
  return as_errno(close_device(Context::from(context)));
}

VBT_ENTRY int ibv_query_device(ibv_context* context, ibv_device_attr* attr) {
  ibv_device_attr_ex all;
  const Status status = query_device(Context::from(context), all);
  if (status.ok()) *attr = all.orig_attr;
  return as_errno(status);
}
