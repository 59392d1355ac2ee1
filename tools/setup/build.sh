# shellcheck shell=sh
# shellcheck disable=SC2154 # root, state, venv: set by ./mobius
# SPDX-License-Identifier: BSD-3-Clause
#
# Configuring and building one preset into build/PRESET.

check_preset() {
  grep -q "\"configurePreset\": \"$1\"" "$root/CMakePresets.json" ||
    die "no preset '$1'; there are: $(sed -n \
      's/.*"configurePreset": "\([^"]*\)".*/\1/p' "$root/CMakePresets.json" | sort -u | tr '\n' ' ')"
}

# configure_preset PRESET: unless Ninja can do it itself when something changed, which it cannot
# when an MPI came or went.
configure_preset() {
  note_mpis
  if stamped "$state/configure-$1.stamp" "$root/CMakePresets.json" "$state/mpis" &&
    [ -f "$root/build/$1/build.ninja" ]; then
    return 0
  fi
  fresh=
  if ! stamped "$state/configure-$1.stamp"; then fresh=--fresh; fi
  rm -f "$state/configure-$1.stamp"
  step "configure-$1" "configuring build/$1" \
    "correct what CMake says above, then call ./mobius again" \
    in_root cmake --preset "$1" $fresh || return 2
  stamp "configure-$1"
}

in_root() {
  cd -- "$root" && "$@"
}

# build_preset PRESET [TARGET]: brings build/PRESET up to date, or what TARGET needs of it; silent
# when it is. The stamp says that no build was left unfinished: while files change there is none,
# and a `run` at that time waits for the lock instead of starting a command whose library is being
# replaced.
build_preset() {
  use_cmake && configure_preset "$1" || return
  # shellcheck disable=SC2086 # no TARGET: no argument
  if built "$1" && ninja -C "$root/build/$1" -n ${2-} 2>/dev/null |
    grep -q '^ninja: no work to do'; then
    return 0
  fi
  rm -f "$state/build-$1.stamp"
  # shellcheck disable=SC2086
  step "build-$1" "building build/$1${2:+: what is run, measured or installed}" \
    "correct what the compiler says above, then call ./mobius again" \
    ninja -C "$root/build/$1" -j "${CMAKE_BUILD_PARALLEL_LEVEL:-$(cores)}" ${2-} || return 2
  stamp "build-$1"
}

# set_up GROUP… -- PRESET[:TARGET]…: everything these uses need, in the order they need it.
set_up() {
  groups=
  while [ "$1" != -- ]; do
    groups="$groups $1"
    shift
  done
  shift
  # shellcheck disable=SC2086 # a list
  need_packages $groups || return
  case " $groups " in *" python "*) need_venv || return ;; esac
  for preset; do
    case $preset in
      *:*) build_preset "${preset%%:*}" "${preset#*:}" || return ;;
      *) build_preset "$preset" || return ;;
    esac
  done
}
