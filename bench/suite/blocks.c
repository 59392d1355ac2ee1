/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* posix_memalign */
#endif
#include <stdlib.h>
#include <string.h>

#include "suite.h"

static suite_block_t* registered[SUITE_KINDS];

void suite_register(suite_block_t* block) {
  suite_block_t** place = &registered[block->kind];
  while (*place != NULL && strcmp((*place)->name, block->name) < 0) place = &(*place)->next;
  block->next = *place;
  *place = block;
}

const suite_block_t* suite_blocks(suite_kind_t kind) { return registered[kind]; }

const suite_block_t* suite_find(suite_kind_t kind, const char* name) {
  for (const suite_block_t* block = registered[kind]; block != NULL; block = block->next)
    if (strcmp(block->name, name) == 0) return block;
  return NULL;
}

const suite_loop_block_t* suite_find_loops(const char* transfer, const char* sync, size_t bytes) {
  const suite_loop_block_t* found = NULL;
  char name[2 * SUITE_WORD_BYTES];
  snprintf(name, sizeof name, "%s:%s", transfer, sync);
  for (const suite_block_t* block = registered[SUITE_LOOP]; block != NULL; block = block->next) {
    const suite_loop_block_t* loops = (const suite_loop_block_t*)block;
    if (strcmp(block->name, name) != 0) continue;
    if (loops->bytes == bytes) return loops;
    if (loops->bytes == 0) found = loops;
  }
  return found;
}

const char* suite_option(const suite_cell_t* cell, const char* name, const char* fallback) {
  for (int i = 0; i < cell->option_count; i++)
    if (strcmp(cell->options[i].name, name) == 0) return cell->options[i].value;
  return fallback;
}

uint64_t suite_option_number(const suite_cell_t* cell, const char* name, uint64_t fallback) {
  const char* text = suite_option(cell, name, NULL);
  char* end = NULL;
  if (text == NULL || text[0] < '0' || text[0] > '9') return fallback;
  uint64_t number = strtoull(text, &end, 10);
  return *end == '\0' ? number : fallback;
}

int suite_whole_job(suite_job_t* job, suite_comm_t* comm) {
  memset(comm, 0, sizeof *comm);
  comm->job = job;
  comm->rank = job->rank;
  comm->size = job->size;
  return 0;
}

int suite_whole_job_open(suite_job_t* job, const suite_cell_t* cell, suite_comm_t* comm) {
  (void)cell;
  return suite_whole_job(job, comm);
}

int suite_whole_job_close(suite_comm_t* comm) {
  (void)comm;
  return 0;
}

void* suite_pages(size_t bytes) {
  enum { kPage = 4096 };
  void* memory = NULL;
  return posix_memalign(&memory, kPage, (bytes + kPage - 1) / kPage * kPage) == 0 ? memory : NULL;
}
