// SPDX-License-Identifier: BSD-2-Clause
// Another library of the same name.
void** ibv_get_device_list(int* count);

void** ibv_get_device_list(int* count) {
  *count = 0;
  return 0;
}
