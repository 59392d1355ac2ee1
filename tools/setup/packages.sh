# shellcheck shell=sh
# shellcheck disable=SC2154 # root, state, venv: set by ./mobius
# SPDX-License-Identifier: BSD-3-Clause
#
# What the system must have. Asked for by what is needed (a command, a header), not by package
# name, so that a compiler or library from elsewhere will do; Debian's and Ubuntu's package names
# say how to get it.

# Packages without which nothing builds, and the header by which each is recognised.
header_packages="libcli11-dev:CLI/CLI.hpp libfmt-dev:fmt/format.h
  nlohmann-json3-dev:nlohmann/json.hpp libgtest-dev:gtest/gtest.h libfabric-dev:rdma/fabric.h"

has() {
  command -v "$1" >/dev/null 2>&1
}

# find_compiler: sets compiler to the C++ compiler that CMake will take, or to nothing.
find_compiler() {
  for compiler in ${CXX-} c++ g++ clang++; do
    has "$compiler" && return 0
  done
  compiler=
}

# missing_headers: one package per line. One run of the preprocessor answers for all of them.
missing_headers() {
  for pair in $header_packages; do
    if [ -n "$compiler" ]; then
      printf '#if !__has_include(<%s>)\n%s\n#endif\n' "${pair#*:}" "${pair%%:*}"
    elif [ ! -e "/usr/include/${pair#*:}" ]; then
      printf '%s\n' "${pair%%:*}"
    fi
  done | if [ -n "$compiler" ]; then "$compiler" -E -P -x c++ - | sed '/^$/d'; else cat; fi
}

# has_pmix: whether there are its headers, which Debian keeps out of the usual folders.
has_pmix() {
  for header in /usr/include/pmix.h /usr/local/include/pmix.h /usr/lib/*/pmix2/include/pmix.h; do
    [ -e "$header" ] && return 0
  done
  has pkg-config && pkg-config --exists pmix
}

# missing_packages GROUP…: sets missing to the packages to install for these uses.
missing_packages() {
  missing=
  for group; do
    case $group in
      build)
        find_compiler
        { [ -n "$compiler" ] && has "${CC:-cc}"; } || missing="$missing g++"
        has objdump || missing="$missing binutils"
        # The build runs small scripts.
        find_python || missing="$missing python3-venv"
        missing="$missing $(missing_headers)"
        has_pmix || missing="$missing libpmix-dev"
        ;;
      python)
        find_python || missing="$missing python3-venv"
        ;;
      test)
        has pkg-config || missing="$missing pkg-config"
        # What makes several hosts of one, and what starts jobs across them.
        { has ip && has tc; } || missing="$missing iproute2"
        has mpirun.openmpi || missing="$missing openmpi-bin"
        ;;
      lint)
        has git || missing="$missing git"
        ;;
    esac
  done
  missing=$(printf '%s\n' "$missing" | tr -s ' \n' '\n' | sed '/^$/d' | sort -u | tr '\n' ' ')
  missing=${missing% }
}

# Packages that some tests take as they find them and skip without: Global Arrays, which runs over
# our ARMCI, and what it is linked with. Named by a file each, under any of the library folders.
optional_packages="libglobalarrays-dev:libga-mpich.a libscalapack-mpich-dev:libscalapack-mpich.so
  liblapack-dev:liblapack.so libblas-dev:libblas.so mpich:../../bin/mpiexec.mpich
  libmpich-dev:../../bin/mpicc.mpich gfortran:../../bin/gfortran"

missing_optional() {
  for pair in $optional_packages; do
    for folder in /usr/lib/*-linux-gnu* /usr/lib64 /usr/local/lib; do
      [ -e "$folder/${pair#*:}" ] && continue 2
    done
    printf '%s ' "${pair%%:*}"
  done
}

# want_packages: installs the optional packages where that asks nobody, and goes on without them
# where it does not work. Tried once.
want_packages() {
  wanted=$(missing_optional)
  [ -n "$wanted" ] && [ ! -e "$state/optional-packages.stamp" ] && may_install || return 0
  : >"$state/optional-packages.stamp"
  # shellcheck disable=SC2086 # a list
  apt_install_updating $wanted >"$state/logs/apt-optional.log" 2>&1 ||
    say "tests of Global Arrays are skipped: apt-get could not install $wanted"
}

# want_doxygen: for the site of the public headers, and for the check of their descriptions, which is
# left out without it. Tried once.
want_doxygen() {
  has doxygen || [ -e "$state/doxygen.stamp" ] || ! may_install && return
  : >"$state/doxygen.stamp"
  step apt-doxygen "installing package: doxygen" "install it by hand" \
    apt_install_updating doxygen || :
}

# may_install: whether apt-get may be used without asking anybody; sets as_root to its prefix.
may_install() {
  has apt-get || return 1
  as_root=
  [ "$(id -u)" -eq 0 ] && return 0
  as_root='sudo -n'
  has sudo && sudo -n true 2>/dev/null
}

apt_install() {
  # shellcheck disable=SC2086 # as_root and the packages are lists
  $as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get install -y -q \
    --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}

# The package lists may be absent or too old to fetch from; only then are they fetched. A third
# party's list that fails must not stop us: the installation itself decides.
apt_install_updating() {
  apt_install "$@" && return 0
  $as_root apt-get update -q -o DPkg::Lock::Timeout=300
  apt_install "$@"
}

# need_packages GROUP…: installs what is missing, or says what to install and gives up.
need_packages() {
  missing_packages "$@"
  [ -n "$missing" ] || return 0
  wanted=$missing
  # CMake and Ninja come along when apt is used anyway; without it they come from PyPI.
  case " $* " in *" build "*)
    has cmake || wanted="$wanted cmake"
    has ninja || wanted="$wanted ninja-build"
    ;;
  esac
  command="apt-get install $wanted"
  if ! may_install; then
    if has apt-get; then
      die "missing packages: $missing" "install them with: sudo apt-get update && sudo $command" \
        "then call ./mobius again (this user may not install packages without a password)"
    fi
    die "missing, by their Debian and Ubuntu names: $missing" \
      "this system has no apt-get: install what corresponds to them, then call ./mobius again"
  fi
  # shellcheck disable=SC2086 # a list
  step apt "installing packages: $wanted" \
    "install them by hand (${as_root:+sudo }$command), then call ./mobius again" \
    apt_install_updating $wanted || return 2
  missing_packages "$@"
  [ -z "$missing" ] || die "still missing after apt-get installed them: $missing" \
    "is another compiler or Python first in PATH, or set in CXX or CC? PATH is $PATH"
}
