#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Starts the two jobs that connect: check_connect.sh MOBIUS PROGRAM RANKS_A RANKS_B STEP...
# With 0 ranks a job is the program alone, without a launcher. CODE_B: how the job that connects
# has to end. HOSTS_A, HOSTS_B: on how many virtual hosts each job is.
mobius=$1 program=$2 ranks_a=$3 ranks_b=$4
shift 4
name=test-$$
job() { # RANKS HOSTS ROLE STEP...
  ranks=$1
  hosts=$2
  shift 2
  if [ "$ranks" = 0 ]; then exec "$program" "$@"; fi
  exec "$mobius" run ${hosts:+--virtual-hosts "$hosts"} -n "$ranks" "$program" "$@"
}
(job "$ranks_a" "${HOSTS_A:-}" accept "$name" "$@") &
accepts=$!
(job "$ranks_b" "${HOSTS_B:-}" connect "$name" "$@") &
connects=$!
wait "$accepts"
code_a=$?
wait "$connects"
code_b=$?
[ "$code_a" = 0 ] && [ "$code_b" = "${CODE_B:-0}" ] && exit 0
echo "the job that accepts ended with code $code_a, the one that connects with code $code_b"
exit 1
