/* SPDX-License-Identifier: BSD-2-Clause */
/* The program whose executables the registry and package tests read: valid C and C++, prints one
 * device name per line. Exits 3 when the library answers what it is to answer a program without
 * providers. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>

int main(void) {
  int count = -1;
  struct ibv_device** list = ibv_get_device_list(&count);
  if (!list) {
    if (errno == ENOSYS && count == 0) return 3;
    perror("ibv_get_device_list");
    return 1;
  }
  for (int i = 0; i < count; ++i) puts(ibv_get_device_name(list[i]));
  if (list[count]) return 2;
  ibv_free_device_list(list);
  return 0;
}
