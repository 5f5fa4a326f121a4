// SPDX-License-Identifier: BSD-2-Clause
// Looks for a file in the ways that programs do, and says what it found: `looking [-l LIBRARY] PATH`.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void say_kind(const char* how, int result, const struct stat* found) {
  if (result != 0) {
    printf("%s: %s\n", how, strerror(errno));
    return;
  }
  printf("%s: %s %o\n", how,
         S_ISCHR(found->st_mode)   ? "device"
         : S_ISDIR(found->st_mode) ? "folder"
                                   : "other",
         (unsigned)found->st_mode & 0777);
}

int main(int argc, char** argv) {
  if (argc == 4 && strcmp(argv[1], "-l") == 0 && dlopen(argv[2], RTLD_NOW) == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const char* const path = argv[argc - 1];
  struct stat found;
  say_kind("stat", stat(path, &found), &found);
  say_kind("lstat", lstat(path, &found), &found);
  say_kind("fstatat", fstatat(AT_FDCWD, path, &found, 0), &found);
  printf("read and write: %s\n", access(path, R_OK | W_OK) == 0 ? "yes" : strerror(errno));
  printf("execute: %s\n", access(path, X_OK) == 0 ? "yes" : strerror(errno));
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    printf("open: %s\n", strerror(errno));
    return 0;
  }
  say_kind("opened", fstat(fd, &found), &found);
  struct pollfd event = {fd, POLLIN, 0};
  printf("event: %s\n", poll(&event, 1, 50) == 0 ? "none" : "some");
  printf("closed at exec: %s\n", (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0 ? "yes" : "no");
  printf("command: %s\n", write(fd, "12345678", 8) >= 0 ? "taken" : strerror(errno));
  return 0;
}
