# shellcheck shell=sh
# shellcheck disable=SC2154 # root, state, venv: set by ./mobius
# SPDX-License-Identifier: BSD-3-Clause
#
# The private Python environment in .mobius/venv: the instrument's libraries, the linters and,
# where the system's are missing or too old, CMake and Ninja.

# find_python [MODULE…]: sets python to the first interpreter that is new enough and has MODULEs:
# those that make an environment, unless others are named.
find_python() {
  [ $# -gt 0 ] || set -- venv ensurepip
  for python in python3 /usr/bin/python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
    "$python" -B -c 'import sys
for module in sys.argv[1:]:
    __import__(module)
sys.exit(sys.version_info < (3, 10))' "$@" >/dev/null 2>&1 && return 0
  done
  python=
  return 1
}

# make_venv: makes the environment anew unless it was made in this folder; then installs only
# changes.
make_venv() {
  unset PYTHONHOME PYTHONPATH
  export PIP_CACHE_DIR="$state/cache/pip" PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONNOUSERSITE=1
  if ! { stamped "$state/venv.stamp" && [ -x "$venv/bin/python" ]; }; then
    rm -f "$state/venv.stamp"
    step venv "making a Python environment in .mobius/venv" \
      "if '$python' is broken, put another python3 (3.10 or newer, with venv) first in PATH" \
      "$python" -m venv --clear "$venv" || return 2
  fi
  step pip "installing Python packages into .mobius/venv" \
    "pip could not install them: check the network, or PIP_INDEX_URL for a mirror; then call again" \
    "$venv/bin/python" -m pip install --no-input -r "$root/tools/setup/requirements.txt" || return 2
  stamp venv
}

need_venv() {
  venv_ready && return 0
  need_packages python || return
  make_venv
}

# use_cmake: makes sure that cmake, ctest and ninja in PATH are new enough.
use_cmake() {
  if ! { has ninja && recent_cmake cmake; }; then
    need_venv || return
    if [ ! -x "$venv/bin/ninja" ] || [ ! -x "$venv/bin/cmake" ]; then
      step pip-cmake "installing CMake and Ninja into .mobius/venv (the system's are missing or old)" \
        "or install cmake 3.25 or newer and ninja-build yourself; then call ./mobius again" \
        "$venv/bin/python" -m pip install --no-input --cache-dir "$state/cache/pip" \
        -r "$root/tools/setup/requirements-cmake.txt" || return 2
    fi
    PATH=$venv/bin:$PATH
  fi
}

# recent_cmake COMMAND: whether it exists and is at least 3.25, the first that reads our presets.
recent_cmake() {
  cmake_version=$("$1" --version 2>/dev/null | sed -n 's/^cmake version //p')
  cmake_minor=${cmake_version#*.}
  [ "${cmake_version%%.*}" = 3 ] && [ "${cmake_minor%%.*}" -ge 25 ] && return 0
  [ "${cmake_version%%.*}" -gt 3 ] 2>/dev/null
}
