// SPDX-License-Identifier: BSD-2-Clause
// Takes most of what glibc keeps for libraries with static thread-local storage that are loaded late.
__thread char most[1536] __attribute__((tls_model("initial-exec")));

char* touch_most(void);
char* touch_most(void) { return most; }
