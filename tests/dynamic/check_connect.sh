#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Starts the two jobs that connect: check_connect.sh MOBIUS PROGRAM RANKS_A RANKS_B STEP...
# With 0 ranks a job is the program alone, without a launcher. CODE_B: how the job that connects
# has to end.
mobius=$1 program=$2 ranks_a=$3 ranks_b=$4
shift 4
name=test-$$
job() { # RANKS ROLE STEP...
  ranks=$1
  shift
  if [ "$ranks" = 0 ]; then exec "$program" "$@"; fi
  exec "$mobius" run -n "$ranks" "$program" "$@"
}
(job "$ranks_a" accept "$name" "$@") &
accepts=$!
(job "$ranks_b" connect "$name" "$@") &
connects=$!
wait "$accepts"
code_a=$?
wait "$connects"
code_b=$?
[ "$code_a" = 0 ] && [ "$code_b" = "${CODE_B:-0}" ] && exit 0
echo "the job that accepts ended with code $code_a, the one that connects with code $code_b"
exit 1
