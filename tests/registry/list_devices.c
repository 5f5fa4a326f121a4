/* SPDX-License-Identifier: BSD-2-Clause */
/* The program whose executables the registry test reads: valid C and C++, prints one device name per line. */
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void) {
  int count = -1;
  struct ibv_device** list = ibv_get_device_list(&count);
  if (!list) {
    perror("ibv_get_device_list");
    return 1;
  }
  for (int i = 0; i < count; ++i) puts(ibv_get_device_name(list[i]));
  if (list[count]) return 2;
  ibv_free_device_list(list);
  return 0;
}
