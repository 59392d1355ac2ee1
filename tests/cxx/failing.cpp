// SPDX-License-Identifier: BSD-3-Clause

// Cases that end a job; CMakeLists.txt names them.

#include <mobius/mobius.hpp>

#include <cstring>
#include <exception>
#include <stdexcept>

namespace {

constexpr mob::Handler<int> kNumber(1);

// One rank leaves by an exception while the others are in a collective call: neither its array nor
// its job may wait for them on the way out.
void throw_in_one() {
  const mob::Job job;
  const mob::Team team = mob::Team::world().split(0);
  const mob::Array<int> array(10, team);
  if (mob_rank() == mob_size() - 1) throw std::runtime_error("thrown in the last rank");
  team.barrier();
}

// A message whose header has another size.
void wrong_header() {
  const mob::Job job;
  kNumber.set([](const mob::Message<int>&) {});
  mob::Team::world().barrier();
  const char byte = 0;
  const mob_rank_t right = (mob_rank() + 1) % mob_size();
  mob::check(mob_message_send(right, kNumber.id(), &byte, 1, nullptr, 0, nullptr));
  mob::check(mob_message_flush(right));
  mob::Team::world().barrier();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 2 && std::strcmp(argv[1], "throw_in_one") == 0) throw_in_one();
  if (argc == 2 && std::strcmp(argv[1], "wrong_header") == 0) wrong_header();
  return 0;
} catch (const std::exception& error) {
  mob_abort(3, error.what());
}
