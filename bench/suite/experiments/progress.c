/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * progress: does an operation complete while its target computes and never calls the library?
 * The target computes, and looks at its memory with plain loads; in the middle of the first tenth
 * of this time the origin operates and waits for completion. Three brief trials are enough for most
 * libraries. If one of them waited for the target's return, a trial of ms= milliseconds (1000)
 * decides, so that a timer of the library, or a delay on a crowded machine, is not mistaken for
 * waiting. Facts:
 *
 *   completes  yes, or on-return: only after the target called the library again; with the time of
 *              the middle trial, since a system that gives a processor to others delays some
 *   arrives    the same for the data, as the target's loads see it; for puts and updates
 */

#include <stdlib.h>
#include <string.h>

#include "../session.h"

enum { kTrials = 3 };

typedef struct trial {
  int64_t began, completed;  /* at the origin */
  int64_t arrived, returned; /* at the target; 0: did not arrive */
} trial_t;

static volatile unsigned char* watched(suite_path_t* path) {
  return path->window.base + path->area[!path->parity] + path->type.bytes - 1;
}

/* The target: plain loads and arithmetic for this time. */
static void compute(suite_path_t* path, int64_t until, trial_t* trial) {
  volatile unsigned char* last = watched(path);
  unsigned char before = *last;
  while (suite_now_ns() < until)
    if (trial->arrived == 0 && *last != before) trial->arrived = suite_now_ns();
  trial->returned = suite_now_ns();
}

static void wait_ns(int64_t ns) {
  int64_t until = suite_now_ns() + ns;
  while (suite_now_ns() < until) {
  }
}

/* One operation without a flag, for which the target would have to poll. */
static int operate(suite_path_t* path, trial_t* trial) {
  suite_window_t* window = &path->window;
  const suite_transfer_block_t* transfer = path->transfer;
  int gets = transfer->effect == SUITE_GETS, error = 0;
  size_t source = path->area[path->parity], target = path->area[!path->parity];
  void* result = transfer->effect == SUITE_SWAPS ? (void*)&path->compare : path->result;
  trial->began = suite_now_ns();
  if (path->sync->enter != NULL) error = path->sync->enter(window, 1, SUITE_NOBODY);
  if (error == 0)
    error = transfer->start(window, &path->wire, 1, window->base + (gets ? target : source),
                            gets ? source : target, result);
  if (error == 0 && transfer->wait != NULL) error = transfer->wait(window);
  if (error == 0 && path->sync->leave != NULL) error = path->sync->leave(window, 1, SUITE_NOBODY);
  trial->completed = suite_now_ns();
  return error;
}

static int try_once(suite_path_t* path, int64_t busy_ns, trial_t* mine) {
  suite_window_t* window = &path->window;
  int active = !path->sync->passive, error;
  memset(mine, 0, sizeof *mine);
  memset(window->base + path->area[0], path->comm.rank == 0 ? 0x55 : 0, path->type.bytes);
  memset(window->base + path->area[1], path->comm.rank == 0 ? 0x55 : 0, path->type.bytes);
  path->compare = 0;
  path->parity = 0;
  error = suite_library.settle(window);
  if (error != 0) return error;
  if (path->comm.rank == 0) {
    wait_ns(busy_ns / 20);
    return operate(path, mine);
  }
  if (active && path->sync->enter != NULL) error = path->sync->enter(window, SUITE_NOBODY, 0);
  if (error == 0) compute(path, suite_now_ns() + busy_ns, mine);
  if (error == 0 && active && path->sync->leave != NULL)
    error = path->sync->leave(window, SUITE_NOBODY, 0);
  return error;
}

static int waited(const suite_path_t* path, const trial_t* trial) {
  const trial_t *origin = &trial[0], *target = &trial[1];
  return origin->completed >= target->returned ||
         (path->transfer->effect != SUITE_GETS && target->arrived == 0);
}

static int by_time(const void* one, const void* other) {
  const int64_t a = *(const int64_t*)one, b = *(const int64_t*)other;
  return (a > b) - (a < b);
}

static void judge(suite_path_t* path, const trial_t* trials, int count, int64_t busy_ns) {
  int64_t took[kTrials], latest = 0;
  int on_return = 0, not_arrived = 0;
  for (int i = 0; i < count; i++) {
    const trial_t *origin = &trials[2 * i], *target = &trials[2 * i + 1];
    took[i] = origin->completed - origin->began;
    on_return += origin->completed >= target->returned;
    not_arrived += target->arrived == 0;
    if (target->arrived - origin->began > latest) latest = target->arrived - origin->began;
  }
  qsort(took, (size_t)count, sizeof *took, by_time);
  char detail[SUITE_TEXT_BYTES];
  snprintf(
      detail, sizeof detail,
      "%zu bytes, %d trial%s: completed after %.1f to %.1f us; the target computed for %.0f ms",
      path->type.bytes, count, count > 1 ? "s" : "", (double)took[0] / 1e3,
      (double)took[count - 1] / 1e3, (double)busy_ns / 1e6);
  suite_record_fact(path->session, path->cell, "completes", on_return == 0 ? "yes" : "on-return",
                    (double)took[count / 2], detail);
  if (path->transfer->effect == SUITE_GETS) return;
  snprintf(detail, sizeof detail, "%zu bytes: in %d of %d trials the target saw the data",
           path->type.bytes, count - not_arrived, count);
  suite_record_fact(path->session, path->cell, "arrives", not_arrived == 0 ? "yes" : "on-return",
                    (double)latest, detail);
}

/* One trial; afterwards all ranks have the times of both. */
static void one_trial(suite_path_t* path, int64_t busy_ns, trial_t* both) {
  trial_t mine;
  SUITE_CHECK(path, try_once(path, busy_ns, &mine));
  SUITE_CHECK(path, suite_library.settle(&path->window));
  SUITE_CHECK(path, suite_library.gather(&path->comm, &mine, both, sizeof mine));
}

static const char* measure(suite_session_t* session, const suite_cell_t* cell) {
  enum { kBriefNs = 50000000 };
  suite_path_t path;
  trial_t all[2 * kTrials];
  const char* refused = suite_path_open(session, cell, suite_largest(session), &path);
  if (refused != NULL) return refused;
  int64_t busy_ns = (int64_t)suite_option_number(cell, "ms", 1000) * 1000000;
  if (path.comm.size != 2) refused = "progress is of two ranks";
  if (path.transfer->start == NULL) refused = "only one-sided transfers need no target";
  for (int i = 0; refused == NULL && i < session->size_count; i++) {
    refused = suite_agree(session, &path.comm, suite_path_size(&path, session->sizes[i]));
    if (refused != NULL) break;
    /* First with the target's help, which makes connections and registrations. */
    SUITE_CHECK(&path, suite_library.settle(&path.window));
    SUITE_CHECK(&path, suite_legs(&path));
    int64_t brief_ns = busy_ns < kBriefNs ? busy_ns : kBriefNs;
    int doubtful = 0;
    for (int trial = 0; trial < kTrials; trial++) {
      one_trial(&path, brief_ns, &all[2 * trial]);
      doubtful |= waited(&path, &all[2 * trial]);
    }
    if (doubtful && busy_ns > brief_ns) {
      one_trial(&path, busy_ns, all);
      judge(&path, all, 1, busy_ns);
    } else {
      judge(&path, all, kTrials, brief_ns);
    }
  }
  suite_path_close(&path);
  return refused;
}

static suite_experiment_block_t progress = {
    {SUITE_EXPERIMENT, "progress", "does an operation need its target to call the library", NULL},
    measure};
SUITE_REGISTER(progress)
