# shellcheck shell=sh
# shellcheck disable=SC2154 # root, state, venv: set by ./mobius
# SPDX-License-Identifier: BSD-3-Clause
#
# One function per subcommand; print_help in main.sh has already answered --help.

# value OPTION COUNT: fails when an option that takes a value is the last argument.
value() {
  [ "$2" -ge 2 ] || die "$1 needs a value; see ./mobius $subcommand --help"
}

unexpected() {
  die "unexpected argument '$1'; see ./mobius $subcommand --help"
}

command_help() {
  print_help "$@"
}

command_setup() {
  [ $# -eq 0 ] || unexpected "$1"
  locked set_up build python test lint -- || exit
  locked want_mpis again
  locked want_mpi4py
  locked set_up build -- release || exit
  locked want_packages
  say "ready; ./mobius --help lists the subcommands"
}

command_build() {
  presets=
  jobs=
  while [ $# -gt 0 ]; do
    case $1 in
      --preset)
        value "$1" $#
        check_preset "$2"
        presets="$presets $2"
        shift 2
        ;;
      --preset=*)
        check_preset "${1#--preset=}"
        presets="$presets ${1#--preset=}"
        shift
        ;;
      -j)
        value "$1" $#
        jobs=$2
        shift 2
        ;;
      -j?*)
        jobs=${1#-j}
        shift
        ;;
      *) unexpected "$1" ;;
    esac
  done
  case $jobs in *[!0-9]* | 0) die "-j needs a number of jobs, at least 1, not '$jobs'" ;; esac
  [ -z "$jobs" ] || export CMAKE_BUILD_PARALLEL_LEVEL="$jobs"
  # shellcheck disable=SC2086 # a list
  locked set_up build -- ${presets:-release} || exit
  for preset in ${presets:-release}; do say "build/$preset is up to date"; done
}

# Everything that is run, measured or installed, which is all but the tests.
programs=release:mobius_installed

# Only reached when nothing is built yet, or the last build failed.
command_run() {
  locked set_up build -- "$programs" || exit
  exec "$root/build/release/bin/mobius" "$subcommand" "$@"
}

command_mpirun() {
  locked set_up build python -- || exit
  locked want_mpis
  command_run "$@"
}

command_info() {
  command_run "$@"
}

command_tune() {
  command_run "$@"
}

command_explain() {
  command_run "$@"
}

command_bench() {
  locked set_up build python -- || exit
  case " $* " in
    *" --no-peers "*) ;;
    *) locked want_mpis ;;
  esac
  locked set_up build -- "$programs" || exit
  instrument "$subcommand" "$@"
}

command_report() {
  command_bench "$@"
}

command_compare() {
  locked set_up python -- || exit
  instrument "$subcommand" "$@"
}

# python_part MODULE ARGS…: runs a module of tools/setup/mobius_setup.
python_part() {
  python_module=$1
  shift
  unset PYTHONHOME
  PYTHONPATH=$root/tools/setup PYTHONNOUSERSITE=1 \
    "$venv/bin/python" -m "mobius_setup.$python_module" "$@"
}

# The test runner builds the presets itself: a failed build counts as one failed test.
command_test() {
  case " $* " in
    *" --soak"*)
      locked set_up build python -- release:soak_driver || exit
      python_part soak --root "$root" "$@"
      exit
      ;;
  esac
  if ! locked set_up build python test -- || ! use_cmake; then
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
  fi
  locked want_mpis
  locked want_mpi4py
  python_part run_tests --root "$root" "$@"
}

# The generated parts of the documents: tables of recorded figures, the reference of the headers.
command_docs() {
  case " $* " in
    *" -h "* | *" --help "*)
      print_help docs
      exit
      ;;
  esac
  case ${1-} in
    '')
      print_help docs >&2
      exit 2
      ;;
    figures) locked set_up python -- || exit ;;
    record) locked set_up build python test -- release || exit ;;
    reference)
      locked set_up python -- || exit
      locked want_doxygen
      ;;
    *) unexpected "$1" ;;
  esac
  export PATH="$venv/bin:$PATH"
  unset PYTHONHOME
  PYTHONPATH=$root/tools/setup:$root/tools/instrument PYTHONNOUSERSITE=1 \
    exec "$venv/bin/python" -m mobius_setup.docs --root "$root" "$@"
}

# Checks every file that git tracks or would add: new files are checked before they are committed.
command_lint() {
  fix=
  while [ $# -gt 0 ]; do
    case $1 in
      --fix) fix=yes ;;
      *) unexpected "$1" ;;
    esac
    shift
  done
  locked set_up build python lint -- || exit
  locked prepare_lint || exit
  locked want_doxygen
  has doxygen || say "no Doxygen here: descriptions in the public headers are not checked"
  cd -- "$root" || exit
  git rev-parse --git-dir >/dev/null ||
    die "lint checks the files that git tracks, and git does not accept '$root' as a work tree"
  export PRE_COMMIT_HOME="$state/cache/pre-commit" PATH="$venv/bin:$PATH"
  [ -z "$fix" ] || python_part format --root "$root" || exit
  git ls-files -coz --exclude-standard | xargs -0 pre-commit run --color=auto --files
}

# clang-tidy reads the compile commands of builds that are configured, not built. `dev` compiles
# each source by itself, `release` several together.
prepare_lint() {
  use_cmake && configure_preset dev && configure_preset release &&
    ninja -C "$root/build/dev" build.ninja >/dev/null &&
    ninja -C "$root/build/release" build.ninja >/dev/null
}

command_install() {
  prefix=
  while [ $# -gt 0 ]; do
    case $1 in
      --prefix)
        value "$1" $#
        prefix=$2
        shift 2
        ;;
      --prefix=*)
        prefix=${1#--prefix=}
        shift
        ;;
      *) unexpected "$1" ;;
    esac
  done
  [ -n "$prefix" ] || die "install needs a folder: ./mobius install --prefix DIR"
  case $prefix in
    /*) ;;
    *) prefix=$PWD/$prefix ;;
  esac
  check_prefix "$prefix"
  locked set_up build python -- || exit
  locked want_mpis again
  locked set_up build -- "$programs" || exit
  locked install_tree || exit
  tell_fronts "$root/build/release/share/mobius/mpi-fronts"
  say "installed in '$prefix': the folder may be moved; start with '$prefix/bin/mobius' --help"
}

# check_prefix DIR: fails before minutes of building, not after them.
check_prefix() {
  reason=$(mkdir -p -- "$1" 2>&1) || die "cannot install in '$1': ${reason#mkdir: }" \
    "choose another --prefix, or install as a user who may write there"
  [ -w "$1" ] || die "cannot install in '$1': not writable for $(id -un 2>/dev/null || id -u)" \
    "choose another --prefix, or install as a user who may write there"
}

install_tree() {
  use_cmake || return
  step install "copying Möbius to '$prefix'" "nothing else was changed; call again when corrected" \
    in_root cmake --install "$root/build/release" --prefix "$prefix" || return 2
  step install-python "copying the instrument's Python libraries" \
    "nothing else was changed; call again when corrected" \
    python_part vendor --requirements "$root/tools/setup/requirements-instrument.txt" \
    --target "$prefix/lib/mobius/python" || return 2
}
