# shellcheck shell=sh
# shellcheck disable=SC2154 # root, state, venv: set by ./mobius
# SPDX-License-Identifier: BSD-3-Clause
#
# Messages, logged steps and the lock. Progress goes to standard error: standard output belongs to
# the subcommand.

say() {
  printf 'mobius: %s\n' "$*" >&2
}

# die LINE…: one message per line, exit 2 (the set-up or the call is wrong, not the program run).
die() {
  for die_line; do say "$die_line"; done
  exit 2
}

# prepare_state: makes the folder for everything that the set-up keeps, and a home folder if the
# caller's is missing or read-only, because some tools need one.
prepare_state() {
  [ -d "$state/logs" ] || mkdir -p "$state/logs" 2>/dev/null
  [ -w "$state/logs" ] || die "cannot write to '$state': a checkout is set up and built in place;" \
    "make it writable for $(id -un 2>/dev/null || id -u), or work in a copy of it"
  if [ ! -d "${HOME-}" ] || [ ! -w "$HOME" ]; then
    mkdir -p "$state/home"
    export HOME="$state/home"
  fi
}

# locked FUNCTION ARGS…: runs FUNCTION while no other ./mobius sets up or builds in this checkout.
# The lock is a descriptor of a subshell: the kernel releases it when the last process that works
# under it ends, however it ends.
locked() {
  prepare_state
  (
    if command -v flock >/dev/null 2>&1 && ! flock -n 9; then
      say "waiting for another ./mobius in this checkout"
      flock 9
    fi
    "$@"
  ) 9>>"$state/lock"
}

# step LOG TEXT HINT COMMAND…: runs COMMAND with its output in a log; if it fails, shows the end of
# the log and HINT, and returns 1.
step() {
  step_log=$state/logs/$1.log
  step_hint=$3
  say "$2"
  shift 3
  "$@" >"$step_log" 2>&1 </dev/null && return 0
  step_status=$?
  step_lines=$(wc -l <"$step_log")
  if [ "$step_lines" -gt 80 ]; then
    say "this failed (exit $step_status); the last 80 of $step_lines lines in '$step_log':"
  else
    say "this failed (exit $step_status); its output, kept in '$step_log':"
  fi
  tail -n 80 "$step_log" >&2
  say "$step_hint"
  return 1
}

# stamp NAME: records that a step was done, and in which folder.
stamp() {
  printf '%s\n' "$root" >"$state/$1.stamp.new" && mv -f "$state/$1.stamp.new" "$state/$1.stamp"
}

cores() {
  nproc 2>/dev/null || getconf _NPROCESSORS_ONLN
}
