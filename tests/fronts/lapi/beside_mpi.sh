#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# beside_mpi.sh MPI LIBRARIES HEADERS FOLDER MOBIUS: builds beside_mpi.c with one MPI (mpich, openmpi)
# and our liblapi_r, and runs it under that MPI's launcher, then by `mobius run`, which LAPI must refuse
# because each process is an MPI job of its own there. 77 if it is not installed.
set -u
mpi=$1 libraries=$2 headers=$3 folder=$4 mobius=$5
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

program="$folder/lapi_beside_$mpi"
"mpicc.$mpi" -std=gnu11 -O1 -I"$headers" -o "$program" "$here/beside_mpi.c" \
  -L"$libraries" -llapi_r -lmobius "-Wl,-rpath,$libraries" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for order in 0 1 2; do
  # shellcheck disable=SC2086 # a list of words
  output=$($launch -n 2 "$program" $order </dev/null)
  status=$?
  printf 'order %s: %s\n' "$order" "$output"
  [ $status -eq 0 ] || exit 1
  [ "$(printf '%s\n' "$output" | grep -c ': right$')" -eq 2 ] || exit 1
done
# MPI first: LAPI_Init() refuses. LAPI first: the next call that exchanges addresses does, or the first
# fence, and says it even if the program does not look.
for order in 0:LAPI_Address_init 1:LAPI_Init 3:LAPI_Gfence; do
  output=$("$mobius" run -n 2 "$program" "${order%%:*}" 2>&1 </dev/null)
  status=$?
  printf 'mobius run, order %s: %s\n' "$order" "$output"
  [ $status -ne 0 ] || exit 1
  case $output in
    *"${order#*:}: MPI_COMM_WORLD has this process as rank 0 of 1, and LAPI as task"*) ;;
    *) exit 1 ;;
  esac
done
