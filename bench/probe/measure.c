/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure.h"

#include <stdlib.h>
#include <string.h>

#include "output.h"
#include "pattern.h"

enum {
  kRun = 1, /* commands of rank 0 to rank 1 */
  kStop = 2,
  kMaxOverheadPart = 50,  /* timer overhead: at most one such part of a batch */
  kSamplesFactor = 4,     /* limit of samples, as a multiple of the minimum */
  kWarmupNs = 1000000,    /* warm up for at least this time … */
  kWarmupRepetitions = 8, /* … and so many repetitions */
  kLeadInNs = 20000,      /* untimed start of each interval, which synchronises the ranks */
  kSamplesOfSlice = 24,   /* in turns: of a cell and size in a round, at most */
  kMostRounds = 256,
  kDirectionTimed = PROBE_RANKS /* the pattern's direction for data that goes back and forth */
};

typedef struct measurement {
  probe_session_t* session;
  probe_rank_t* rank;
  const probe_cell_t* cell;
  unsigned char* region;
  size_t peer_data_offset;
  probe_transfer_t transfer;
  probe_loop_t* loop;
  uint64_t legs;    /* of a repetition */
  probe_rank_t own; /* with a state of its own: several cells may be open at once */
  probe_rounds_t rounds;
} measurement_t;

/* An interval of timed batches in a row. */
typedef struct interval {
  uint64_t lead_in;
  uint64_t batch;
  uint64_t count;
} interval_t;

static __attribute__((noreturn)) void give_up(measurement_t* m, const char* reason) {
  probe_write_refused(m->session->file, m->cell, reason);
  fprintf(stderr, "probe_%s: rank %d: %s: %s\n", probe_adapter_name, m->rank->rank, m->cell->name,
          reason);
  probe_abort(m->rank, 1);
}

static void check(measurement_t* m, int error) {
  if (error != 0) give_up(m, probe_explain(m->rank, error));
}

static void exchange(measurement_t* m, const probe_note_t* mine, probe_note_t* theirs) {
  check(m, probe_exchange(m->rank, mine, theirs));
}

static void settle(measurement_t* m) { check(m, probe_settle(m->rank)); }

static void run_legs(measurement_t* m, int first, uint64_t legs) {
  check(m, m->loop(m->rank, &m->transfer, first, legs));
}

/* ---- verification ---- */

static probe_frame_t frame_of(const measurement_t* m, int rank) {
  probe_frame_t frame = {m->session->options->seed, m->transfer.bytes, (uint64_t)rank};
  return frame;
}

/* Both ranks compare their region; rank 0 records the first fault. Returns 1 if all data is right.
 */
static int compare_regions(measurement_t* m, const probe_pattern_t* pattern, const char* when) {
  probe_fault_t fault = {0, 0, 0, ""};
  probe_note_t mine, theirs;
  memset(&mine, 0, sizeof mine);
  probe_frame_t frame = frame_of(m, m->rank->rank);
  if (probe_region_check(pattern, &frame, &m->transfer, &fault)) {
    mine.words[0] = 1;
    mine.words[1] = (uint64_t)fault.byte;
    mine.words[2] = (uint64_t)fault.expected;
    mine.words[3] = (uint64_t)fault.got;
    snprintf(mine.text, sizeof mine.text, "rank %d: %s, %s", m->rank->rank, fault.where, when);
  }
  exchange(m, &mine, &theirs);
  const probe_note_t* first = mine.words[0] != 0 ? &mine : &theirs;
  if (first->words[0] == 0) return 1;
  fault.byte = (int64_t)first->words[1];
  fault.expected = (int)first->words[2];
  fault.got = (int)first->words[3];
  fault.where = first->text;
  probe_write_wrong(m->session->file, m->cell, m->transfer.bytes, &fault);
  return 0;
}

/* The rank whose data a leg of `first` moves. */
static int source_of(const measurement_t* m, int first) {
  return m->cell->operation == PROBE_GET ? 1 - first : first;
}

/* Runs each leg alone. The source holds the pattern, the destination its complement, so that every
 * byte must change, and the source must still hold it afterwards. */
static int verify(measurement_t* m, uint64_t repetition, const char* when) {
  for (int first = 0; (uint64_t)first < m->legs; first++) {
    probe_pattern_t pattern = {m->session->options->seed, m->transfer.bytes, (uint64_t)first,
                               repetition};
    probe_pattern_fill(&pattern, m->rank->rank != source_of(m, first), &m->transfer);
    settle(m);
    run_legs(m, first, 1);
    settle(m);
    if (!compare_regions(m, &pattern, when)) return 0;
  }
  return 1;
}

/* ---- timing ---- */

/* Runs an interval; both ranks call it with the same numbers. Writes the mean time of a repetition
 * in each batch to `samples_ns` unless null. */
static void run_interval(measurement_t* m, const interval_t* interval, double* samples_ns) {
  uint64_t batch_legs = interval->batch * m->legs;
  run_legs(m, 0, interval->lead_in * m->legs);
  int64_t before = probe_now_ns();
  for (uint64_t i = 0; i < interval->count; i++) {
    run_legs(m, 0, batch_legs);
    int64_t now = probe_now_ns();
    if (samples_ns != NULL) samples_ns[i] = (double)(now - before) / (double)interval->batch;
    before = now;
  }
  settle(m);
}

/* Rank 0: makes both ranks run an interval. */
static void lead(measurement_t* m, uint64_t lead_in, uint64_t batch, uint64_t count,
                 double* samples_ns) {
  probe_note_t mine, theirs;
  interval_t interval = {lead_in, batch, count};
  memset(&mine, 0, sizeof mine);
  mine.words[0] = kRun;
  mine.words[1] = lead_in;
  mine.words[2] = batch;
  mine.words[3] = count;
  exchange(m, &mine, &theirs);
  run_interval(m, &interval, samples_ns);
}

/* Rank 1: carries out rank 0's commands until stop. */
static void follow(measurement_t* m) {
  for (;;) {
    probe_note_t mine, theirs;
    memset(&mine, 0, sizeof mine);
    exchange(m, &mine, &theirs);
    if (theirs.words[0] == kStop) return;
    interval_t interval = {theirs.words[1], theirs.words[2], theirs.words[3]};
    run_interval(m, &interval, NULL);
  }
}

static void stop(measurement_t* m) {
  probe_note_t mine, theirs;
  memset(&mine, 0, sizeof mine);
  mine.words[0] = kStop;
  exchange(m, &mine, &theirs);
}

static uint64_t repetitions_for(double time_ns, double repetition_ns) {
  double repetitions = time_ns / (repetition_ns > 0.01 ? repetition_ns : 0.01);
  return repetitions < 1 ? 1 : (uint64_t)repetitions + 1;
}

/* Rank 0: warms up. Returns the time of a repetition. */
static double warm_up(measurement_t* m) {
  double total_ns = 0, repetition_ns = 0;
  uint64_t done = 0;
  for (uint64_t batch = 1; total_ns < kWarmupNs || done < kWarmupRepetitions; batch *= 2) {
    lead(m, 0, batch, 1, &repetition_ns);
    total_ns += repetition_ns * (double)batch;
    done += batch;
  }
  return repetition_ns;
}

/* Rank 0: the smallest batch whose fastest run is long compared with a timer read, with a margin
 * for times that get shorter later. */
static uint64_t choose_batch(measurement_t* m, double repetition_ns) {
  enum { kTrials = 9 };
  const double needed_ns = 1.25 * kMaxOverheadPart * m->session->timer.overhead_ns;
  uint64_t batch = repetitions_for(needed_ns, repetition_ns * 2);
  for (;;) {
    double times[kTrials];
    lead(m, repetitions_for(kLeadInNs, repetition_ns), batch, kTrials, times);
    double fastest = times[0];
    for (int i = 1; i < kTrials; i++)
      if (times[i] < fastest) fastest = times[i];
    if (fastest * (double)batch >= needed_ns) return batch;
    uint64_t wanted = repetitions_for(needed_ns, fastest);
    batch = wanted > batch ? wanted : batch + 1;
  }
}

/* Rank 0: takes the samples. Returns their number; `samples_ns` has room for kSamplesFactor times
 * the minimum. */
static uint64_t take_samples(measurement_t* m, uint64_t batch, double repetition_ns,
                             double* samples_ns) {
  const uint64_t least = m->session->options->min_samples, most = kSamplesFactor * least;
  const double allowed_ns = m->session->options->max_seconds * 1e9;
  const uint64_t lead_in = repetitions_for(kLeadInNs, repetition_ns);
  uint64_t taken = 0, next = least;
  int64_t begin = probe_now_ns();
  while (next > 0) {
    lead(m, lead_in, batch, next, samples_ns + taken);
    taken += next;
    double used_ns = (double)(probe_now_ns() - begin);
    double more = (allowed_ns - used_ns) / (used_ns / (double)taken);
    next = most - taken;
    if (more < (double)next) next = more >= 1 ? (uint64_t)more : 0;
  }
  return taken;
}

/* Rank 0: times the transfer. Returns the number of samples and their batch. */
static uint64_t measure(measurement_t* m, double* samples_ns, uint64_t* batch) {
  double repetition_ns = warm_up(m);
  *batch = choose_batch(m, repetition_ns);
  for (;;) {
    uint64_t taken = take_samples(m, *batch, repetition_ns, samples_ns);
    double total_ns = 0;
    for (uint64_t i = 0; i < taken; i++) total_ns += samples_ns[i] * (double)*batch;
    if (total_ns / (double)taken >= kMaxOverheadPart * m->session->timer.overhead_ns) return taken;
    *batch += (*batch + 1) / 2; /* repetitions got faster than the margin allows */
  }
}

/* The samples of a slice, after a start that does not count: the caches are another library's. */
static uint64_t take_slice(measurement_t* m, int64_t length_ns, uint64_t batch,
                           double repetition_ns, double* samples_ns, uint64_t room) {
  uint64_t count = repetitions_for((double)length_ns, repetition_ns * (double)batch);
  if (count > kSamplesOfSlice) count = kSamplesOfSlice;
  if (count > room) count = room;
  const double lead_in_ns = (double)length_ns / 8 > kLeadInNs ? (double)length_ns / 8 : kLeadInNs;
  if (count > 0) lead(m, repetitions_for(lead_in_ns, repetition_ns), batch, count, samples_ns);
  return count;
}

/* The same in turns, which both ranks call. Rank 0 gets the number of samples and their batch. */
static uint64_t measure_in_turns(measurement_t* m, double* samples_ns, uint64_t* batch) {
  turns_t* turns = m->session->turns;
  const uint64_t room = kSamplesOfSlice * kMostRounds;
  turns_slice_t slice;
  double repetition_ns = 0;
  uint64_t taken = 0;
  if (m->rank->rank == 0) {
    repetition_ns = warm_up(m);
    *batch = choose_batch(m, repetition_ns);
    const double part_ns = (double)turns_length_ns(turns) / kSamplesOfSlice;
    const uint64_t enough = repetitions_for(part_ns, repetition_ns);
    if (enough > *batch) *batch = enough;
    stop(m);
  } else {
    follow(m);
  }
  m->rounds.count = 0;
  while (turns_slice(turns, &slice)) {
    if (m->rank->rank != 0) {
      follow(m);
      continue;
    }
    const uint64_t more =
        take_slice(m, slice.length_ns, *batch, repetition_ns, samples_ns + taken, room - taken);
    if (more > 0 && m->rounds.count < kMostRounds) {
      m->rounds.of[m->rounds.count].round = slice.round;
      m->rounds.of[m->rounds.count++].samples = more;
      taken += more;
    }
    stop(m);
  }
  return taken;
}

/* ---- one size, one cell ---- */

static void place(measurement_t* m, size_t bytes) {
  size_t distance = probe_flag_distance(bytes);
  probe_transfer_t* transfer = &m->transfer;
  memset(transfer, 0, sizeof *transfer);
  transfer->bytes = bytes;
  transfer->data = m->region + probe_data_offset(m->region);
  transfer->flag = (uint64_t*)(void*)(transfer->data + distance);
  transfer->peer_data_offset = m->peer_data_offset;
  transfer->peer_flag_offset = m->peer_data_offset + distance;
  probe_frame_t own = frame_of(m, m->rank->rank), other = frame_of(m, 1 - m->rank->rank);
  transfer->seen = probe_first_flag(&own);
  transfer->sent = probe_first_flag(&other);
  m->loop = probe_prepare(m->rank, transfer);
}

static int measure_size(measurement_t* m, size_t bytes, double* samples_ns) {
  probe_pattern_t timed = {m->session->options->seed, bytes, kDirectionTimed, 0};
  probe_frame_t frame;
  uint64_t count = 0, batch = 0;
  place(m, bytes);
  settle(m); /* no rank uses the last size's flag any more, which may be inside this size's data */
  frame = frame_of(m, m->rank->rank);
  probe_frame_fill(&frame, &m->transfer);
  if (!verify(m, 0, "before timing")) return 0;

  probe_pattern_fill(&timed, m->rank->rank != source_of(m, 0), &m->transfer);
  settle(m);
  if (m->session->turns != NULL) {
    count = measure_in_turns(m, samples_ns, &batch);
  } else if (m->rank->rank == 0) {
    count = measure(m, samples_ns, &batch);
    stop(m);
  } else {
    follow(m);
  }
  /* Data that went back and forth must be at both ends. */
  if (!compare_regions(m, &timed, "after the timed repetitions")) return 0;
  if (!verify(m, 1, "after timing")) return 0;
  probe_write_samples(m->session->file, m->cell, bytes, batch, samples_ns, count, &m->rounds);
  return 1;
}

/* Opens the cell on both ranks. Returns 0 if one of them refused; rank 0 then records the reason.
 */
static int open_cell(measurement_t* m, size_t bytes) {
  probe_note_t mine, theirs;
  void* region = NULL;
  memset(&mine, 0, sizeof mine);
  const char* reason = probe_open(m->rank, m->cell, bytes, &region);
  if (reason != NULL)
    snprintf(mine.text, sizeof mine.text, "%s", reason[0] != '\0' ? reason : "no reason given");
  else
    mine.words[0] = probe_data_offset(region);
  exchange(m, &mine, &theirs);
  if (mine.text[0] == '\0' && theirs.text[0] == '\0') {
    m->region = region;
    m->peer_data_offset = (size_t)theirs.words[0];
    return 1;
  }
  /* Freeing is collective: if only the peer failed, this rank must keep its objects. */
  probe_write_refused(m->session->file, m->cell, mine.text[0] != '\0' ? mine.text : theirs.text);
  return 0;
}

static void free_cell(measurement_t* m) {
  free(m->own.state);
  free(m->rounds.of);
}

int probe_measure_cell(probe_session_t* session, const probe_cell_t* cell) {
  const probe_options_t* options = session->options;
  measurement_t m;
  memset(&m, 0, sizeof m);
  m.session = session;
  m.cell = cell;
  m.own = *session->rank;
  m.rank = &m.own;
  m.own.state = malloc(probe_state_bytes);
  m.rounds.of = calloc(kMostRounds, sizeof *m.rounds.of);
  if (m.own.state == NULL || m.rounds.of == NULL) give_up(&m, "no memory for the cell");
  memcpy(m.own.state, session->rank->state, probe_state_bytes);
  m.legs = cell->experiment == PROBE_PINGPONG ? PROBE_RANKS : 1;
  probe_write_start(session->file, cell);

  size_t largest = 0;
  for (int i = 0; i < options->size_count; i++)
    if (options->sizes[i] > largest) largest = options->sizes[i];
  if (!open_cell(&m, largest + PROBE_REGION_EXTRA_BYTES)) {
    free_cell(&m);
    return 1;
  }

  /* Writes to all pages now, so that no page is first touched while timing. */
  size_t room = (size_t)(kSamplesFactor * options->min_samples);
  if (session->turns != NULL) room = kSamplesOfSlice * kMostRounds;
  room *= sizeof(double);
  double* samples_ns = malloc(room);
  if (samples_ns == NULL) give_up(&m, "no memory for the samples; lower --min-samples");
  memset(samples_ns, 0, room);

  int right = 1;
  for (int i = 0; i < options->size_count; i++)
    right &= measure_size(&m, options->sizes[i], samples_ns);
  free(samples_ns);
  check(&m, probe_close(m.rank));
  free_cell(&m);
  probe_write_end(session->file, cell);
  return right;
}
