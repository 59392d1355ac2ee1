// SPDX-License-Identifier: BSD-3-Clause

#include <mobius/mobius.hpp>

#include "../processes.h"

namespace md {
namespace {

class OverMobius final : public Processes {
 public:
  OverMobius() {
    rank_ = mob_rank();
    size_ = mob_size();
    mob_rank_t leader = 0;
    mob::check(mob_host_mate(0, &leader));
    leaders_.resize(static_cast<size_t>(size_));
    mob::check(mob_allgather(MOB_TEAM_WORLD, &leader, leaders_.data(), sizeof leader));
  }

  [[nodiscard]] std::string library() const override { return "Möbius"; }
  [[nodiscard]] bool one_sided() const override { return true; }

  std::byte* allocate(size_t bytes) override {
    memory_ = mob::Array<std::byte>(bytes);
    for (mob_rank_t rank = 0; rank < size_; ++rank) parts_.push_back(memory_.at(rank));
    return memory_.local().data();
  }

  void fetch(const Transfers& wanted, const Transfers& /*given*/) override {
    meet();
    get(wanted);
  }

  void get(const Transfers& wanted) override {
    const Timer timer(times_.communication);
    for (const Transfer& t : wanted) at<std::byte>(t).get_nbi({t.buffer, t.bytes});
    mob::check(mob_flush_local_all());
  }

  void add(const Transfers& sent, const Transfers& /*taken*/) override {
    {
      const Timer timer(times_.communication);
      for (const Transfer& t : sent) {
        at<int64_t>(t).accumulate(
            {reinterpret_cast<const int64_t*>(t.buffer), t.bytes / sizeof(int64_t)});
      }
    }
    meet();
  }

  int64_t take_number(int rank, size_t offset) override {
    const Timer timer(times_.communication);
    return at<int64_t>({rank, offset, nullptr, 0}).fetch_add(1);
  }

  // The barrier completes puts and accumulates of all.
  void meet() override {
    const Timer timer(times_.waiting);
    world_.barrier();
  }

  void sum(std::span<int64_t> values) override { combine(values, MOB_SUM); }
  void largest(std::span<int64_t> values) override { combine(values, MOB_MAX); }

  [[noreturn]] void fail(const std::string& reason) override { mob_abort(1, reason.c_str()); }

 private:
  template <typename T>
  [[nodiscard]] mob::Pointer<T> at(const Transfer& t) const {
    const auto place = parts_[static_cast<size_t>(t.rank)] + static_cast<std::ptrdiff_t>(t.offset);
    return mob::Pointer<T>(t.rank, reinterpret_cast<T*>(place.address()));
  }

  void combine(std::span<int64_t> values, mob_op_t op) {
    const Timer timer(times_.waiting);
    mob::check(
        mob_allreduce(MOB_TEAM_WORLD, op, MOB_INT64, values.data(), values.data(), values.size()));
  }

  mob::Job job_;
  mob::Team world_ = mob::Team::world();
  mob::Array<std::byte> memory_;
  std::vector<mob::Pointer<std::byte>> parts_;  // the start of each process' memory
};

}  // namespace

std::unique_ptr<Processes> Processes::start() { return std::make_unique<OverMobius>(); }

}  // namespace md
