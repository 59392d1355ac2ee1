// SPDX-License-Identifier: BSD-3-Clause

#include "../processes.h"

extern "C" {
#include <armci.h>
}
#include <cstdlib>
#include <cstring>

namespace md {
namespace {

class OverArmci final : public Processes {
 public:
  OverArmci() {
    ARMCI_Init();
    rank_ = armci_msg_me();
    size_ = armci_msg_nproc();
    for (int rank = 0; rank < size_; ++rank) {
      const int domain = armci_domain_id(ARMCI_DOMAIN_SMP, rank);
      leaders_.push_back(armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, domain, 0));
    }
  }
  ~OverArmci() override {
    if (!parts_.empty()) ARMCI_Free(parts_[static_cast<size_t>(rank_)]);
    ARMCI_Finalize();
  }

  [[nodiscard]] std::string library() const override { return "ARMCI"; }
  [[nodiscard]] bool one_sided() const override { return true; }

  std::byte* allocate(size_t bytes) override {
    parts_.resize(static_cast<size_t>(size_));
    if (ARMCI_Malloc(parts_.data(), static_cast<armci_size_t>(bytes)) != 0) fail("no memory");
    void* own = parts_[static_cast<size_t>(rank_)];
    std::memset(own, 0, bytes);
    ARMCI_Barrier();
    return static_cast<std::byte*>(own);
  }

  void fetch(const Transfers& wanted, const Transfers& /*given*/) override {
    meet();
    get(wanted);
  }

  void get(const Transfers& wanted) override {
    const Timer timer(times_.communication);
    for (const Transfer& t : wanted) {
      ARMCI_NbGet(at(t.rank, t.offset), t.buffer, static_cast<int>(t.bytes), t.rank, nullptr);
    }
    ARMCI_WaitAll();
  }

  void add(const Transfers& sent, const Transfers& /*taken*/) override {
    static_assert(sizeof(long) == sizeof(int64_t));
    {
      const Timer timer(times_.communication);
      long once = 1;
      for (const Transfer& t : sent) {
        ARMCI_Acc(ARMCI_ACC_LNG, &once, t.buffer, at(t.rank, t.offset), static_cast<int>(t.bytes),
                  t.rank);
      }
    }
    meet();
  }

  int64_t take_number(int rank, size_t offset) override {
    const Timer timer(times_.communication);
    long number = 0;
    ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &number, at(rank, offset), 1, rank);
    return number;
  }

  // Completes everything everywhere.
  void meet() override {
    const Timer timer(times_.waiting);
    ARMCI_Barrier();
  }

  void sum(std::span<int64_t> values) override { combine(values, "+"); }
  void largest(std::span<int64_t> values) override { combine(values, "max"); }

  [[noreturn]] void fail(const std::string& reason) override {
    ARMCI_Error(const_cast<char*>(reason.c_str()), 1);
    std::abort();
  }

 private:
  [[nodiscard]] void* at(int rank, size_t offset) const {
    return static_cast<std::byte*>(parts_[static_cast<size_t>(rank)]) + offset;
  }

  void combine(std::span<int64_t> values, const char* operation) {
    const Timer timer(times_.waiting);
    armci_msg_lgop(reinterpret_cast<long*>(values.data()), static_cast<int>(values.size()),
                   const_cast<char*>(operation));
  }

  std::vector<void*> parts_;
};

}  // namespace

std::unique_ptr<Processes> Processes::start() { return std::make_unique<OverArmci>(); }

}  // namespace md
