// SPDX-License-Identifier: BSD-3-Clause
#include <mobius/job.h>

#include <cstring>

#include "fixture.h"

namespace {

using namespace armci_test;  // NOLINT(google-build-using-namespace)

TEST(Memory, PartsOfDifferentSizeAndOfNone) {
  for (int without = 0; without < procs(); ++without) {
    std::vector<void*> parts(static_cast<size_t>(procs()));
    const armci_size_t mine = me() == without ? 0 : 8 * (me() + 1);
    ASSERT_EQ(ARMCI_Malloc(parts.data(), mine), 0);
    for (int proc = 0; proc < procs(); ++proc) {
      void* part = parts[static_cast<size_t>(proc)];
      EXPECT_EQ(part == nullptr, proc == without);
      if (part != nullptr) ARMCI_PutValueInt(me(), static_cast<int*>(part) + proc, proc);
    }
    ARMCI_Barrier();
    if (me() != without) {
      EXPECT_GE(static_cast<int*>(parts[static_cast<size_t>(me())])[me()], 0);
    }
    ARMCI_Barrier();
    EXPECT_EQ(ARMCI_Free(parts[static_cast<size_t>(me())]), 0);
  }
  std::vector<void*> none(static_cast<size_t>(procs()), &none);
  ASSERT_EQ(ARMCI_Malloc(none.data(), 0), 0);
  for (const void* part : none) EXPECT_EQ(part, nullptr);
  EXPECT_EQ(ARMCI_Free(nullptr), 0);
}

TEST(Memory, FreedInAnotherOrder) {
  std::vector<std::vector<void*>> all;
  for (int i = 0; i < 5; ++i) {
    all.emplace_back(static_cast<size_t>(procs()));
    ASSERT_EQ(ARMCI_Malloc_memdev(all.back().data(), (me() + i) % 2 * 64 + 1, "dram"), 0);
  }
  for (const int i : {3, 0, 4, 1, 2}) {
    EXPECT_EQ(ARMCI_Free_memdev(all[static_cast<size_t>(i)][static_cast<size_t>(me())]), 0);
  }
}

TEST(Memory, TooMuchIsRefusedEverywhere) {
  std::vector<void*> parts(static_cast<size_t>(procs()));
  EXPECT_NE(ARMCI_Malloc(parts.data(), me() == 0 ? 1L << 50 : 8), 0);
  Shared<int> still_works(1);
  ARMCI_PutValueInt(1, still_works.at(right()), right());
  ARMCI_Barrier();
  EXPECT_EQ(*still_works.mine(), 1);
}

TEST(Memory, OfOneProcess) {
  auto* mine = static_cast<int*>(ARMCI_Malloc_local(100 * sizeof(int)));
  ASSERT_NE(mine, nullptr);
  std::memset(mine, 0, 100 * sizeof(int));
  std::vector<void*> all(static_cast<size_t>(procs()));
  all[static_cast<size_t>(me())] = mine;
  armci_exchange_address(all.data(), procs());
  ARMCI_PutValueInt(me() + 1, static_cast<int*>(all[static_cast<size_t>(right())]) + 99, right());
  ARMCI_Barrier();
  EXPECT_EQ(mine[99], left() + 1);
  ARMCI_Barrier();
  EXPECT_EQ(ARMCI_Free_local(mine), 0);
  EXPECT_EQ(ARMCI_Free_local(nullptr), 0);
}

TEST(Memory, GotAttachedAndReleased) {
  armci_meminfo_t mine;
  ARMCI_Memget(256, &mine, 0);
  EXPECT_EQ(mine.cpid, me());
  EXPECT_EQ(mine.size, 256U);
  armci_meminfo_t neighbours;
  for (int proc = 0; proc < procs(); ++proc) {
    armci_meminfo_t info = mine;
    armci_msg_brdcst(&info, sizeof info, proc);
    if (proc == right()) neighbours = info;
  }
  auto* there = static_cast<int*>(ARMCI_Memat(&neighbours, 16));
  if (mob_is_host_mate(right()) == 1) {
    EXPECT_NE(there, nullptr);
    *there = 50 + me();
    ARMCI_Memdt(&neighbours, 16);
  } else {  // only transfers can access it
    EXPECT_EQ(there, nullptr);
    ARMCI_PutValueInt(50 + me(), neighbours.armci_addr + 16, right());
  }
  ARMCI_Barrier();
  EXPECT_EQ(*reinterpret_cast<int*>(mine.addr + 16), 50 + left());
  EXPECT_EQ(ARMCI_GetValueInt(neighbours.armci_addr + 16, right()), 50 + me());
  ARMCI_Barrier();
  ARMCI_Memctl(&mine);
}

TEST(Memory, DirectAccess) {
  Shared<int> memory(1);
  ARMCI_Set_shm_limit(1);
  ARMCI_Access_begin(memory.mine());
  *memory.mine() = me() + 1;
  ARMCI_Access_end(memory.mine());
  ARMCI_Barrier();
  if (ARMCI_Uses_shm() != 0 && ARMCI_Same_node(right()) != 0) {
    EXPECT_EQ(*memory.at(right()), right() + 1);
  }
  EXPECT_EQ(ARMCI_GetValueInt(memory.at(right()), right()), right() + 1);
}

TEST(Topology, DomainsHoldEveryProcessOnce) {
  int seen = 0;
  for (int domain = 0; domain < armci_domain_count(ARMCI_DOMAIN_SMP); ++domain) {
    for (int i = 0; i < armci_domain_nprocs(ARMCI_DOMAIN_SMP, domain); ++i) {
      const int proc = armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, domain, i);
      EXPECT_EQ(armci_domain_id(ARMCI_DOMAIN_SMP, proc), domain);
      const bool same = domain == armci_domain_my_id(ARMCI_DOMAIN_SMP);
      EXPECT_EQ(armci_domain_same_id(ARMCI_DOMAIN_SMP, proc), same ? 1 : 0);
      EXPECT_EQ(ARMCI_Same_node(proc), same ? 1 : 0);
      ++seen;
    }
  }
  EXPECT_EQ(seen, procs());
  EXPECT_EQ(ARMCI_Same_node(me()), 1);
  EXPECT_GE(armci_domain_nprocs(ARMCI_DOMAIN_SMP, -1), 1);
}

TEST(Mutexes, ExcludeEachOther) {
  Shared<long> memory(2);
  ASSERT_EQ(ARMCI_Create_mutexes(me() + 1), 0);
  const int host = procs() - 1;
  for (int i = 0; i < 500; ++i) {
    for (const int mutex : {0, host}) {
      long* word = memory.at(host) + (mutex == 0 ? 0 : 1);
      ARMCI_Lock(mutex, host);
      ARMCI_PutValueLong(ARMCI_GetValueLong(word, host) + 1, word, host);
      ARMCI_Unlock(mutex, host);
      if (host == 0) break;
    }
  }
  ARMCI_Barrier();
  EXPECT_EQ(ARMCI_GetValueLong(memory.at(host), host), 500L * procs());
  if (host > 0) {
    EXPECT_EQ(ARMCI_GetValueLong(memory.at(host) + 1, host), 500L * procs());
  }
  EXPECT_EQ(ARMCI_Destroy_mutexes(), 0);
  ASSERT_EQ(ARMCI_Create_mutexes(me() == 0 ? 1 : 0), 0);
  ARMCI_Lock(0, 0);
  ARMCI_Unlock(0, 0);
  EXPECT_EQ(ARMCI_Destroy_mutexes(), 0);
}

TEST(Notifications, DataIsThereBefore) {
  Shared<int> memory(1);
  for (int round = 1; round <= 100; ++round) {
    ARMCI_PutValueInt(round, memory.at(right()), right());
    EXPECT_GE(armci_notify(right()), round);
    int count = 0;
    armci_notify_wait(left(), &count);
    EXPECT_GE(count, round);
    EXPECT_GE(ARMCI_GetValueInt(memory.mine(), me()), round);
  }
}

}  // namespace
