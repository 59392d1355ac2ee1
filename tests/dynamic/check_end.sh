#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check_end.sh MOBIUS TESTS NAME CODE LINE: runs the test that ends a job, and compares the job's
# exit code and a line of its output. HOSTS: of so many virtual hosts.
output=$("$1" run --tag --virtual-hosts "${HOSTS:-1}" -n 2 "$2" --gtest_also_run_disabled_tests --gtest_filter="*Ends.$3" 2>&1)
code=$?
echo "$output"
echo "exit code $code, expected $4; expected line: $5"
[ "$code" = "$4" ] && echo "$output" | grep -q "$5"
