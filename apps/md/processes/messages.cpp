// SPDX-License-Identifier: BSD-3-Clause

// MPI's messages, for comparison: every transfer needs its owner.

#include "mpi_job.h"

namespace md {
namespace {

class OverMessages final : public OverMpi {
 public:
  [[nodiscard]] std::string library() const override { return "MPI's messages"; }
  [[nodiscard]] bool one_sided() const override { return false; }

  std::byte* allocate(size_t bytes) override {
    memory_.resize(bytes);
    return memory_.data();
  }

  // Messages between two processes arrive in the order of the lists, which both sides make alike.
  void fetch(const Transfers& wanted, const Transfers& given) override {
    const Timer timer(times_.communication);
    for (const Transfer& t : wanted) receive(t.buffer, t);
    for (const Transfer& t : given) send(memory_.data() + t.offset, t);
    complete();
  }

  void add(const Transfers& sent, const Transfers& taken) override {
    const Timer timer(times_.communication);
    size_t bytes = 0;
    for (const Transfer& t : taken) bytes += t.bytes;
    arrived_.resize(bytes / sizeof(int64_t));
    int64_t* place = arrived_.data();
    for (const Transfer& t : taken) {
      receive(reinterpret_cast<std::byte*>(place), t);
      place += t.bytes / sizeof(int64_t);
    }
    for (const Transfer& t : sent) send(t.buffer, t);
    complete();
    place = arrived_.data();
    for (const Transfer& t : taken) {
      auto* sum = reinterpret_cast<int64_t*>(memory_.data() + t.offset);
      for (size_t i = 0; i < t.bytes / sizeof(int64_t); ++i) sum[i] += *place++;
    }
  }

  void get(const Transfers& /*wanted*/) override { fail("messages have no get"); }
  int64_t take_number(int /*rank*/, size_t /*offset*/) override {
    fail("messages have no counters");
  }

  void meet() override {
    const Timer timer(times_.waiting);
    MPI_Barrier(MPI_COMM_WORLD);
  }

 private:
  void receive(std::byte* to, const Transfer& t) {
    MPI_Irecv(to, static_cast<int>(t.bytes), MPI_BYTE, t.rank, 0, MPI_COMM_WORLD, &next());
  }
  void send(const std::byte* from, const Transfer& t) {
    MPI_Isend(from, static_cast<int>(t.bytes), MPI_BYTE, t.rank, 0, MPI_COMM_WORLD, &next());
  }
  MPI_Request& next() { return requests_.emplace_back(MPI_REQUEST_NULL); }
  void complete() {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    requests_.clear();
  }

  std::vector<std::byte> memory_;
  std::vector<int64_t> arrived_;
  std::vector<MPI_Request> requests_;
};

}  // namespace

std::unique_ptr<Processes> Processes::start() { return std::make_unique<OverMessages>(); }

}  // namespace md
