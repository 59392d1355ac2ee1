/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <string.h>

#include "session.h"

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

/* Messages of libraries may contain any bytes; one that is no UTF-8 makes the file unreadable. */
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

static void write_part(FILE* file, const suite_cell_t* cell, const char* part) {
  char name[SUITE_NAME_BYTES + 32];
  snprintf(name, sizeof name, part != NULL ? "%s:part=%s" : "%s", cell->name, part);
  write_text(file, name);
}

static FILE* begin(suite_session_t* session, const char* type, const suite_cell_t* cell,
                   const char* part) {
  if (session->out == NULL) return NULL;
  fprintf(session->out, "{\"type\":\"%s\"", type);
  if (cell != NULL) {
    fputs(",\"cell\":", session->out);
    write_part(session->out, cell, part);
  }
  return session->out;
}

static void end(FILE* file) {
  fputs("}\n", file);
  fflush(file);
}

void suite_record_samples(suite_session_t* session, const suite_cell_t* cell, const char* part,
                          size_t bytes, const suite_times_t* times) {
  if (times->samples_ns == NULL) return;
  FILE* file = begin(session, "samples", cell, part);
  if (file == NULL) return;
  fprintf(file, ",\"bytes\":%zu,\"batch\":%" PRIu64 ",\"samples_ns\":[", bytes, times->batch);
  for (uint64_t i = 0; i < times->count; i++)
    fprintf(file, i > 0 ? ",%.3f" : "%.3f", times->samples_ns[i]);
  if (times->round_count > 0) fputs("],\"rounds\":[", file);
  for (uint64_t i = 0; i < times->round_count; i++)
    fprintf(file, i > 0 ? ",[%" PRIu64 ",%" PRIu64 "]" : "[%" PRIu64 ",%" PRIu64 "]",
            times->rounds[i].round, times->rounds[i].samples);
  fputs("],\"verified\":true", file);
  end(file);
}

void suite_record_fact(suite_session_t* session, const suite_cell_t* cell, const char* name,
                       const char* value, double number, const char* detail) {
  FILE* file = begin(session, "fact", cell, NULL);
  if (file == NULL) return;
  fprintf(file, ",\"name\":\"%s\",\"value\":", name);
  write_text(file, value);
  fprintf(file, ",\"number\":%.6g,\"detail\":", number);
  write_text(file, detail);
  end(file);
}

void suite_record_wrong(suite_session_t* session, const suite_cell_t* cell, size_t bytes,
                        int64_t byte, int expected, int got, const char* where) {
  session->wrong = 1;
  FILE* file = begin(session, "wrong", cell, NULL);
  if (file == NULL) return;
  fprintf(file,
          ",\"bytes\":%zu,\"first_wrong_byte\":%" PRId64 ",\"expected\":%d,\"got\":%d,\"where\":",
          bytes, byte, expected, got);
  write_text(file, where);
  end(file);
}

void suite_record_text(suite_session_t* session, const char* type, const suite_cell_t* cell,
                       const char* name, const char* text) {
  FILE* file = begin(session, type, cell, NULL);
  if (file == NULL) return;
  if (name != NULL) {
    fprintf(file, ",\"%s\":", name);
    write_text(file, text);
  }
  end(file);
}
