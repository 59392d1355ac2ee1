// SPDX-License-Identifier: BSD-3-Clause
#ifndef MD_PROCESSES_H
#define MD_PROCESSES_H

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace md {

/// A copy between the shared memory of a process, at `offset`, and a buffer of another one.
struct Transfer {
  int rank;       // the other process
  size_t offset;  // in the memory of the owner: of `rank`, or of the caller for what others ask for
  std::byte* buffer;
  size_t bytes;
};
using Transfers = std::vector<Transfer>;

/// What the program needs of the processes of its job, and of the library between them.
///
/// Each process has one piece of memory that others reach. Each file in processes/ implements this
/// class over one library, and one of them is linked. Most transfers are told to both sides: over a
/// one-sided library only the first one acts, and the other one does nothing. The same program over
/// messages needs both. A failure ends the job with a message.
class Processes {
 public:
  /// Joins the job.
  static std::unique_ptr<Processes> start();
  virtual ~Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  [[nodiscard]] virtual std::string library() const = 0;
  /// Whether transfers need nothing of the other side: then get() and take_number() work.
  [[nodiscard]] virtual bool one_sided() const = 0;
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// The lowest rank on the host of each rank.
  [[nodiscard]] const std::vector<int>& leaders() const { return leaders_; }

  /// Allocates the memory that others reach: zeros, the same size everywhere. Collective, once.
  virtual std::byte* allocate(size_t bytes) = 0;

  /// Copies from others into buffers, after all processes have come here. Collective.
  /// @param given  what others copy from here: it must not change before the next collective call
  virtual void fetch(const Transfers& wanted, const Transfers& given) = 0;

  /// Adds integers in buffers to those of others. Collective: when it returns, everything that
  /// others add here has been added. One process may add at one place only once.
  /// @param taken  what others add here, except what they do for others (take_number())
  virtual void add(const Transfers& sent, const Transfers& taken) = 0;

  /// Copies from others alone; the source must not change meanwhile. Not collective.
  virtual void get(const Transfers& wanted) = 0;

  /// Takes the next number of the counter at `offset` of a process: 0, 1, 2 … Not collective.
  virtual int64_t take_number(int rank, size_t offset) = 0;

  /// All processes meet. Collective.
  virtual void meet() = 0;
  /// Sums of all processes, or the largest values. Collective.
  virtual void sum(std::span<int64_t> values) = 0;
  virtual void largest(std::span<int64_t> values) = 0;

  /// Ends the job.
  [[noreturn]] virtual void fail(const std::string& reason) = 0;

  /// Seconds since the last call that this process spent in transfers, and waiting for others. Over
  /// messages the two cannot be told apart: all is communication.
  struct Times {
    double communication = 0.0, waiting = 0.0;
  };
  Times take_times() { return std::exchange(times_, {}); }

 protected:
  Processes() = default;

  /// Adds the time of a scope to one of the two.
  class Timer {
   public:
    explicit Timer(double& sum) : sum_(sum), start_(std::chrono::steady_clock::now()) {}
    ~Timer() {
      sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

   private:
    double& sum_;
    std::chrono::steady_clock::time_point start_;
  };

  int rank_ = 0, size_ = 1;
  std::vector<int> leaders_;
  Times times_;
};

}  // namespace md

#endif
