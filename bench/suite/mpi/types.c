/* SPDX-License-Identifier: BSD-3-Clause */

/* MPI's object for a datatype: from the constructor of its name, else from its runs. */

#include <stdlib.h>
#include <string.h>

#include "mpi_blocks.h"

typedef struct native {
  MPI_Datatype type; /* first: mpi_type_of() */
  MPI_Datatype element;
  int derived;
} native_t;

static int make_vector(const suite_type_t* type, size_t element_bytes, MPI_Datatype element,
                       MPI_Datatype* made) {
  return MPI_Type_vector((int)type->run_count, (int)(type->block_bytes / element_bytes),
                         (int)(type->stride_bytes / element_bytes), element, made);
}

static int make_subarray(const suite_type_t* type, size_t element_bytes, MPI_Datatype element,
                         MPI_Datatype* made) {
  int sizes[2] = {(int)type->run_count, (int)(type->stride_bytes / element_bytes)};
  int part[2] = {(int)type->run_count, (int)(type->block_bytes / element_bytes)};
  int starts[2] = {0, 0};
  return MPI_Type_create_subarray(2, sizes, part, starts, MPI_ORDER_C, element, made);
}

/* indexed, struct, and the runs of any other type. */
static int make_listed(const suite_type_t* type, size_t element_bytes, MPI_Datatype element,
                       MPI_Datatype* made) {
  int count = (int)type->run_count, error;
  int* lengths = malloc(type->run_count * sizeof *lengths);
  int* places = malloc(type->run_count * sizeof *places);
  MPI_Aint* displacements = malloc(type->run_count * sizeof *displacements);
  MPI_Datatype* types = malloc(type->run_count * sizeof(MPI_Datatype));
  if (lengths == NULL || places == NULL || displacements == NULL || types == NULL) abort();
  for (int i = 0; i < count; i++) {
    lengths[i] = (int)(type->runs[i].bytes / element_bytes);
    places[i] = (int)(type->runs[i].offset / element_bytes);
    displacements[i] = (MPI_Aint)type->runs[i].offset;
    types[i] = element;
  }
  if (strcmp(type->name, "indexed") == 0)
    error = MPI_Type_indexed(count, lengths, places, element, made);
  else if (strcmp(type->name, "struct") == 0)
    error = MPI_Type_create_struct(count, lengths, displacements, types, made);
  else
    error = MPI_Type_create_hindexed(count, lengths, displacements, element, made);
  free(lengths);
  free(places);
  free(displacements);
  free(types);
  return error;
}

int suite_mpi_make_type(suite_type_t* type) {
  native_t* native = calloc(1, sizeof *native);
  if (native == NULL) return SUITE_MPI_NO_MEMORY;
  type->native = native;
  type->native_element = &native->element;
  native->element = type->is_double            ? MPI_DOUBLE
                    : type->element_bytes == 8 ? MPI_INT64_T
                    : type->element_bytes == 4 ? MPI_INT32_T
                                               : MPI_BYTE;
  size_t bytes = type->element_bytes;
  native->type = native->element;
  if (strcmp(type->name, "contiguous") == 0)
    TRY(MPI_Type_contiguous((int)(type->bytes / bytes), native->element, &native->type));
  else if (type->run_count == 1 && strcmp(type->name, "vector") != 0 &&
           strcmp(type->name, "subarray") != 0)
    return MPI_SUCCESS; /* contiguous elements: a count, no derived type */
  else if (strcmp(type->name, "vector") == 0 || strcmp(type->name, "patch") == 0)
    TRY(make_vector(type, bytes, native->element, &native->type));
  else if (strcmp(type->name, "subarray") == 0)
    TRY(make_subarray(type, bytes, native->element, &native->type));
  else
    TRY(make_listed(type, bytes, native->element, &native->type));
  native->derived = 1;
  return MPI_Type_commit(&native->type);
}

void suite_mpi_free_type(suite_type_t* type) {
  native_t* native = type->native;
  if (native->derived) MPI_Type_free(&native->type);
  free(native);
  type->native = NULL;
}
