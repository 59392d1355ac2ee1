/* SPDX-License-Identifier: BSD-3-Clause */

/* Records through MPI-I/O, as in the test-suite of paper 3: a stream of the C library that writes
 * to a file which only this process has opened. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fopencookie */
#endif

#include <errno.h>
#include <stdlib.h>

#include "mpi_blocks.h"

FILE* suite_mpi_open_file(const char* name);

static ssize_t write_some(void* cookie, const char* data, size_t bytes) {
  MPI_Status status;
  int count = bytes < (1 << 20) ? (int)bytes : 1 << 20, written = 0;
  if (MPI_File_write(*(MPI_File*)cookie, data, count, MPI_BYTE, &status) != MPI_SUCCESS) {
    errno = EIO;
    return 0;
  }
  MPI_Get_count(&status, MPI_BYTE, &written);
  return written;
}

static int close_file(void* cookie) {
  int error = MPI_File_close(cookie);
  free(cookie);
  return error == MPI_SUCCESS ? 0 : EOF;
}

FILE* suite_mpi_open_file(const char* name) {
  const cookie_io_functions_t functions = {.write = write_some, .close = close_file};
  MPI_File* file = malloc(sizeof *file);
  if (file == NULL) return NULL;
  if (MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, file) !=
      MPI_SUCCESS) {
    free(file);
    errno = EIO;
    return NULL;
  }
  if (MPI_File_set_size(*file, 0) == MPI_SUCCESS) {
    FILE* stream = fopencookie(file, "w", functions);
    if (stream != NULL) return stream;
  }
  MPI_File_close(file);
  free(file);
  errno = EIO;
  return NULL;
}
