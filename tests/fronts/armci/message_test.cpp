// SPDX-License-Identifier: BSD-3-Clause
#include <armcix.h>
#include <message.h>

#include <algorithm>
#include <string>

#include "fixture.h"

namespace {

using namespace armci_test;  // NOLINT(google-build-using-namespace)

char* op(const char* name) { return const_cast<char*>(name); }

TEST(Messages, TagsAndSizes) {
  for (const int bytes : {0, 1, 1000, 100000}) {
    std::vector<char> first(static_cast<size_t>(bytes), static_cast<char>(me()));
    std::vector<char> second(static_cast<size_t>(bytes) + 1, static_cast<char>(me() + 1));
    armci_msg_snd(1, first.data(), bytes, right());
    armci_msg_snd(2, second.data(), bytes + 1, right());
    std::vector<char> got(static_cast<size_t>(bytes) + 8);
    int length = -1;
    armci_msg_rcv(2, got.data(), bytes + 8, &length, left());  // out of order
    EXPECT_EQ(length, bytes + 1);
    EXPECT_EQ(std::count(got.begin(), got.end() - 7, static_cast<char>(left() + 1)), bytes + 1);
    armci_msg_rcv(1, got.data(), bytes, nullptr, left());
    EXPECT_GE(std::count(got.begin(), got.end(), static_cast<char>(left())), bytes);
  }
}

TEST(Messages, OrderAndAnyone) {
  constexpr int kEach = 20;
  if (me() != 0) {
    for (int i = 0; i < kEach; ++i) {
      int pair[] = {me(), i};
      armci_msg_snd(9, pair, sizeof pair, 0);
    }
  } else {
    std::vector<int> next(static_cast<size_t>(procs()));
    for (int i = 0; i < kEach * (procs() - 1); ++i) {
      int pair[2];
      const int from = armci_msg_rcvany(9, pair, sizeof pair, nullptr);
      EXPECT_EQ(pair[0], from);
      EXPECT_EQ(pair[1], next[static_cast<size_t>(from)]++);
    }
  }
  armci_msg_barrier();
  parmci_msg_barrier();
}

TEST(Collectives, Broadcasts) {
  for (int root = 0; root < procs(); ++root) {
    for (const int how : {0, 1, 2, 3}) {
      std::vector<int> data(5000, me() == root ? 3 + root : 0);
      const int bytes = static_cast<int>(data.size() * sizeof(int));
      ARMCI_Group world;
      ARMCI_Group_get_world(&world);
      if (how == 0) armci_msg_bcast(data.data(), bytes, root);
      if (how == 1) armci_msg_brdcst(data.data(), bytes, root);
      if (how == 2) armci_msg_bcast_scope(SCOPE_ALL, data.data(), bytes, root);
      if (how == 3) armci_msg_group_bcast_scope(SCOPE_ALL, data.data(), bytes, root, &world);
      EXPECT_EQ(std::count(data.begin(), data.end(), 3 + root), 5000);
    }
  }
  const int master = armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, -1, 0);
  int value = me();
  armci_msg_clus_brdcst(&value, sizeof value);
  EXPECT_EQ(value, master);
}

template <typename T, typename Call>
void expect_reductions(Call call) {
  const int n = procs();
  const struct {
    const char* name;
    double result;
  } cases[] = {{"+", n * (n + 1) / 2.0 * -1},
               {"max", -1.0},
               {"min", static_cast<double>(-n)},
               {"absmax", static_cast<double>(n)},
               {"absmin", 1.0}};
  for (const auto& c : cases) {
    std::vector<T> x(300, static_cast<T>(-(me() + 1)));
    call(x.data(), 300, op(c.name));
    for (const T& value : x) ASSERT_EQ(value, static_cast<T>(c.result)) << c.name;
  }
  std::vector<T> product(2, static_cast<T>(2));
  call(product.data(), 2, op("*"));
  EXPECT_EQ(product[1], static_cast<T>(1 << n));
}

template <typename T, typename Call>
void expect_logic(Call call) {
  const T bit = static_cast<T>(T{1} << me());
  const T all = static_cast<T>((T{1} << procs()) - 1);
  const struct {
    const char* name;
    T mine;
    T result;
  } cases[] = {{"or", bit, all},
               {"|", bit, all},
               {"bor", bit, all},
               {"&", all, all},
               {"band", bit, procs() == 1 ? bit : 0},
               {"&&", bit, 1},
               {"land", me() == 0 ? T{0} : bit, 0},
               {"||", me() == 0 ? bit : T{0}, 1},
               {"lor", 0, 0}};
  for (const auto& c : cases) {
    T x = c.mine;
    call(&x, 1, op(c.name));
    EXPECT_EQ(x, c.result) << c.name;
  }
}

TEST(Collectives, Reductions) {
  ARMCI_Group world;
  ARMCI_Group_get_world(&world);
  expect_reductions<int>(armci_msg_igop);
  expect_reductions<long>(armci_msg_lgop);
  expect_reductions<long long>(armci_msg_llgop);
  expect_reductions<float>(armci_msg_fgop);
  expect_reductions<double>(armci_msg_dgop);
  expect_reductions<int>([&](int* x, int n, char* o) { armci_msg_group_igop(x, n, o, &world); });
  expect_reductions<long>([&](long* x, int n, char* o) { armci_msg_group_lgop(x, n, o, &world); });
  expect_reductions<long long>(
      [&](long long* x, int n, char* o) { armci_msg_group_llgop(x, n, o, &world); });
  expect_reductions<float>(
      [&](float* x, int n, char* o) { armci_msg_group_fgop(x, n, o, &world); });
  expect_reductions<double>(
      [&](double* x, int n, char* o) { armci_msg_group_dgop(x, n, o, &world); });
  expect_reductions<double>(
      [&](double* x, int n, char* o) { armci_msg_gop_scope(SCOPE_ALL, x, n, o, ARMCI_DOUBLE); });
  expect_logic<int>(armci_msg_igop);
  expect_logic<long>(armci_msg_lgop);
}

TEST(Collectives, ReductionsOfTheNodeAndToOne) {
  int count = 1;
  armci_msg_clus_igop(&count, 1, op("+"));
  EXPECT_EQ(count, armci_domain_nprocs(ARMCI_DOMAIN_SMP, -1));
  long l = 2;
  armci_msg_clus_lgop(&l, 1, op("max"));
  long long ll = 3;
  armci_msg_clus_llgop(&ll, 1, op("max"));
  float f = 4;
  armci_msg_clus_fgop(&f, 1, op("max"));
  double d = 5;
  armci_msg_clus_dgop(&d, 1, op("max"));
  EXPECT_EQ(static_cast<double>(l + ll) + static_cast<double>(f) + d, 14);
  int sum = me() + 1;
  armci_msg_reduce(&sum, 1, op("+"), ARMCI_INT);
  if (me() == 0) {
    EXPECT_EQ(sum, procs() * (procs() + 1) / 2);
  }
  sum = 1;
  armci_msg_reduce_scope(SCOPE_NODE, &sum, 1, op("+"), ARMCI_INT);
  const int master = armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, -1, 0);
  if (me() == master) {
    EXPECT_EQ(sum, count);
    int masters = 1;
    armci_msg_gop_scope(SCOPE_MASTERS, &masters, 1, op("+"), ARMCI_INT);
    EXPECT_EQ(masters, armci_domain_count(ARMCI_DOMAIN_SMP));
  }
}

TEST(Collectives, Selection) {
  struct Record {
    double value;
    int who;
  };
  Record record{static_cast<double>(me() % 3), me()};
  Record chosen = record;
  armci_msg_sel(&chosen, sizeof chosen, op("max"), ARMCI_DOUBLE, 1);
  EXPECT_EQ(chosen.who, std::min(procs() - 1, 2));
  chosen = record;
  // All but process 0 contribute, if there are others.
  armci_msg_sel_scope(SCOPE_ALL, &chosen, sizeof chosen, op("min"), ARMCI_DOUBLE,
                      me() > 0 || procs() == 1);
  EXPECT_EQ(chosen.who, procs() == 1 ? 0 : procs() > 3 ? 3 : 1);
  chosen = record;
  armci_msg_sel(&chosen, sizeof chosen, op("min"), ARMCI_DOUBLE, 0);
  EXPECT_EQ(chosen.who, me());  // no process did
}

TEST(Collectives, TreesReachEverybodyOnce) {
  int root;
  int up;
  int left_child;
  int right_child;
  armci_msg_bintree(SCOPE_ALL, &root, &up, &left_child, &right_child);
  EXPECT_EQ(root, 0);
  EXPECT_EQ(up == -1, me() == 0);
  int children = (left_child >= 0 ? 1 : 0) + (right_child >= 0 ? 1 : 0);
  armci_msg_igop(&children, 1, op("+"));
  EXPECT_EQ(children, procs() - 1);
  armci_msg_bintree(SCOPE_NODE, &root, &up, &left_child, &right_child);
  EXPECT_EQ(root, armci_domain_glob_proc_id(ARMCI_DOMAIN_SMP, -1, 0));
  armci_msg_bintree(SCOPE_MASTERS, &root, &up, &left_child, &right_child);
  EXPECT_EQ(root, 0);
}

TEST(Groups, HalvesAndTheirMemory) {
  std::vector<int> list;  // the even ranks, in descending order
  for (int proc = (procs() - 1) / 2 * 2; proc >= 0; proc -= 2) list.push_back(proc);
  const int size = static_cast<int>(list.size());
  ARMCI_Group group;
  ARMCI_Group_create(size, list.data(), &group);
  int rank = -2;
  const int result = ARMCI_Group_rank(&group, &rank);
  if (me() % 2 != 0) {
    EXPECT_NE(result, 0);
    EXPECT_EQ(rank, -1);
    ARMCI_Group_free(&group);
    armci_msg_barrier();
    return;
  }
  EXPECT_EQ(result, 0);
  EXPECT_EQ(list[static_cast<size_t>(rank)], me());
  int members = 0;
  ARMCI_Group_size(&group, &members);
  EXPECT_EQ(members, size);
  EXPECT_EQ(ARMCI_Absolute_id(&group, rank), me());
  const ARMCI_Group copy = group;
  ARMCI_Group same = copy;
  std::vector<void*> parts(static_cast<size_t>(size));
  ASSERT_EQ(ARMCI_Malloc_group(parts.data(), 64, &same), 0);
  const int next = (rank + 1) % size;
  ARMCI_PutValueInt(rank + 5, parts[static_cast<size_t>(next)], ARMCI_Absolute_id(&group, next));
  ARMCI_GroupFence(&group);
  armci_msg_group_barrier(&group);
  parmci_msg_group_barrier(&group);
  EXPECT_EQ(*static_cast<int*>(parts[static_cast<size_t>(rank)]), (rank + size - 1) % size + 5);
  EXPECT_EQ(ARMCI_Uses_shm_grp(&group), ARMCI_Uses_shm());
  int sum = 1;
  armci_msg_group_gop_scope(SCOPE_ALL, &sum, 1, op("+"), ARMCI_INT, &group);
  EXPECT_EQ(sum, size);
  std::vector<void*> addresses(static_cast<size_t>(size));
  addresses[static_cast<size_t>(rank)] = &sum;
  armci_exchange_address_grp(addresses.data(), size, &group);
  EXPECT_EQ(addresses[static_cast<size_t>(rank)], &sum);
  // A child of the group, made from the default.
  ARMCI_Group_set_default(&group);
  ARMCI_Group now;
  ARMCI_Group_get_default(&now);
  int now_size = 0;
  ARMCI_Group_size(&now, &now_size);
  EXPECT_EQ(now_size, size);
  int first = 0;
  ARMCI_Group child;
  ARMCI_Group_create(1, &first, &child);
  EXPECT_EQ(ARMCI_Group_rank(&child, &rank) == 0, me() == list[0]);
  ARMCI_Group_free(&child);
  ARMCI_Group world;
  ARMCI_Group_get_world(&world);
  ARMCI_Group_set_default(&world);
  std::vector<void*> more(static_cast<size_t>(size));
  ASSERT_EQ(ARMCI_Malloc_group_memdev(more.data(), 8, &group, "x"), 0);
  ARMCI_Group_rank(&group, &rank);
  EXPECT_EQ(ARMCI_Free_group(more[static_cast<size_t>(rank)], &group), 0);
  EXPECT_EQ(ARMCI_Free_group(parts[static_cast<size_t>(rank)], &group), 0);
  ARMCI_Group_free(&group);
  armci_msg_barrier();
}

TEST(Groups, NobodyIsAGroupToo) {
  ARMCI_Group world;
  ARMCI_Group group;
  ARMCI_Group_get_world(&world);
  ARMCI_Group_create_child(0, nullptr, &group, &world);
  int rank = 0;
  EXPECT_NE(ARMCI_Group_rank(&group, &rank), 0);
  int size = -1;
  ARMCI_Group_size(&group, &size);
  EXPECT_EQ(size, 0);
  ARMCI_Group_free(&group);
}

TEST(Extensions, SplitDuplicatesAndMutexes) {
  ARMCI_Group world;
  ARMCI_Group_get_world(&world);
  ARMCI_Group half;
  ASSERT_EQ(ARMCIX_Group_split(&world, me() % 2, -me(), &half), 0);
  int size = 0;
  int rank = -1;
  ARMCI_Group_size(&half, &size);
  EXPECT_EQ(size, (procs() + 1 - me() % 2) / 2);
  EXPECT_EQ(ARMCI_Group_rank(&half, &rank), 0);
  EXPECT_EQ(ARMCI_Absolute_id(&half, rank), me());
  EXPECT_LT(ARMCI_Absolute_id(&half, size - 1), 2);  // ordered by key
  ARMCI_Group again;
  ASSERT_EQ(ARMCIX_Group_dup(&half, &again), 0);
  armcix_mutex_hdl_t mutexes = ARMCIX_Create_mutexes_hdl(2, &again);
  ASSERT_NE(mutexes, nullptr);
  const int host = ARMCI_Absolute_id(&again, 0);
  ARMCIX_Lock_hdl(mutexes, 1, host);
  ARMCIX_Unlock_hdl(mutexes, 1, host);
  while (ARMCIX_Trylock_hdl(mutexes, 1, host) != 0) ARMCIX_Progress();
  ARMCIX_Unlock_hdl(mutexes, 1, host);
  armci_msg_group_barrier(&again);
  EXPECT_EQ(ARMCIX_Destroy_mutexes_hdl(mutexes), 0);
  ARMCI_Group_free(&again);
  ARMCI_Group_free(&half);
}

TEST(Time, GoesOn) {
  const double before = armci_timer();
  double after = armci_timer();
  while (after <= before) after = armci_timer();
  EXPECT_GT(after, before);
}

}  // namespace
