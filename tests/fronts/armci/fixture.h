// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <armci.h>
#include <gtest/gtest.h>

#include <vector>

namespace armci_test {

inline int me() { return armci_msg_me(); }
inline int procs() { return armci_msg_nproc(); }
inline int right() { return (me() + 1) % procs(); }
inline int left() { return (me() + procs() - 1) % procs(); }

// Memory of ARMCI_Malloc(), zeros at first, freed at the end of a test.
template <typename T>
class Shared {
 public:
  explicit Shared(size_t count) : parts_(static_cast<size_t>(procs())) {
    EXPECT_EQ(ARMCI_Malloc(parts_.data(), static_cast<armci_size_t>(count * sizeof(T))), 0);
    ARMCI_Barrier();
  }
  ~Shared() {
    ARMCI_Barrier();
    EXPECT_EQ(ARMCI_Free(parts_[static_cast<size_t>(me())]), 0);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  T* at(int proc) const { return static_cast<T*>(parts_[static_cast<size_t>(proc)]); }
  T* mine() const { return at(me()); }

 private:
  std::vector<void*> parts_;
};

}  // namespace armci_test
