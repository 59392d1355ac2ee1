#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# global_arrays.sh c|fortran MPI LIBRARIES HEADERS FOLDER: builds a program with the system's Global
# Arrays for one MPI (mpich, openmpi) and our libarmci, and runs it with 1, 2 and 4 processes under
# that MPI's launcher. 77 if something of it is not installed.
set -u
language=$1 mpi=$2 libraries=$3 headers=$4 folder=$5
here=$(dirname -- "$0")

skip() {
  echo "SKIP: $1"
  exit 77
}
case $mpi in
  mpich) launch='mpiexec.mpich' ;;
  *) launch='mpirun.openmpi --oversubscribe' ;;
esac
case $language in
  c) compiler="mpicc.$mpi" source=global_arrays.c options='-std=gnu11' ;;
  *)
    compiler="mpif90.$mpi" source=global_arrays_fortran.F90
    options='-fdefault-integer-8 -fallow-argument-mismatch'
    command -v gfortran >/dev/null || skip "no gfortran (Debian: gfortran)"
    ;;
esac
command -v "$compiler" >/dev/null || skip "no $compiler (Debian: lib$mpi-dev)"
echo '#include <mpi.h>' | "mpicc.$mpi" -E -x c - >/dev/null 2>&1 || skip "no mpi.h (Debian: lib$mpi-dev)"
command -v "${launch%% *}" >/dev/null || skip "no ${launch%% *} (Debian: $mpi or $mpi-bin)"
for library in "ga-$mpi" "scalapack-$mpi" lapack blas; do
  "$compiler" "-print-file-name=lib$library.a" | grep -q / ||
    "$compiler" "-print-file-name=lib$library.so" | grep -q / ||
    skip "no lib$library (Debian: libglobalarrays-dev, libscalapack-$mpi-dev, liblapack-dev, libblas-dev)"
done

program="$folder/global_arrays_${language}_$mpi"
# shellcheck disable=SC2086 # options are a list
"$compiler" $options -O1 -I/usr/include -I"$headers" -o "$program" "$here/$source" \
  -L"$libraries" "-lga-$mpi" -larmci -lmobius "-Wl,-rpath,$libraries" \
  "-lscalapack-$mpi" -llapack -lblas -lgfortran -lm || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
for size in 1 2 4; do
  # shellcheck disable=SC2086 # a command with options
  output=$($launch -n $size "$program" </dev/null)
  status=$?
  printf '%s processes: %s\n' "$size" "$output"
  [ $status -eq 0 ] || exit 1
  case $output in *"global arrays: right"*) ;; *) exit 1 ;; esac
done
