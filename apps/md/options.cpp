// SPDX-License-Identifier: BSD-3-Clause

#include "options.h"

#include <getopt.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace md {
namespace {

constexpr const char* kHelp =
    R"(Simulates liquid water: SPC/E molecules in a periodic box.

  mobius run -n 2 md --molecules 512 --steps 1000

  -m, --molecules N     number of molecules, 216 to 8000 and more (512)
  -s, --steps N         steps to measure (1000)
  -e, --equilibrate N   steps before them, from a lattice, kept at the temperature (2000)
      --dt FS           length of a step in femtoseconds (1)
      --temperature K   of the start and while equilibrating (300)
      --density D       in g/cm³ (0.997)
      --cutoff NM       of the forces between atoms (0.9, less in a small box)
      --skin NM         how far lists of neighbours reach beyond that (0.1)
      --seed N          of directions and velocities at the start (1)
      --no-permute      deal space out in the order of ranks, wherever these are
      --no-balance      no process takes work of others
      --every N         steps between samples and frames (10)
      --xyz FILE        write the trajectory, in the format XYZ
      --plot FILE       draw temperature and energy, as SVG
      --rdf FILE        write the distribution of distances between oxygens
      --state FILE      write positions, velocities and forces of the end as a table
      --json            print the result as one line of JSON
  -h, --help            print this
)";

[[noreturn]] void refuse(std::string_view option, std::string_view value, const std::string& why) {
  std::fprintf(stderr, "md: --%s %s: %s; see md --help\n", std::string(option).c_str(),
               std::string(value).c_str(), why.c_str());
  std::exit(2);
}

double number(std::string_view option, const char* text, double least, double most) {
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(text, &end);
  if (*text == 0 || *end != 0 || errno != 0 || !(value >= least && value <= most)) {
    char wanted[80];
    std::snprintf(wanted, sizeof wanted, "a number from %.10g to %.10g is wanted", least, most);
    refuse(option, text, wanted);
  }
  return value;
}

int whole(std::string_view option, const char* text, int least, int most) {
  const double value = number(option, text, least, most);
  if (value != std::floor(value)) refuse(option, text, "a whole number is wanted");
  return static_cast<int>(value);
}

/// The box, and a cut-off that fits: an atom must not see another one twice.
void find_box(Options& options) {
  Settings& s = options.settings;
  s.side = std::cbrt(s.molecules * kMolarMass / (options.density * kMassPerVolume));
  const double most = 0.5 * s.side - 2.0 * kBondLength;
  if (s.cutoff == 0.0) s.cutoff = std::min(0.9, most);
  if (s.cutoff > most) {
    char why[120];
    std::snprintf(why, sizeof why, "the box of %.3f nm allows %.3f nm", s.side, most);
    char value[32];
    std::snprintf(value, sizeof value, "%g", s.cutoff);
    refuse("cutoff", value, why);
  }
}

}  // namespace

Options read_options(int argc, char** argv) {
  enum Long {
    kDt = 256,
    kTemperature,
    kDensity,
    kCutoff,
    kSkin,
    kSeed,
    kNoPermute,
    kNoBalance,
    kEvery,
    kXyz,
    kPlot,
    kRdf,
    kState,
    kJson
  };
  static const option kOptions[] = {{"molecules", required_argument, nullptr, 'm'},
                                    {"steps", required_argument, nullptr, 's'},
                                    {"equilibrate", required_argument, nullptr, 'e'},
                                    {"dt", required_argument, nullptr, kDt},
                                    {"temperature", required_argument, nullptr, kTemperature},
                                    {"density", required_argument, nullptr, kDensity},
                                    {"cutoff", required_argument, nullptr, kCutoff},
                                    {"skin", required_argument, nullptr, kSkin},
                                    {"seed", required_argument, nullptr, kSeed},
                                    {"no-permute", no_argument, nullptr, kNoPermute},
                                    {"no-balance", no_argument, nullptr, kNoBalance},
                                    {"every", required_argument, nullptr, kEvery},
                                    {"xyz", required_argument, nullptr, kXyz},
                                    {"plot", required_argument, nullptr, kPlot},
                                    {"rdf", required_argument, nullptr, kRdf},
                                    {"state", required_argument, nullptr, kState},
                                    {"json", no_argument, nullptr, kJson},
                                    {"help", no_argument, nullptr, 'h'},
                                    {nullptr, 0, nullptr, 0}};
  constexpr int kMost = 2'000'000'000;
  Options o;
  Settings& s = o.settings;
  int found = 0;
  while ((found = getopt_long(argc, argv, "m:s:e:h", kOptions, nullptr)) != -1) {
    switch (found) {
      case 'm':
        s.molecules = whole("molecules", optarg, 64, 1'000'000);
        break;
      case 's':
        o.steps = whole("steps", optarg, 0, kMost);
        break;
      case 'e':
        o.equilibrate = whole("equilibrate", optarg, 0, kMost);
        break;
      case kDt:
        s.step = 0.001 * number("dt", optarg, 0.001, 10.0);
        break;
      case kTemperature:
        s.temperature = number("temperature", optarg, 1.0, 1000.0);
        break;
      case kDensity:
        o.density = number("density", optarg, 0.1, 2.0);
        break;
      case kCutoff:
        s.cutoff = number("cutoff", optarg, 0.3, 10.0);
        break;
      case kSkin:
        s.skin = number("skin", optarg, 0.02, 1.0);
        break;
      case kSeed:
        s.seed = static_cast<uint64_t>(whole("seed", optarg, 0, kMost));
        break;
      case kNoPermute:
        s.permute = false;
        break;
      case kNoBalance:
        s.balance = false;
        break;
      case kEvery:
        o.every = whole("every", optarg, 1, kMost);
        break;
      case kXyz:
        o.trajectory = optarg;
        break;
      case kPlot:
        o.plot = optarg;
        break;
      case kRdf:
        o.distances = optarg;
        break;
      case kState:
        o.state = optarg;
        break;
      case kJson:
        o.json = true;
        break;
      case 'h':
        std::fputs(kHelp, stdout);
        std::exit(0);
      default:
        std::exit(2);  // getopt has said why
    }
  }
  if (optind != argc) {
    std::fprintf(stderr, "md: '%s' is no option; see md --help\n", argv[optind]);
    std::exit(2);
  }
  find_box(o);
  return o;
}

}  // namespace md
