#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# fortran.sh MOBIUS LIBRARIES HEADERS FOLDER: builds calls.f90 with gfortran and runs it with 1, 2 and
# 4 tasks, and on two virtual hosts. 77 if there is no gfortran.
set -u
mobius=$1 libraries=$2 headers=$3 folder=$4
here=$(dirname -- "$0")
command -v gfortran >/dev/null || {
  echo "SKIP: no gfortran (Debian: gfortran)"
  exit 77
}
# LAPI_ADDR_NULL stands for arguments of any type.
gfortran -fallow-argument-mismatch -w -I"$headers" -J"$folder" -o "$folder/lapi_calls" \
  "$here/calls.f90" -L"$libraries" -llapi_r -lmobius "-Wl,-rpath,$libraries" || exit 1
for job in '-n 1' '-n 2' '-n 4' '-n 4 --virtual-hosts 2'; do
  # shellcheck disable=SC2086 # a list of words
  output=$("$mobius" run $job "$folder/lapi_calls" </dev/null)
  status=$?
  printf '%s: %s\n' "$job" "$output"
  [ $status -eq 0 ] && [ "$output" = 'fortran: right' ] || exit 1
done
