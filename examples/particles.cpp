// SPDX-License-Identifier: BSD-3-Clause

// Particles that move between ranks, each of which owns a part of space. A rank that finds a
// particle of another rank takes a place in that rank's list with a fetch-and-add and puts the
// particle there; the owner does nothing. Build and run:
//   mobc++ -std=c++20 particles.cpp -o particles && mobius run -n 4 ./particles

#include <mobius/mobius.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

struct Particle {
  double position, speed;
  int number;
};

// Counts the particles, and checks that each is at its owner.
struct Census {
  long count, numbers;
  bool in_place;
};

constexpr int kPerRank = 1000, kSteps = 20;

// Puts the particles that are not in [rank, rank + 1) into the lists of their owners.
void send_away(std::vector<Particle>& particles, const mob::Array<Particle>& arriving,
               const mob::Array<uint64_t>& arrived) {
  const auto at_home = [here = mob_rank()](const Particle& particle) {
    return static_cast<mob_rank_t>(particle.position) == here;
  };
  const auto leaving = std::partition(particles.begin(), particles.end(), at_home);
  std::for_each(leaving, particles.end(), [&](const Particle& particle) {
    const auto owner = static_cast<mob_rank_t>(particle.position);
    const uint64_t place = arrived.at(owner).fetch_add(1);
    arriving.at(owner, place).put(particle);
  });
  particles.erase(leaving, particles.end());
}

}  // namespace

int main() try {
  const mob::Job job;
  const mob::Team world = mob::Team::world();
  const int size = world.size(), rank = world.rank();

  // Room for all particles; untouched pages take no memory.
  const mob::Array<Particle> arriving(static_cast<size_t>(size) * kPerRank);
  const mob::Array<uint64_t> arrived(1);

  std::vector<Particle> particles;
  for (int i = 0; i < kPerRank; ++i) {
    particles.push_back({rank + (i + 0.5) / kPerRank, 0.01 * (i % 100), rank * kPerRank + i});
  }

  for (int step = 0; step < kSteps; ++step) {
    for (Particle& particle : particles) {
      particle.position += particle.speed;
      if (particle.position >= size) particle.position -= size;
    }
    send_away(particles, arriving, arrived);
    world.barrier();  // all puts are complete
    const auto here = arriving.local().first(arrived.local()[0]);
    particles.insert(particles.end(), here.begin(), here.end());
    arrived.local()[0] = 0;
    world.barrier();  // from now on the list may be filled again
  }

  Census census{static_cast<long>(particles.size()), 0, true};
  for (const Particle& particle : particles) {
    census.numbers += particle.number;
    census.in_place &= static_cast<int>(particle.position) == rank;
  }
  const auto add = [](const Census& a, const Census& b) {
    return Census{a.count + b.count, a.numbers + b.numbers, a.in_place && b.in_place};
  };
  census = world.allreduce(add, census);

  const long total = static_cast<long>(size) * kPerRank;
  const bool right =
      census.count == total && census.numbers == total * (total - 1) / 2 && census.in_place;
  if (rank == 0) {
    std::printf("particles: %ld in %d steps: %s\n", census.count, kSteps,
                right ? "right" : "WRONG");
  }
  return right ? 0 : 1;
} catch (const std::exception& error) {
  mob_abort(1, error.what());  // other ranks may wait for this one
}
