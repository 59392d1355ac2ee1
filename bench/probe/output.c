/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* gethostname */
#endif
#include "output.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* Length of the UTF-8 sequence of several bytes that starts at `text`, or 0 if there is none. */
static int sequence_length(const unsigned char* text) {
  int length = text[0] >= 0xf0 && text[0] <= 0xf4  ? 4
               : text[0] >= 0xe0 && text[0] < 0xf0 ? 3
               : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                                                   : 0;
  for (int i = 1; i < length; i++)
    if ((text[i] & 0xc0) != 0x80) return 0;
  return length;
}

/* Messages of libraries may contain any bytes; one that is no UTF-8 would make the whole file
 * unreadable. */
static void write_text(FILE* file, const char* text) {
  fputc('"', file);
  for (const unsigned char* c = (const unsigned char*)text; *c != '\0'; c++) {
    int length = sequence_length(c);
    if (length > 0) {
      fwrite(c, 1, (size_t)length, file);
      c += length - 1;
    } else if (*c == '"' || *c == '\\') {
      fprintf(file, "\\%c", *c);
    } else if (*c < 0x20 || *c == 0x7f) {
      fprintf(file, "\\u%04x", *c);
    } else {
      fputc(*c < 0x80 ? *c : '?', file);
    }
  }
  fputc('"', file);
}

static void write_head(FILE* file, const char* type, const probe_cell_t* cell) {
  fprintf(file, "{\"type\":\"%s\"", type);
  if (cell != NULL) {
    fputs(",\"cell\":", file);
    write_text(file, cell->name);
  }
}

static void write_tail(FILE* file) {
  fputs("}\n", file);
  fflush(file);
}

void probe_write_environment(FILE* file, const probe_rank_t* rank, const probe_timer_t* timer,
                             const int* cpus) {
  if (file == NULL) return;
  char hostname[256] = "";
  gethostname(hostname, sizeof hostname - 1);
  write_head(file, "environment", NULL);
  fputs(",\"library\":", file);
  write_text(file, rank->library);
  fputs(",\"version\":", file);
  write_text(file, rank->version);
  fputs(",\"adapter\":", file);
  write_text(file, probe_adapter_name);
  fputs(",\"timer\":{\"name\":", file);
  write_text(file, PROBE_TIMER_NAME);
  fprintf(file, ",\"overhead_ns\":%.1f,\"resolution_ns\":%.1f},\"cpus\":[%d,%d],\"hostname\":",
          timer->overhead_ns, timer->resolution_ns, cpus[0], cpus[1]);
  write_text(file, hostname);
  fprintf(file, ",\"pid\":%ld", (long)getpid());
  write_tail(file);
}

void probe_write_start(FILE* file, const probe_cell_t* cell) {
  if (file == NULL) return;
  write_head(file, "start", cell);
  write_tail(file);
}

void probe_write_samples(FILE* file, const probe_cell_t* cell, size_t bytes, uint64_t batch,
                         const double* samples_ns, uint64_t count, const probe_rounds_t* rounds) {
  if (file == NULL) return;
  write_head(file, "samples", cell);
  fprintf(file, ",\"bytes\":%zu,\"batch\":%" PRIu64 ",\"samples_ns\":[", bytes, batch);
  for (uint64_t i = 0; i < count; i++) fprintf(file, i > 0 ? ",%.3f" : "%.3f", samples_ns[i]);
  if (rounds->count > 0) fputs("],\"rounds\":[", file);
  for (uint64_t i = 0; i < rounds->count; i++)
    fprintf(file, i > 0 ? ",[%" PRIu64 ",%" PRIu64 "]" : "[%" PRIu64 ",%" PRIu64 "]",
            rounds->of[i].round, rounds->of[i].samples);
  fputs("],\"verified\":true", file);
  write_tail(file);
}

void probe_write_wrong(FILE* file, const probe_cell_t* cell, size_t bytes,
                       const probe_fault_t* fault) {
  if (file == NULL) return;
  write_head(file, "wrong", cell);
  fprintf(file, ",\"bytes\":%zu,\"first_wrong_byte\":%" PRId64 ",\"expected\":%d,\"got\":%d", bytes,
          fault->byte, fault->expected, fault->got);
  fputs(",\"where\":", file);
  write_text(file, fault->where);
  write_tail(file);
}

void probe_write_refused(FILE* file, const probe_cell_t* cell, const char* reason) {
  if (file == NULL) return;
  write_head(file, "refused", cell);
  fputs(",\"reason\":", file);
  write_text(file, reason);
  write_tail(file);
}

void probe_write_end(FILE* file, const probe_cell_t* cell) {
  if (file == NULL) return;
  write_head(file, "end", cell);
  write_tail(file);
}

void probe_write_done(FILE* file) {
  if (file == NULL) return;
  write_head(file, "done", NULL);
  write_tail(file);
}
