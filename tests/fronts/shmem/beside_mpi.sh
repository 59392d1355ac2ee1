#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# beside_mpi.sh MPI LIBRARIES SHMEM_HEADERS HEADERS FOLDER: builds beside_mpi.c with one MPI (mpich,
# openmpi) and our OpenSHMEM, and runs it under that MPI's launcher. 77 if it is not installed.
set -u
mpi=$1 libraries=$2 shmem_headers=$3 headers=$4 folder=$5
here=$(dirname -- "$0")

skip() {
  echo "SKIP: $1"
  exit 77
}
case $mpi in
  mpich) launch='mpiexec.mpich' ;;
  *) launch='mpirun.openmpi --oversubscribe' ;;
esac
command -v "mpicc.$mpi" >/dev/null || skip "no mpicc.$mpi (Debian: lib$mpi-dev)"
echo '#include <mpi.h>' | "mpicc.$mpi" -E -x c - >/dev/null 2>&1 || skip "no mpi.h (Debian: lib$mpi-dev)"
command -v "${launch%% *}" >/dev/null || skip "no ${launch%% *} (Debian: $mpi or $mpi-bin)"

program="$folder/beside_mpi_$mpi"
"mpicc.$mpi" -std=gnu11 -O1 -I"$shmem_headers" -I"$headers" -o "$program" "$here/beside_mpi.c" \
  -L"$libraries" -lmobius_shmem -lmobius "-Wl,-rpath,$libraries" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for run in '1 mpi' '3 mpi' '3 shmem'; do
  # shellcheck disable=SC2086 # a list of words
  output=$($launch -n ${run%% *} "$program" "${run#* }" </dev/null)
  status=$?
  printf '%s: %s\n' "$run" "$output"
  [ $status -eq 0 ] || exit 1
  case $output in *"beside_mpi: right"*) ;; *) exit 1 ;; esac
done
