/* SPDX-License-Identifier: BSD-3-Clause */
/* Parallel files. */
#include <bupc_collectivev.h>
#include <errno.h>
#include <unistd.h>
#include <upc.h>
#include <upc_io.h>

#include "upc_tests.h"

enum { kMine = 400 };

static uint64_t unused;
static const mob_upc_object_t objects[] = {
    {"unused", &unused, 1, 1, 1, MOB_UPC_TIMES_THREADS, 0, NULL, 0, HERE},
};
REGISTER(objects, NULL)

static char name[64];

static char at(long place) { return (char)(place * 7 % 123 + place / 1000); }

static void errors(void) {
  mob_upc_ptr_t fd;
  errno = 0;
  CHECK(mob_upc_is_null(upc_all_fopen(name, UPC_RDONLY | UPC_COMMON_FP, 0, NULL)));
  CHECK(errno == ENOENT);
  fd = upc_all_fopen(name, UPC_WRONLY | UPC_INDIVIDUAL_FP | UPC_CREATE | UPC_EXCL, 0, NULL);
  CHECK(!mob_upc_is_null(fd));
  {
    char byte = 0;
    errno = 0;
    CHECK(upc_all_fread_local(fd, &byte, 1, 1, 0) == -1 && errno == EBADF);
    errno = 0;
    CHECK(upc_all_fseek(fd, -5, UPC_SEEK_SET) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(upc_all_fcntl(fd, 1 << 20, NULL) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(upc_all_fwait_async(fd) == -1 && errno == EINVAL);
  }
  CHECK(upc_all_fclose(fd) == 0);
  errno = 0;
  fd = upc_all_fopen(name, UPC_WRONLY | UPC_COMMON_FP | UPC_CREATE | UPC_EXCL, 0, NULL);
  CHECK(mob_upc_is_null(fd) && errno == EEXIST);
}

/* Each thread writes its part by its own pointer, and reads another's. */
static void individual(void) {
  const int right = (MYTHREAD + 1) % THREADS;
  const long size = (long)kMine * THREADS;
  static char buffer[kMine];
  long i;
  mob_upc_ptr_t fd = upc_all_fopen(name, UPC_RDWR | UPC_INDIVIDUAL_FP | UPC_TRUNC, 0, NULL);
  CHECK(upc_all_fget_size(fd) == 0 && upc_all_fseek(fd, 0, UPC_SEEK_CUR) == 0);
  CHECK(upc_all_fseek(fd, MYTHREAD * kMine, UPC_SEEK_SET) == MYTHREAD * kMine);
  for (i = 0; i < kMine; ++i) buffer[i] = at(MYTHREAD * kMine + i);
  CHECK(upc_all_fwrite_local(fd, buffer, 10, 20, 0) == 200);
  upc_all_fwrite_local_async(fd, buffer + 200, 1, 200, UPC_IN_NOSYNC | UPC_OUT_NOSYNC);
  CHECK(upc_all_fcntl(fd, UPC_ASYNC_OUTSTANDING, NULL) == 1);
  CHECK(upc_all_fwait_async(fd) == 200);
  CHECK(upc_all_fcntl(fd, UPC_ASYNC_OUTSTANDING, NULL) == 0);
  CHECK(upc_all_fseek(fd, -200, UPC_SEEK_CUR) == MYTHREAD * kMine + 200);
  CHECK(upc_all_fwrite_local(fd, buffer + 200, 2, 100, UPC_IN_NOSYNC | UPC_ASYNC) == 0);
  CHECK(upc_all_fcntl(fd, UPC_ASYNC_OUTSTANDING, NULL) == 1);
  CHECK(upc_all_fwait_async(fd) == 200);
  CHECK(upc_all_fsync(fd) == 0);
  CHECK(upc_all_fget_size(fd) == size);
  CHECK(upc_all_fseek(fd, 0, UPC_SEEK_CUR) == (MYTHREAD + 1) * kMine);
  CHECK(upc_all_fseek(fd, right * kMine - size, UPC_SEEK_END) == right * kMine);
  memset(buffer, 0, sizeof buffer);
  CHECK(upc_all_fread_local(fd, buffer, 1, kMine, 0) == kMine);
  for (i = 0; i < kMine; ++i) CHECK(buffer[i] == at(right * kMine + i));
  /* The end of the file. */
  CHECK(upc_all_fseek(fd, -10, UPC_SEEK_END) == size - 10);
  CHECK(upc_all_fread_local(fd, buffer, 4, 100, 0) == 10);
  CHECK(upc_all_fread_local(fd, buffer, 4, 100, 0) == 0);
  CHECK(upc_all_fread_local(fd, NULL, 4, 100, 0) == 0);
  CHECK(upc_all_fclose(fd) == 0);
}

/* All threads move one array together, in several layouts. */
static void common(void) {
  static const size_t blocks[] = {0, 1, 3, 100, 5000};
  const long elements = (long)kMine * THREADS / (long)sizeof(int);
  const int* words;
  static char whole[16 * kMine];
  size_t b;
  long i;
  int flag = 0;
  mob_upc_ptr_t array = upc_all_alloc((size_t)THREADS, 8 * kMine);
  mob_upc_ptr_t fd = upc_all_fopen(name, UPC_RDWR | UPC_COMMON_FP, 0, NULL);
  for (i = 0; i < kMine * THREADS; ++i) whole[i] = at(i);
  words = (const int*)(void*)whole;
  for (b = 0; b < COUNT(blocks); ++b) {
    /* From another thread, and from the middle of a block. */
    mob_upc_ptr_t start = mob_upc_pointer(array.offset, (uint32_t)(b % (size_t)THREADS), 0);
    if (blocks[b] > 1) start = mob_upc_add_blocked(start, 1, sizeof(int), blocks[b]);
    CHECK(upc_all_fseek(fd, 0, UPC_SEEK_SET) == 0);
    CHECK(upc_all_fread_shared(fd, start, blocks[b], sizeof(int), (size_t)elements, 0) ==
          kMine * THREADS);
    for (i = 0; i < elements; ++i) {
      mob_upc_ptr_t p = blocks[b] == 0 ? mob_upc_add_indefinite(start, i, sizeof(int))
                                       : mob_upc_add_blocked(start, i, sizeof(int), blocks[b]);
      CHECK(mob_upc_get_int(p) == words[i]);
    }
    CHECK(upc_all_fseek(fd, 0, UPC_SEEK_CUR) == kMine * THREADS);
    if (b == 0) CHECK(upc_all_fread_shared(fd, start, blocks[b], sizeof(int), 5, 0) == 0);
    /* Written behind, it is the same. */
    CHECK(upc_all_fseek(fd, (long)(b + 1) * kMine * THREADS, UPC_SEEK_SET) > 0);
    upc_all_fwrite_shared_async(fd, start, blocks[b], sizeof(int), (size_t)elements, 0);
    CHECK(upc_all_ftest_async(fd, &flag) == kMine * THREADS && flag == 1);
  }
  CHECK(upc_all_fget_size(fd) == (long)(COUNT(blocks) + 1) * kMine * THREADS);
  CHECK(upc_all_fcntl(fd, UPC_GET_FP, NULL) == UPC_COMMON_FP);
  CHECK(upc_all_fcntl(fd, UPC_SET_INDIVIDUAL_FP, NULL) == 0);
  CHECK(upc_all_fcntl(fd, UPC_GET_FP, NULL) == UPC_INDIVIDUAL_FP);
  for (b = 0; b <= COUNT(blocks); ++b) {
    static char back[16 * kMine];
    CHECK(upc_all_fread_local(fd, back, 1, (size_t)(kMine * THREADS), 0) == kMine * THREADS);
    CHECK(memcmp(back, whole, (size_t)(kMine * THREADS)) == 0);
  }
  /* With its own pointer each thread reads its own array. */
  CHECK(upc_all_fseek(fd, MYTHREAD * kMine, UPC_SEEK_SET) == MYTHREAD * kMine);
  CHECK(upc_all_fread_shared(fd, mob_upc_pointer(array.offset, (uint32_t)MYTHREAD, 0), 0, 1, kMine,
                             0) == kMine);
  CHECK(memcmp(mob_upc_local(array.offset), whole + MYTHREAD * kMine, kMine) == 0);
  CHECK(upc_all_fclose(fd) == 0);
  upc_all_free(array);
}

static void lists(void) {
  static char buffer[200];
  const long base = MYTHREAD * 300;
  struct upc_local_memvec local[] = {{buffer, 40}, {buffer + 100, 60}};
  struct upc_filevec pieces[] = {{base, 10}, {base + 50, 70}, {base + 200, 20}};
  struct upc_shared_memvec remote[2];
  mob_upc_ptr_t array = upc_all_alloc((size_t)THREADS, 200);
  mob_upc_ptr_t fd = upc_all_fopen(name, UPC_RDWR | UPC_COMMON_FP | UPC_TRUNC, 0, NULL);
  int i;
  CHECK(upc_all_fset_size(fd, 300 * THREADS) == 0);
  for (i = 0; i < 40; ++i) buffer[i] = (char)(i + MYTHREAD);
  for (i = 0; i < 60; ++i) buffer[100 + i] = (char)(i + 40 + MYTHREAD);
  CHECK(upc_all_fwrite_list_local(fd, 2, local, 3, pieces, 0) == 100);
  remote[0].baseaddr = mob_upc_pointer(array.offset, (uint32_t)((MYTHREAD + 1) % THREADS), 0);
  remote[0].blocksize = 0;
  remote[0].len = 70;
  remote[1].baseaddr = mob_upc_pointer(array.offset + 100, (uint32_t)MYTHREAD, 0);
  remote[1].blocksize = 0;
  remote[1].len = 30;
  CHECK(upc_all_fread_list_shared(fd, 2, remote, 3, pieces, 0) == 100);
  for (i = 0; i < 100; ++i) {
    mob_upc_ptr_t p = i < 70 ? mob_upc_member(remote[0].baseaddr, (uint64_t)i)
                             : mob_upc_member(remote[1].baseaddr, (uint64_t)i - 70);
    CHECK(mob_upc_get_char(p) == (char)(i + MYTHREAD));
  }
  pieces[0].offset += 20;
  upc_all_fwrite_list_shared_async(fd, 2, remote, 3, pieces, 0);
  CHECK(upc_all_fwait_async(fd) == 100);
  memset(buffer, 0, sizeof buffer);
  upc_all_fread_list_local_async(fd, 2, local, 3, pieces, 0);
  CHECK(upc_all_fwait_async(fd) == 100);
  for (i = 0; i < 40; ++i) CHECK(buffer[i] == (char)(i + MYTHREAD));
  for (i = 0; i < 60; ++i) CHECK(buffer[100 + i] == (char)(i + 40 + MYTHREAD));
  CHECK(upc_all_fclose(fd) == 0);
  upc_all_free(array);
}

static void properties(void) {
  static const struct upc_hint given[] = {{"access_style", "sequential"}, {"striping", "4"}};
  struct upc_hint change = {"striping", "8"};
  const struct upc_hint* hints = NULL;
  const char* found = NULL;
  const int flags = UPC_RDWR | UPC_INDIVIDUAL_FP | UPC_APPEND | UPC_DELETE_ON_CLOSE;
  mob_upc_ptr_t fd = upc_all_fopen(name, flags, 2, given);
  CHECK(upc_all_fget_size(fd) == 300 * THREADS);
  CHECK(upc_all_fseek(fd, 0, UPC_SEEK_CUR) == 300 * THREADS);
  CHECK(upc_all_fpreallocate(fd, 500 * THREADS) == 0 && upc_all_fget_size(fd) == 500 * THREADS);
  CHECK(upc_all_fset_size(fd, 100) == 0 && upc_all_fget_size(fd) == 100);
  CHECK(upc_all_fset_size(fd, -100) == -1 && errno == EINVAL);
  CHECK(upc_all_fcntl(fd, UPC_GET_FL, NULL) == flags);
  CHECK(upc_all_fcntl(fd, UPC_GET_FN, (void*)&found) == 0 && strcmp(found, name) == 0);
  CHECK(upc_all_fcntl(fd, UPC_GET_HINTS, (void*)&hints) == 2);
  CHECK(strcmp(hints[0].value, "sequential") == 0);
  CHECK(upc_all_fcntl(fd, UPC_SET_HINT, &change) == 0);
  CHECK(upc_all_fcntl(fd, UPC_GET_HINTS, (void*)&hints) == 2);
  CHECK(strcmp(hints[1].key, "striping") == 0 && strcmp(hints[1].value, "8") == 0);
  CHECK(upc_all_fcntl(fd, UPC_GET_CA_SEMANTICS, NULL) == 0);
  CHECK(upc_all_fcntl(fd, UPC_SET_STRONG_CA_SEMANTICS, NULL) == 0);
  CHECK(upc_all_fcntl(fd, UPC_GET_CA_SEMANTICS, NULL) == UPC_STRONG_CA);
  CHECK(upc_all_fcntl(fd, UPC_SET_WEAK_CA_SEMANTICS, NULL) == 0);
  CHECK(upc_all_fcntl(fd, UPC_GET_CA_SEMANTICS, NULL) == 0);
  CHECK(upc_all_fcntl(fd, UPC_SET_COMMON_FP, NULL) == 0);
  CHECK(upc_all_fseek(fd, 0, UPC_SEEK_CUR) == 100);
  CHECK(upc_all_fclose(fd) == 0);
  CHECK(access(name, F_OK) != 0);
}

MOB_UPC_API int mob_upc_main(void);
int mob_upc_main(void) {
  int pid = (int)getpid();
  snprintf(name, sizeof name, "upc_files.%d", bupc_allv_broadcast(int, pid, 0));
  errors();
  individual();
  common();
  lists();
  properties();
  return 0;
}
