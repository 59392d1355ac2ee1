/* SPDX-License-Identifier: BSD-3-Clause */

/* Errors of the program. Each ends the job after one line; CMakeLists.txt has the lines. */

#include <signal.h>
#include <unistd.h>

#include "check.h"

static long words[4];
static long sync_area[SHMEM_SYNC_SIZE]; /* SHMEM_SYNC_VALUE is 0 */

static int is(const char* name, const char* other) { return strcmp(name, other) == 0; }

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  long local = 1;
  char* block;
  if (is(name, "before_init")) shmem_long_p(words, 1, 0);
  shmem_init();
  block = (char*)shmem_malloc(100);
  if (is(name, "local_dest")) shmem_long_put(&local, words, 1, 0);
  if (is(name, "local_source")) shmem_int_iget((int*)words, (int*)&local, 1, 1, 1, 0);
  if (is(name, "local_word")) shmem_long_atomic_inc(&local, 0);
  if (is(name, "local_signal")) {
    shmem_putmem_signal(block, words, 8, (uint64_t*)&local, 1, SHMEM_SIGNAL_SET, 0);
  }
  if (is(name, "local_lock")) shmem_set_lock(&local);
  if (is(name, "no_such_pe")) shmem_long_p(words, 1, shmem_n_pes());
  if (is(name, "negative_pe")) (void)shmem_char_g(block, -1);
  if (is(name, "no_context")) shmem_ctx_long_p(SHMEM_CTX_INVALID, words, 1, 0);
  if (is(name, "context_of_team")) {
    shmem_team_t team;
    shmem_ctx_t ctx;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &team);
    CHECK(shmem_team_create_ctx(team, 0, &ctx) == 0);
    shmem_team_destroy(team);
    shmem_ctx_destroy(ctx);
  }
  if (is(name, "no_team")) shmem_team_sync(SHMEM_TEAM_INVALID);
  if (is(name, "no_root")) shmem_broadcastmem(SHMEM_TEAM_WORLD, words, words + 1, 8, 9);
  if (is(name, "active_set")) shmem_barrier(0, 1, shmem_n_pes() + 1, words);
  if (is(name, "comparison")) shmem_long_wait_until(words, 17, 0);
  if (is(name, "signal_op")) shmem_putmem_signal(words, words, 8, (uint64_t*)&words[1], 1, 9, 0);
  if (is(name, "outside")) shmem_putmem(block, words, (size_t)1 << 45, 0);
  if (is(name, "free_twice")) {
    shmem_free(block);
    shmem_free(block);
  }
  if (is(name, "free_local")) shmem_free(&local);
  if (is(name, "set_lock_twice")) {
    shmem_set_lock(&words[shmem_my_pe()]);
    shmem_set_lock(&words[shmem_my_pe()]);
  }
  if (is(name, "clear_free_lock")) shmem_clear_lock(words);
  if (is(name, "full")) {
    CHECK(shmem_malloc(3 << 20) == NULL);
    CHECK(shmem_malloc(1000) != NULL);
    shmem_finalize();
    return 0;
  }
  if (is(name, "dead")) {
    if (shmem_my_pe() == 1) _exit(0);
    shmem_long_wait_until(words, SHMEM_CMP_EQ, 1);
  }
  if (is(name, "lost_put")) { /* between hosts: PE 1 stops before the put reaches it, then dies */
    words[2] = getpid();
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
      const pid_t other = (pid_t)shmem_long_g(&words[2], 1);
      kill(other, SIGSTOP);
      shmem_long_p(words, 1, 1);
      kill(other, SIGKILL);
      shmem_quiet();
      puts("went on");
      shmem_global_exit(1);
    }
    shmem_long_wait_until(&words[1], SHMEM_CMP_EQ, 1);
  }
  /* With SHMEM_DEBUG alone. */
  if (is(name, "overlap")) shmem_putmem(block, block + 4, 8, shmem_my_pe());
  if (is(name, "wait_local")) shmem_long_wait_until(&local, SHMEM_CMP_EQ, 2);
  if (is(name, "different_sizes")) {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words, words + 2, (size_t)(1 + shmem_my_pe()));
  }
  if (is(name, "different_roots")) {
    shmem_broadcastmem(SHMEM_TEAM_WORLD, words, words + 2, 8, shmem_my_pe());
  }
  if (is(name, "different_calls")) {
    if (shmem_my_pe() == 0) shmem_broadcastmem(SHMEM_TEAM_WORLD, words, words + 2, 8, 0);
    if (shmem_my_pe() == 1) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words, words + 2, 1);
  }
  if (is(name, "barrier_beside_reduce")) {
    if (shmem_my_pe() == 0) shmem_barrier_all();
    if (shmem_my_pe() == 1) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words, words + 2, 1);
  }
  if (is(name, "overlapping_reduce")) {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words, words + 1, 2);
  }
  if (is(name, "overlapping_fcollect")) { /* dest has room for both PEs */
    shmem_fcollectmem(SHMEM_TEAM_WORLD, words, words + 1, 8);
  }
  if (is(name, "overlapping_iput")) shmem_long_iput(words, words + 1, 1, 1, 2, shmem_my_pe());
  if (is(name, "set_of_different_sizes")) {
    shmem_long_sum_to_all(words, words + 2, 1 + shmem_my_pe(), 0, 0, shmem_n_pes(), NULL,
                          sync_area);
  }
  if (is(name, "set_of_local")) {
    shmem_fcollect64(words, &local, 1, 0, 0, shmem_n_pes(), sync_area);
  }
  if (is(name, "local_sync")) {
    shmem_fcollect64(words, words + 2, 1, 0, 0, shmem_n_pes(), &local);
  }
  if (is(name, "wild_team")) shmem_team_sync((shmem_team_t)(void*)words);
  if (is(name, "wild_context")) shmem_ctx_long_p((shmem_ctx_t)(void*)words, words, 1, 0);
  if (is(name, "destroyed_team")) {
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &team);
    shmem_team_sync(team);
    shmem_team_destroy(team);
    shmem_team_sync(team);
  }
  if (is(name, "destroyed_parent")) {
    shmem_team_t team, part;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &team);
    shmem_team_destroy(team);
    shmem_team_split_strided(team, 0, 1, 1, NULL, 0, &part);
  }
  if (is(name, "destroyed_context")) {
    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    shmem_ctx_quiet(ctx);
    shmem_ctx_destroy(ctx);
    shmem_ctx_quiet(ctx);
  }
  if (is(name, "local_reduce")) shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words, &local, 1);
  if (is(name, "exit")) shmem_global_exit(7);
  if (is(name, "exit_well")) { /* ends the PE that waits, too; the job has succeeded */
    if (shmem_my_pe() == 0) shmem_global_exit(0);
    shmem_long_wait_until(words, SHMEM_CMP_EQ, 1);
  }
  shmem_finalize();
  if (is(name, "after_finalize")) shmem_long_p(words, 1, 0);
  if (is(name, "finalize_twice")) shmem_finalize();
  puts("went on");
  return 0;
}
