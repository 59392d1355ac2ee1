// SPDX-License-Identifier: BSD-3-Clause

// MPI's one-sided calls.

#include <cstring>

#include "mpi_job.h"

namespace md {
namespace {

class OverWindow final : public OverMpi {
 public:
  ~OverWindow() override {
    if (window_ == MPI_WIN_NULL) return;
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  [[nodiscard]] std::string library() const override { return "MPI"; }
  [[nodiscard]] bool one_sided() const override { return true; }

  std::byte* allocate(size_t bytes) override {
    // Accumulates add integers, and counters are only incremented: no order is needed.
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "accumulate_ordering", "none");
    std::byte* own = nullptr;
    bytes = (bytes + 63) / 64 * 64;  // MPICH 4.0 takes others' memory to be where this would put it
    MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, info, MPI_COMM_WORLD, &own, &window_);
    MPI_Info_free(&info);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window_);
    std::memset(own, 0, bytes);
    meet();
    return own;
  }

  void fetch(const Transfers& wanted, const Transfers& /*given*/) override {
    meet();
    get(wanted);
  }

  void get(const Transfers& wanted) override {
    const Timer timer(times_.communication);
    for (const Transfer& t : wanted) {
      const int bytes = static_cast<int>(t.bytes);
      MPI_Get(t.buffer, bytes, MPI_BYTE, t.rank, static_cast<MPI_Aint>(t.offset), bytes, MPI_BYTE,
              window_);
    }
    MPI_Win_flush_local_all(window_);
  }

  void add(const Transfers& sent, const Transfers& /*taken*/) override {
    {
      const Timer timer(times_.communication);
      for (const Transfer& t : sent) {
        const int count = static_cast<int>(t.bytes / sizeof(int64_t));
        MPI_Accumulate(t.buffer, count, MPI_INT64_T, t.rank, static_cast<MPI_Aint>(t.offset), count,
                       MPI_INT64_T, MPI_SUM, window_);
      }
      MPI_Win_flush_all(window_);
    }
    meet();
  }

  int64_t take_number(int rank, size_t offset) override {
    const Timer timer(times_.communication);
    const int64_t one = 1;
    int64_t number = 0;
    MPI_Fetch_and_op(&one, &number, MPI_INT64_T, rank, static_cast<MPI_Aint>(offset), MPI_SUM,
                     window_);
    MPI_Win_flush(rank, window_);
    return number;
  }

  // A barrier alone makes stores visible to no get: MPI_Win_sync() does, on both sides of it.
  void meet() override {
    const Timer timer(times_.waiting);
    MPI_Win_sync(window_);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window_);
  }

 private:
  MPI_Win window_ = MPI_WIN_NULL;
};

}  // namespace

std::unique_ptr<Processes> Processes::start() { return std::make_unique<OverWindow>(); }

}  // namespace md
