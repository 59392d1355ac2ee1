# shellcheck shell=sh
# shellcheck disable=SC2154 # root, state, venv: set by ./mobius
# SPDX-License-Identifier: BSD-3-Clause
#
# The system packages that are needed. The tests look for commands and headers, not for packages, so
# that a compiler or library from elsewhere is accepted; Debian's and Ubuntu's package names say how
# to get what is missing.

# Packages that every build needs, each with a header that shows that it is installed.
header_packages="libcli11-dev:CLI/CLI.hpp libfmt-dev:fmt/format.h
  nlohmann-json3-dev:nlohmann/json.hpp libgtest-dev:gtest/gtest.h libfabric-dev:rdma/fabric.h"

has() {
  command -v "$1" >/dev/null 2>&1
}

# find_compiler: sets compiler to the C++ compiler that CMake will choose, or to nothing.
find_compiler() {
  for compiler in ${CXX-} c++ g++ clang++; do
    has "$compiler" && return 0
  done
  compiler=
}

# missing_headers: prints a package per line. One run of the preprocessor looks for all headers.
missing_headers() {
  for pair in $header_packages; do
    if [ -n "$compiler" ]; then
      printf '#if !__has_include(<%s>)\n%s\n#endif\n' "${pair#*:}" "${pair%%:*}"
    elif [ ! -e "/usr/include/${pair#*:}" ]; then
      printf '%s\n' "${pair%%:*}"
    fi
  done | if [ -n "$compiler" ]; then "$compiler" -E -P -x c++ - | sed '/^$/d'; else cat; fi
}

# has_pmix: whether PMIx' headers are installed, which Debian keeps outside the usual folders.
has_pmix() {
  for header in /usr/include/pmix.h /usr/local/include/pmix.h /usr/lib/*/pmix2/include/pmix.h; do
    [ -e "$header" ] && return 0
  done
  has pkg-config && pkg-config --exists pmix
}

# has_openssl: whether OpenSSL's headers are installed.
has_openssl() {
  [ -e /usr/include/openssl/evp.h ] || [ -e /usr/local/include/openssl/evp.h ]
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
        # The build runs small Python scripts.
        find_python || missing="$missing python3-venv"
        missing="$missing $(missing_headers)"
        has_pmix || missing="$missing libpmix-dev"
        ;;
      python)
        find_python || missing="$missing python3-venv"
        ;;
      test)
        has pkg-config || missing="$missing pkg-config"
        # iproute2 makes several hosts of one; Open MPI's launcher starts jobs across them.
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

# Packages whose tests are skipped when they are missing: Global Arrays, which runs over our ARMCI,
# and the libraries that it is linked with. Each with a file that shows that it is installed,
# relative to any of the library folders.
optional_packages="libglobalarrays-dev:libga-mpich.a libscalapack-mpich-dev:libscalapack-mpich.so
  liblapack-dev:liblapack.so libblas-dev:libblas.so mpich:../../bin/mpiexec.mpich
  libmpich-dev:../../bin/mpicc.mpich gfortran:../../bin/gfortran
  libssl-dev:../../include/openssl/evp.h"

missing_optional() {
  for pair in $optional_packages; do
    for folder in /usr/lib/*-linux-gnu* /usr/lib64 /usr/local/lib; do
      [ -e "$folder/${pair#*:}" ] && continue 2
    done
    printf '%s ' "${pair%%:*}"
  done
}

# want_packages: installs the optional packages if that needs no password, and continues without
# them if it fails. Tried once.
want_packages() {
  wanted=$(missing_optional)
  [ -n "$wanted" ] && [ ! -e "$state/optional-packages.stamp" ] && may_install || return 0
  : >"$state/optional-packages.stamp"
  # shellcheck disable=SC2086 # a list
  apt_install_updating $wanted >"$state/logs/apt-optional.log" 2>&1 ||
    say "tests that need these packages are skipped: apt-get could not install $wanted"
}

# want_doxygen: installs doxygen, which makes the reference of the public headers and checks their
# descriptions; lint skips this check without it. Tried once.
want_doxygen() {
  has doxygen || [ -e "$state/doxygen.stamp" ] || ! may_install && return
  : >"$state/doxygen.stamp"
  step apt-doxygen "installing package: doxygen" "install it by hand" \
    apt_install_updating doxygen || :
}

# may_install: whether apt-get works here without a password; sets as_root to its prefix.
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

# The package lists may be absent or out of date; only then are they fetched. A failing list of a
# third party must not stop us, so only the installation's result counts.
apt_install_updating() {
  apt_install "$@" && return 0
  $as_root apt-get update -q -o DPkg::Lock::Timeout=300
  apt_install "$@"
}

# need_packages GROUP…: installs what is missing, or says what to install and exits.
need_packages() {
  missing_packages "$@"
  [ -n "$missing" ] || return 0
  wanted=$missing
  # CMake and Ninja are installed too if apt is needed anyway; without apt they come from PyPI.
  # OpenSSL's headers likewise; without them a build works, but cannot encrypt.
  case " $* " in *" build "*)
    has cmake || wanted="$wanted cmake"
    has ninja || wanted="$wanted ninja-build"
    has_openssl || wanted="$wanted libssl-dev"
    ;;
  esac
  command="apt-get install $wanted"
  if ! may_install; then
    if has apt-get; then
      die "missing packages: $missing" "install them with: sudo apt-get update && sudo $command" \
        "then call ./mobius again (this user may not install packages without a password)"
    fi
    die "missing packages, by their names in Debian and Ubuntu: $missing" \
      "this system has no apt-get: install the corresponding packages, then call ./mobius again"
  fi
  # shellcheck disable=SC2086 # a list
  step apt "installing packages: $wanted" \
    "install them by hand (${as_root:+sudo }$command), then call ./mobius again" \
    apt_install_updating $wanted || return 2
  missing_packages "$@"
  [ -z "$missing" ] || die "still missing although apt-get has installed them: $missing" \
    "is another compiler or Python first in PATH, or set in CXX or CC? PATH is $PATH"
}
