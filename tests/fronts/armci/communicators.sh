#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# communicators.sh MPI LIBRARIES HEADERS FOLDER: builds communicators.c with one MPI (mpich, openmpi)
# and our libarmci, and runs it under that MPI's launcher. 77 if it is not installed.
set -u
mpi=$1 libraries=$2 headers=$3 folder=$4
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

program="$folder/communicators_$mpi"
"mpicc.$mpi" -std=gnu11 -O1 -I"$headers" -o "$program" "$here/communicators.c" \
  -L"$libraries" -larmci -lmobius "-Wl,-rpath,$libraries" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for run in '1 1' '3 1' '4 2' '4 1 turned' '4 2 turned' '4 4'; do
  # shellcheck disable=SC2086 # lists of words
  output=$($launch -n ${run%% *} "$program" ${run#* } </dev/null)
  status=$?
  printf '%s: %s\n' "$run" "$output"
  [ $status -eq 0 ] || exit 1
  case $output in *"communicators: right"*) ;; *) exit 1 ;; esac
done
