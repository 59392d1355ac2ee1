#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# fortran.sh MOBIUS LIBRARIES BINDINGS HEADERS FOLDER PROGRAM: builds PROGRAM with gfortran and runs it
# with 1, 2 and 4 PEs, and on two virtual hosts. 77 if there is no gfortran.
set -u
mobius=$1 libraries=$2 bindings=$3 headers=$4 folder=$5 program=$6
here=$(dirname -- "$0")
command -v gfortran >/dev/null || {
  echo "SKIP: no gfortran (Debian: gfortran)"
  exit 77
}
executable=$folder/shmem_fortran_${program%.*}
gfortran -Wall -Wno-c-binding-type -Werror -fcray-pointer -I"$bindings" -I"$headers" -J"$folder" \
  -o "$executable" "$here/$program" -L"$libraries" -lmobius_shmem -lmobius \
  "-Wl,-rpath,$libraries" || exit 1
for job in '-n 1' '-n 2' '-n 4' '-n 3 --virtual-hosts 2'; do
  # shellcheck disable=SC2086 # a list of words
  output=$("$mobius" run $job "$executable" </dev/null)
  status=$?
  printf '%s: %s\n' "$job" "$output"
  [ $status -eq 0 ] && [ "$output" = 'fortran: right' ] || exit 1
done
