/* SPDX-License-Identifier: BSD-3-Clause */

#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

const char* const placement_names[] = {"cyclic", "block", "hybrid", NULL};

static const char kHelp[] =
    "Factors a dense matrix into a lower and an upper triangle, in blocks (SPLASH-2's LU).\n"
    "\n"
    "  mobius run -n 2 lu [OPTIONS]\n"
    "\n"
    "  -n, --size N          rows and columns of the matrix (3072)\n"
    "  -b, --block N         rows and columns of a block (32)\n"
    "  -p, --placement P     where blocks are: cyclic, block, or hybrid: ranges of the matrix for\n"
    "                        hosts, cyclic within a host (hybrid)\n"
    "  -k, --kernel K        plain: loops; blas: dgemm and dtrsm of libblas.so.3; blas=FILE: of\n"
    "                        another library (plain)\n"
    "  -c, --copy            copy blocks of others, also those that could be read in place\n"
    "      --ranges N        for hybrid: so many ranges of rows and of columns for each host; 1 "
    "is\n"
    "                        paper 5's (as many as there can be)\n"
    "      --per-host N      for hybrid: take each N ranks for a host (ask the library)\n"
    "      --seed N          of the matrix (1)\n"
    "  -r, --repeat N        factor so often, and tell the fastest time (1)\n"
    "  -w, --write FILE      write the factors as a NumPy array (.npy)\n"
    "      --json            print the result as one line of JSON\n"
    "  -t, --threads N       lu-threads only: the number of threads (2)\n"
    "      --bind            lu-threads only: bind each to a processor, as mobius run --bind core\n"
    "                        binds processes\n"
    "  -h, --help            print this\n";

__attribute__((noreturn)) static void refuse(const char* option, const char* value,
                                             const char* wanted) {
  fprintf(stderr, "lu: --%s%s%s: %s; see lu --help\n", option, *value == 0 ? "" : " ", value,
          wanted);
  exit(2);
}

static int number(const char* option, const char* text, int least, int most) {
  char* end;
  errno = 0;
  const long value = strtol(text, &end, 10);
  if (*text == 0 || *end != 0 || errno != 0 || value < least || value > most) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "a number from %d to %d is wanted", least, most);
    refuse(option, text, wanted);
  }
  return (int)value;
}

static placement_t placement(const char* text) {
  for (int i = 0; placement_names[i] != NULL; ++i) {
    if (strcmp(text, placement_names[i]) == 0) return (placement_t)i;
  }
  refuse("placement", text, "cyclic, block or hybrid is wanted");
}

static const char* blas(const char* text) {
  if (strcmp(text, "plain") == 0) return NULL;
  if (strcmp(text, "blas") == 0) return "libblas.so.3";
  if (strncmp(text, "blas=", 5) == 0 && text[5] != 0) return text + 5;
  refuse("kernel", text, "plain, blas or blas=FILE is wanted");
}

options_t options_read(int argc, char** argv) {
  enum { kSeed = 256, kJson, kPerHost, kRanges, kBind, kMostRanges = 1 << 20 };
  static const struct option kOptions[] = {{"size", required_argument, NULL, 'n'},
                                           {"block", required_argument, NULL, 'b'},
                                           {"placement", required_argument, NULL, 'p'},
                                           {"kernel", required_argument, NULL, 'k'},
                                           {"copy", no_argument, NULL, 'c'},
                                           {"ranges", required_argument, NULL, kRanges},
                                           {"per-host", required_argument, NULL, kPerHost},
                                           {"seed", required_argument, NULL, kSeed},
                                           {"repeat", required_argument, NULL, 'r'},
                                           {"write", required_argument, NULL, 'w'},
                                           {"json", no_argument, NULL, kJson},
                                           {"threads", required_argument, NULL, 't'},
                                           {"bind", no_argument, NULL, kBind},
                                           {"help", no_argument, NULL, 'h'},
                                           {NULL, 0, NULL, 0}};
  options_t options = {3072, 32, PLACE_HYBRID, kMostRanges, NULL, 0, 0, 2, 0, 1, 1, NULL, 0};
  int option;
  while ((option = getopt_long(argc, argv, "n:b:p:k:cr:w:t:h", kOptions, NULL)) != -1) {
    switch (option) {
      case 'n':
        options.size = number("size", optarg, 1, 200000);
        break;
      case 'b':
        options.block = number("block", optarg, 1, 4096);
        break;
      case 'p':
        options.placement = placement(optarg);
        break;
      case 'k':
        options.blas = blas(optarg);
        break;
      case 'c':
        options.copy = 1;
        break;
      case kRanges:
        options.ranges = number("ranges", optarg, 1, kMostRanges);
        break;
      case kPerHost:
        options.per_host = number("per-host", optarg, 1, 1 << 20);
        break;
      case kSeed:
        options.seed = (uint64_t)number("seed", optarg, 0, 2147483647);
        break;
      case 'r':
        options.repeats = number("repeat", optarg, 1, 1 << 20);
        break;
      case 'w':
        options.output = optarg;
        break;
      case kJson:
        options.json = 1;
        break;
      case 't':
        if (!world_makes_threads) refuse("threads", optarg, "only lu-threads makes threads");
        options.threads = number("threads", optarg, 1, 1024);
        break;
      case kBind:
        if (!world_makes_threads) refuse("bind", "", "only lu-threads makes threads");
        options.bound = 1;
        break;
      case 'h':
        fputs(kHelp, stdout);
        exit(0);
      default:
        exit(2); /* getopt has said why */
    }
  }
  if (optind != argc) {
    fprintf(stderr, "lu: '%s' is no option; see lu --help\n", argv[optind]);
    exit(2);
  }
  return options;
}
