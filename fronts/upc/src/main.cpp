// SPDX-License-Identifier: BSD-3-Clause

// The main() of programs, alone in its file: a program in C that has one of its own takes the rest
// of the static library without it.

#include <cstdlib>

#include "front.h"

extern "C" {

// Weak: a program in C has none of this name.
extern int mob_upc_main(int argc, char** argv, char** environment) __attribute__((weak));

MOB_UPC_API int main(int argc, char** argv, char** environment) {
  if (mob_upc_main == nullptr) mobius::upc::die("main", "the program has no main()");
  mob_upc_start();
  std::exit(mob_upc_main(argc, argv, environment));
}

}  // extern "C"
