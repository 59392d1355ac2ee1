/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "session.h"

enum {
  kMostSamples = 4096,
  kSamplesFactor = 4,    /* limit of samples, as a multiple of the minimum */
  kMaxOverheadPart = 50, /* a timer read takes at most one such part of a batch */
  kWarmupNs = 500000,
  kSlowNs = 50000000, /* slower repetitions are timed one by one, and few of them */
  kLeastSamples = 8,  /* the fewest samples of slow repetitions */
  kUsedTo = 8,        /* the most batches at the start of a later turn that do not count */
  kFewSamples = 3,
  kSamplesOfSlice = 24, /* in turns: in a round, at most */
  kMostRounds = 256
};

/* The leader's order to the others; batch 0: stop. */
typedef struct order {
  uint64_t batch, count;
} order_t;

int64_t suite_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uint64_t suite_mix(uint64_t a, uint64_t b) { /* splitmix64 */
  uint64_t value = (a ^ (b * 0xd6e8feb86659fd93u)) + 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

typedef struct timing {
  suite_session_t* session;
  suite_comm_t* comm;
  suite_repeat_t* repeat;
  void* context;
  suite_times_t* times;
  int turns;
} timing_t;

void suite_show_life(suite_session_t* session) {
  enum { kEveryNs = 1000000000 };
  static int64_t shown;
  int64_t now = suite_now_ns();
  if (now - shown < kEveryNs) return;
  if (shown != 0) suite_record_text(session, "alive", NULL, NULL, NULL);
  shown = now;
}

/* One untimed batch, which synchronises the ranks, then `count` timed ones. */
static int run(timing_t* t, order_t order, double* samples_ns) {
  int error = suite_library.share(t->comm, t->comm->leader, &order, sizeof order);
  if (error != 0 || order.batch == 0) return error;
  if (order.count > 1) {
    error = t->repeat(t->context, order.batch);
    t->times->repetitions += order.batch;
  }
  int64_t before = suite_now_ns();
  for (uint64_t i = 0; i < order.count && error == 0; i++) {
    t->session->aside_ns = 0;
    error = t->repeat(t->context, order.batch);
    int64_t now = suite_now_ns();
    samples_ns[i] = (double)(now - before - t->session->aside_ns) / (double)order.batch;
    before = now;
  }
  t->times->repetitions += order.batch * order.count;
  suite_show_life(t->session);
  return error;
}

/* The other ranks: carry out the leader's orders. */
static int follow(timing_t* t) {
  for (;;) {
    order_t order = {0, 0};
    int error = suite_library.share(t->comm, t->comm->leader, &order, sizeof order);
    if (error != 0 || order.batch == 0) return error;
    uint64_t rounds = order.count + (order.count > 1);
    for (uint64_t i = 0; i < rounds; i++) {
      error = t->repeat(t->context, order.batch);
      if (error != 0) return error;
    }
    t->times->repetitions += order.batch * rounds;
  }
}

static int choose_batch(timing_t* t, uint64_t* batch, double* repetition_ns) {
  const double needed_ns = 1.25 * kMaxOverheadPart * t->session->timer_overhead_ns;
  double total_ns = 0, samples[5];
  for (*batch = 1;;) {
    order_t order = {*batch, 1};
    int error = run(t, order, samples);
    if (error != 0) return error;
    total_ns += samples[0] * (double)*batch;
    if (total_ns >= kWarmupNs || samples[0] * (double)*batch > kWarmupNs / 4) break;
    *batch *= 2;
  }
  *repetition_ns = samples[0];
  if (*batch == 1 && samples[0] > kSlowNs) return 0;
  double wanted = needed_ns / (samples[0] > 0.1 ? samples[0] : 0.1);
  *batch = wanted < 1 ? 1 : (uint64_t)wanted + 1;
  for (;;) {
    order_t order = {*batch, 5};
    int error = run(t, order, samples);
    if (error != 0) return error;
    double least = samples[0];
    for (int i = 1; i < 5; i++)
      if (samples[i] < least) least = samples[i];
    *repetition_ns = least;
    if (least * (double)*batch >= needed_ns * 0.8) return 0;
    *batch += *batch / 2 + 1;
  }
}

/* The `count` samples of a later turn: the batch is known, and the first batches do not count. */
static int get_used(timing_t* t, uint64_t count, double* repetition_ns) {
  double samples[kUsedTo];
  if (count > kUsedTo) count = kUsedTo;
  order_t order = {t->times->batch, count};
  int error = run(t, order, samples);
  *repetition_ns = samples[count - 1];
  return error;
}

/* One turn's share of the samples of all turns. */
static uint64_t part_of(const timing_t* t, uint64_t all) {
  uint64_t turns = (uint64_t)t->turns;
  return (all + turns - 1) / turns;
}

static int lead(timing_t* t) {
  const order_t stop = {0, 0};
  const uint64_t room = part_of(t, kMostSamples) - (t->turns > 1), before = t->times->count;
  uint64_t least = part_of(t, t->session->min_samples);
  if (least > room) least = room;
  uint64_t most = kSamplesFactor * least < room ? kSamplesFactor * least : room;
  const double allowed_ns = t->session->max_seconds * 1e9 / t->turns;
  double repetition_ns = 0;
  int error = t->times->batch == 0 ? choose_batch(t, &t->times->batch, &repetition_ns)
                                   : get_used(t, least, &repetition_ns);
  if (error != 0) return error;

  /* Slow cells are measured less often, so that one cell does not take an evening. */
  const uint64_t few = part_of(t, kLeastSamples), fewest = part_of(t, kFewSamples);
  double wanted = 20 * allowed_ns / (repetition_ns * (double)t->times->batch + 1);
  if (wanted < (double)least) least = wanted < (double)few ? few : (uint64_t)wanted;
  if (repetition_ns > kSlowNs && least > fewest) least = fewest;
  int64_t begin = suite_now_ns();
  for (uint64_t next = least; next > 0;) {
    order_t order = {t->times->batch, next};
    error = run(t, order, t->times->samples_ns + t->times->count);
    if (error != 0) return error;
    t->times->count += next;
    double used_ns = (double)(suite_now_ns() - begin);
    uint64_t count = t->times->count - before;
    double more = (allowed_ns - used_ns) / (used_ns / (double)count);
    next = most > count ? most - count : 0;
    if (more < (double)next) next = more >= 1 ? (uint64_t)more : 0;
  }
  order_t last = stop;
  return suite_library.share(t->comm, t->comm->leader, &last, sizeof last);
}

/* The samples of a slice, after a batch that does not count: the caches are another library's. */
static int take_slice(timing_t* t, const turns_slice_t* slice, double repetition_ns) {
  suite_times_t* times = t->times;
  const double batch_ns = repetition_ns * (double)times->batch;
  double wanted = (double)slice->length_ns / (batch_ns > 1 ? batch_ns : 1);
  uint64_t count = wanted < 1 ? 1 : wanted > kSamplesOfSlice ? kSamplesOfSlice : (uint64_t)wanted;
  if (times->round_count == kMostRounds || times->count + count > kMostSamples) return 0;
  double unused;
  order_t order = {times->batch, 1};
  int error = batch_ns < (double)slice->length_ns ? run(t, order, &unused) : 0;
  order.count = count;
  if (error == 0) error = run(t, order, times->samples_ns + times->count);
  if (error != 0) return error;
  times->rounds[times->round_count].round = slice->round;
  times->rounds[times->round_count++].samples = count;
  times->count += count;
  return 0;
}

/* What a rank measures in turns: the timings of `count` things. */
static int lead_in_turns(timing_t* timings, int count) {
  enum { kMost = 8 };
  timing_t* first = &timings[0];
  turns_t* turns = first->session->turns;
  turns_slice_t slice;
  double repetition_ns[kMost];
  order_t stop = {0, 0};
  int error = 0;
  for (int i = 0; i < count && error == 0; i++) {
    suite_times_t* times = timings[i].times;
    error = choose_batch(&timings[i], &times->batch, &repetition_ns[i]);
    const double part_ns = (double)turns_length_ns(turns) / kSamplesOfSlice;
    const double enough = part_ns / (repetition_ns[i] > 0.1 ? repetition_ns[i] : 0.1);
    if (enough > (double)times->batch) times->batch = (uint64_t)enough + 1;
    stop.batch = 0;
    if (error == 0)
      error = suite_library.share(first->comm, first->comm->leader, &stop, sizeof stop);
  }
  while (error == 0 && turns_slice(turns, &slice)) {
    if (slice.which >= count) continue;
    error = take_slice(&timings[slice.which], &slice, repetition_ns[slice.which]);
    stop.batch = 0;
    if (error == 0)
      error = suite_library.share(first->comm, first->comm->leader, &stop, sizeof stop);
  }
  return error;
}

static int follow_in_turns(timing_t* timings, int count) {
  turns_slice_t slice;
  int error = 0;
  for (int i = 0; i < count && error == 0; i++) error = follow(&timings[i]);
  while (error == 0 && turns_slice(timings[0].session->turns, &slice))
    if (slice.which < count) error = follow(&timings[slice.which]);
  return error;
}

/* Writes to all pages now, so that no page is first touched while timing. */
static void make_room(suite_times_t* times) {
  const size_t bytes = (kMostSamples + kUsedTo) * sizeof(double);
  if (times->samples_ns == NULL) times->samples_ns = malloc(bytes);
  if (times->samples_ns == NULL) abort();
  memset(times->samples_ns, 0, bytes);
}

int suite_time_beside(suite_session_t* session, suite_comm_t* comm, int count,
                      suite_repeat_t* const* repeats, void* const* contexts, suite_times_t* times) {
  enum { kMost = 8 };
  timing_t timings[kMost];
  for (int i = 0; i < count; i++) {
    const timing_t timing = {session, comm, repeats[i], contexts[i], &times[i], 1};
    timings[i] = timing;
    memset(&times[i], 0, sizeof times[i]);
    if (comm->rank != comm->leader) continue;
    make_room(&times[i]);
    times[i].rounds = calloc(kMostRounds, sizeof *times[i].rounds);
    if (times[i].rounds == NULL) abort();
  }
  if (count > 1) turns_want(session->turns, count);
  return comm->rank == comm->leader ? lead_in_turns(timings, count)
                                    : follow_in_turns(timings, count);
}

int suite_time(suite_session_t* session, suite_comm_t* comm, suite_repeat_t* repeat, void* context,
               suite_times_t* times) {
  if (session->turns != NULL) return suite_time_beside(session, comm, 1, &repeat, &context, times);
  memset(times, 0, sizeof *times);
  return suite_time_turn(session, comm, repeat, context, 1, times);
}

int suite_time_turn(suite_session_t* session, suite_comm_t* comm, suite_repeat_t* repeat,
                    void* context, int turns, suite_times_t* times) {
  timing_t t = {session, comm, repeat, context, times, turns};
  if (comm->rank != comm->leader) return follow(&t);
  if (times->samples_ns == NULL) make_room(times);
  return lead(&t);
}

void suite_times_free(suite_times_t* times) {
  free(times->samples_ns);
  free(times->rounds);
  times->samples_ns = NULL;
  times->rounds = NULL;
}

void suite_times_divide(suite_times_t* times, double parts) {
  for (uint64_t i = 0; times->samples_ns != NULL && i < times->count; i++)
    times->samples_ns[i] /= parts;
}
