// SPDX-License-Identifier: BSD-2-Clause
// A program that was linked with a later libibverbs than this one.
int ibv_get_later_thing(void);

int main(void) { return ibv_get_later_thing(); }
