/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the two halves of the fake library: fake_verbs.c answers queries, fake_rc.c pretends to
 * move messages. */
#pragma once

#include <infiniband/verbs.h>
#include <stdint.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

/* FAKE_VERBS_FAIL names the one call that fails. */
int fake_fails(const char* what);
/* FAKE_VERBS_LACKS lists features that the device has not, separated by commas. */
int fake_lacks(const char* feature);

/* FAKE_VERBS_RC is set: attributes are sensible and RC "works", instead of being drawn. */
int fake_rc_wanted(void);
/* What was asked for, for the test to read (FAKE_VERBS_TELLS). */
__attribute__((format(printf, 1, 2))) void fake_tells(const char* format, ...);
void fake_rc_device(struct ibv_device_attr_ex* attr);
void fake_rc_port(struct ibv_port_attr* attr);
void fake_rc_fill_context(struct verbs_context* context);
