# shellcheck shell=sh
# shellcheck disable=SC2154 # root, state, venv: set by ./mobius
# SPDX-License-Identifier: BSD-3-Clause
#
# The rest of ./mobius, for subcommands that it cannot exec at once. ./mobius reads this file and
# sets root, state and venv. The parts:
#
#   common.sh       messages, logged steps, the lock
#   packages.sh     the system packages that are needed, and apt
#   environment.sh  the private Python environment
#   mpis.sh         what the fronts for MPI are compiled with
#   build.sh        configure and build a preset
#   commands.sh     one function per subcommand
#   help.txt        the text of --help
#   mobius_setup/   the parts that are Python: test runner, own checks, copying of dependencies

set -u

for part in common packages environment mpis build commands; do
  # shellcheck disable=SC1090 # each part is checked on its own
  . "$root/tools/setup/$part.sh"
done

# print_help [SUBCOMMAND]: one section of help.txt; sections start with "@name".
print_help() {
  awk -v wanted="@${1:-mobius}" '/^@/ { shown = $0 == wanted; next } shown' \
    "$root/tools/setup/help.txt"
}

version() {
  sed -n 's/^project(mobius VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt"
}

# unknown_subcommand NAME: suggests the subcommands that are spelt most like NAME.
unknown_subcommand() {
  # shellcheck disable=SC2086 # one argument per name
  near=$(printf '%s\n' $subcommands | awk -v word="$1" -f "$root/tools/setup/nearest.awk")
  say "unknown subcommand '$1'${near:+; did you mean $near?}"
  say "./mobius --help lists all subcommands"
  exit 2
}

subcommands="build test run mpirun bench report compare info tune explain docs install lint setup help"

case ${1-} in
  '')
    print_help >&2
    exit 2
    ;;
  -h | --help)
    print_help
    exit
    ;;
  --version)
    echo "mobius $(version)"
    exit
    ;;
  help)
    [ $# -ge 2 ] || { print_help; exit; }
    case $2 in
      -h | --help) ;;
      *) shift ;;
    esac
    set -- "$1" --help
    ;;
esac

case " $subcommands " in
  *" $1 "*) ;;
  *) unknown_subcommand "$1" ;;
esac

# describe ARGS…: becomes the Python part, which answers --help and --list with Python's standard
# library alone, and leaves no file. Returns where no Python is new enough.
describe() {
  find_python sys || return
  unset PYTHONHOME
  export PYTHONPATH="$root/tools/instrument" PYTHONNOUSERSITE=1
  exec "$python" -B -m mobius_instrument "$@"
}

# Asking for help, or for a list, starts no set-up. A word of `run` and its like may be for the
# program that they start, unless it is the first; for the other subcommands it may stand anywhere.
case $1 in
  build | test | install | lint | setup | docs | help | bench | report | compare)
    for argument; do
      case $argument in
        --)
          break
          ;;
        -h | --help)
          case $1 in
            bench | report | compare) describe "$@" ;;
          esac
          print_help "$1"
          exit
          ;;
        --list)
          [ "$1" != bench ] || describe "$@"
          ;;
      esac
    done
    ;;
  run | mpirun | info | tune | explain)
    case ${2-} in
      -h | --help)
        cat -- "$root/tools/mobius/help/$1.txt"
        exit
        ;;
    esac
    ;;
esac

subcommand=$1
shift
"command_$subcommand" "$@"
