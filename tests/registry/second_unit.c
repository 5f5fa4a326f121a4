/* SPDX-License-Identifier: BSD-2-Clause */
/* Another translation unit of the same program, compiled with a list of its own. Nothing calls it:
 * a choice counts by being linked, and must survive --gc-sections. */
#include <infiniband/verbs.h>

int second_unit(void);
int second_unit(void) { return 0; }
