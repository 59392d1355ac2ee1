// SPDX-License-Identifier: BSD-3-Clause
#include "job/bootstrap/join_by_directory.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "job/bootstrap/segment_server.h"
#include "job/control.h"

namespace mobius::job {
namespace {

using Bytes = std::vector<unsigned char>;

// The addresses that the processes of a job, which are threads here, have published.
class Table {
 public:
  explicit Table(mob_rank_t size) : barrier_(size) {}

  std::mutex mutex;
  std::map<std::pair<mob_rank_t, std::string>, Bytes> values;

  void wait() { barrier_.arrive_and_wait(); }
  void drop() { barrier_.arrive_and_drop(); }

 private:
  std::barrier<> barrier_;
};

// `change` may falsify a value on its way to a reader.
class TestDirectory final : public Directory {
 public:
  using Change =
      std::function<void(mob_rank_t reader, mob_rank_t rank, const std::string&, Bytes&)>;

  TestDirectory(Table& table, mob_rank_t rank, Change change)
      : table_(table), rank_(rank), change_(std::move(change)) {}

  mob_status_t publish(std::string_view key, std::span<const unsigned char> value) override {
    const std::lock_guard lock(table_.mutex);
    table_.values[{rank_, std::string(key)}] = Bytes(value.begin(), value.end());
    return MOB_OK;
  }
  mob_status_t fence() override {
    table_.wait();
    return MOB_OK;
  }
  mob_status_t fetch(mob_rank_t rank, std::string_view key, Bytes* value) override {
    const std::lock_guard lock(table_.mutex);
    const auto found = table_.values.find({rank, std::string(key)});
    if (found == table_.values.end()) return base::fail(MOB_ERR_PEER, "not there");
    *value = found->second;
    if (change_) change_(rank_, rank, std::string(key), *value);
    return MOB_OK;
  }
  bool is_dead(mob_rank_t /*rank*/) override { return false; }
  bool has_left(mob_rank_t /*rank*/) override { return false; }
  void leave() override {}

 private:
  Table& table_;
  const mob_rank_t rank_;
  const Change change_;
};

struct Outcome {
  mob_status_t status = MOB_OK;
  std::string error;
  Membership membership;
  ino_t segment = 0;
  std::vector<uint32_t> places;  // contents of the segment of a job on several hosts
};

void read_places(mob_rank_t size, Outcome* outcome) {
  struct stat information{};
  ASSERT_EQ(fstat(outcome->membership.segment, &information), 0);
  outcome->segment = information.st_ino;
  ControlBlock* block = nullptr;
  ASSERT_EQ(control_map(outcome->membership.segment, &block), MOB_OK) << mob_last_error();
  EXPECT_EQ(block->header.job_size, size);
  if (block->header.hosts > 1) {
    outcome->places.assign(block->places(), block->places() + size);
  }
  control_unmap(block);
  close(outcome->membership.segment);
}

std::vector<Outcome> join_all(mob_rank_t size, const TestDirectory::Change& change = {},
                              unsigned limit_s = 60) {
  Table table(size);
  std::vector<mob_rank_t> neighbours(static_cast<size_t>(size));
  std::iota(neighbours.begin(), neighbours.end(), 0);
  std::vector<Outcome> outcomes(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (mob_rank_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      Outcome& outcome = outcomes[static_cast<size_t>(rank)];
      TestDirectory directory(table, rank, change);
      outcome.status =
          join_by_directory(directory, {rank, size, neighbours, limit_s}, &outcome.membership);
      if (outcome.status != MOB_OK) {
        outcome.error = mob_last_error();
        table.drop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Outcome& outcome : outcomes) {
    if (outcome.status == MOB_OK) read_places(size, &outcome);
  }
  return outcomes;
}

void expect_hosts(const std::vector<Outcome>& outcomes, const std::vector<int32_t>& hosts) {
  const Layout layout(hosts);
  std::map<int32_t, ino_t> segments;
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    const Outcome& outcome = outcomes[rank];
    ASSERT_EQ(outcome.status, MOB_OK) << outcome.error;
    EXPECT_TRUE(outcome.membership.pid_is_shared);
    EXPECT_EQ(outcome.membership.secret, outcomes[0].membership.secret);
    EXPECT_NE(outcome.membership.secret, Secret{});
    const auto [known, is_new] = segments.emplace(hosts[rank], outcome.segment);
    EXPECT_EQ(known->second, outcome.segment) << rank;
    if (layout.hosts() > 1) {
      EXPECT_EQ(outcome.places, layout.encoded()) << rank;
    }
  }
  for (const auto& [host, segment] : segments) {
    for (const auto& [other, another] : segments) EXPECT_EQ(host == other, segment == another);
  }
}

// Makes the two processes look as if they were on different hosts: a contact begins with a version
// and the boot id, and ends with the address.
void make_other_kernel(Bytes& contact) { contact[8] ^= 1; }
void make_unreachable(Bytes& contact) { contact.back() ^= 1; }

TEST(JoinByDirectory, OfOne) { expect_hosts(join_all(1), {0}); }

TEST(JoinByDirectory, OfOneHost) { expect_hosts(join_all(9), std::vector<int32_t>(9, 0)); }

TEST(JoinByDirectory, OfTwoKernels) {
  const auto change = [](mob_rank_t reader, mob_rank_t rank, const std::string& key, Bytes& value) {
    if (key == "contact" && (reader + rank) % 2 != 0) make_other_kernel(value);
  };
  expect_hosts(join_all(5, change), {0, 1, 0, 1, 0});
}

TEST(JoinByDirectory, OfContainersThatCannotReachEachOther) {
  const auto change = [](mob_rank_t reader, mob_rank_t rank, const std::string& key, Bytes& value) {
    if (key == "contact" && reader / 2 != rank / 2) make_unreachable(value);
  };
  expect_hosts(join_all(6, change), {0, 0, 1, 1, 2, 2});
}

// Rank 1 reaches 0, but 2 reaches only 1, which is not the first of its host.
TEST(JoinByDirectory, WhereReachIsNotTransitive) {
  const auto change = [](mob_rank_t reader, mob_rank_t rank, const std::string& key, Bytes& value) {
    if (key == "contact" && reader == 2 && rank == 0) make_unreachable(value);
  };
  expect_hosts(join_all(4, change), {0, 0, 1, 0});
}

TEST(JoinByDirectory, AnotherSecretIsNotLetIn) {
  const auto change = [](mob_rank_t reader, mob_rank_t rank, const std::string& key, Bytes& value) {
    if (key == "secret" && reader == 1) value[static_cast<size_t>(rank)] ^= 1;
  };
  const std::vector<Outcome> outcomes = join_all(3, change);
  ASSERT_EQ(outcomes[1].status, MOB_OK);
  EXPECT_EQ(outcomes[0].segment, outcomes[2].segment);
  EXPECT_NE(outcomes[0].segment, outcomes[1].segment);
}

TEST(JoinByDirectory, AnotherVersionIsAnError) {
  const auto change = [](mob_rank_t reader, mob_rank_t, const std::string& key, Bytes& value) {
    if (key == "contact" && reader == 1) value.pop_back();
  };
  const std::vector<Outcome> outcomes = join_all(2, change);
  EXPECT_EQ(outcomes[1].status, MOB_ERR_SYSTEM);
  EXPECT_NE(outcomes[1].error.find("same libmobius"), std::string::npos) << outcomes[1].error;
}

TEST(JoinByDirectory, OfTooMany) {
  Table table(1);
  TestDirectory directory(table, 0, {});
  Membership membership;
  EXPECT_EQ(join_by_directory(directory, {0, kMostRanks + 1, {}, 1}, &membership),
            MOB_ERR_ARGUMENT);
}

// The server of rank 0 in a job of three, before start().
class SegmentServerListens : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(make_secret(&secret_), MOB_OK);
    ASSERT_EQ(server_.open(), MOB_OK);
  }

  JoinOutcome come(mob_rank_t rank, const Secret& secret, Connection* connection) {
    return join_segment_server(server_.address(), secret, 0, rank, 60, connection);
  }
  // Connects and sends nothing.
  int connect_silently() {
    std::string name(1, '\0');
    name += "mobius-host-";
    for (const unsigned char byte : server_.address()) {
      constexpr const char* kDigits = "0123456789abcdef";
      name += kDigits[byte >> 4];
      name += kDigits[byte & 15];
    }
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    const int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(connect(descriptor, reinterpret_cast<const sockaddr*>(&address), length), 0);
    return descriptor;
  }
  // Whether the other side closes the connection, after its challenge or without one.
  static bool is_dropped(int descriptor) {
    char message[200];
    ssize_t got = 0;
    while ((got = recv(descriptor, message, sizeof message, 0)) > 0) {
    }
    return got == 0 || errno == ECONNRESET;
  }

  Secret secret_{};
  SegmentServer server_;
};

// The same after start().
class SegmentServerServes : public SegmentServerListens {
 protected:
  void SetUp() override {
    SegmentServerListens::SetUp();
    ASSERT_EQ(server_.start(secret_, 0, 3), MOB_OK);
  }
};

TEST_F(SegmentServerListens, AClientThatConnectedBeforeManyOthersIsHeard) {
  Connection connection;
  JoinOutcome outcome = JoinOutcome::kFailed;
  std::thread client([&] { outcome = come(1, secret_, &connection); });
  // Nothing tells when the client has connected and sent its hello; if it has not, it is admitted
  // later.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::vector<int> silent;
  for (int i = 0; i < 240; ++i) silent.push_back(connect_silently());
  ASSERT_EQ(server_.start(secret_, 0, 3), MOB_OK);
  client.join();
  EXPECT_EQ(outcome, JoinOutcome::kJoined) << mob_last_error();
  for (const int descriptor : silent) close(descriptor);
}

TEST_F(SegmentServerServes, AdmitsProcessesThatKnowTheSecret) {
  Connection connection;
  ASSERT_EQ(come(2, secret_, &connection), JoinOutcome::kJoined) << mob_last_error();
  const std::vector<SegmentClient> clients = server_.stop();
  ASSERT_EQ(clients.size(), 1u);
  EXPECT_EQ(clients[0].rank, 2);
  EXPECT_TRUE(clients[0].knows_our_pid);
  EXPECT_TRUE(clients[0].pid_is_known);
  const int segment = dup(0);
  ASSERT_EQ(send_segment(clients[0], {segment, true}), MOB_OK);
  SegmentOffer offer;
  ASSERT_EQ(receive_segment(connection, 0, 60, &offer), MOB_OK) << mob_last_error();
  EXPECT_TRUE(offer.pid_is_shared);
  EXPECT_NE(offer.segment, segment);
  close(segment);
  close(offer.segment);
}

TEST_F(SegmentServerServes, RefusesOthers) {
  Secret wrong = secret_;
  wrong[15] ^= 1;
  Connection connection;
  EXPECT_EQ(come(1, wrong, &connection), JoinOutcome::kNobodyThere);
  EXPECT_EQ(come(0, secret_, &connection), JoinOutcome::kNobodyThere)
      << "the rank of the host itself";
  EXPECT_EQ(come(3, secret_, &connection), JoinOutcome::kNobodyThere) << "not in the job";
  EXPECT_EQ(come(-1, secret_, &connection), JoinOutcome::kNobodyThere);
  EXPECT_EQ(come(1, secret_, &connection), JoinOutcome::kJoined);
  Connection again;
  EXPECT_EQ(come(1, secret_, &again), JoinOutcome::kNobodyThere) << "taken";
  EXPECT_EQ(server_.stop().size(), 1u);
}

TEST_F(SegmentServerServes, GarbageIsDropped) {
  for (const size_t bytes : {size_t{1}, size_t{143}, size_t{144}, size_t{145}, size_t{5000}}) {
    const int connection = connect_silently();
    const std::string garbage(bytes, 'x');
    ASSERT_EQ(send(connection, garbage.data(), bytes, 0), static_cast<ssize_t>(bytes));
    EXPECT_TRUE(is_dropped(connection)) << bytes;
    close(connection);
  }
  Connection connection;
  EXPECT_EQ(come(1, secret_, &connection), JoinOutcome::kJoined);
}

TEST_F(SegmentServerServes, SilentConnectionsKeepNobodyOut) {
  std::vector<int> silent;
  for (int i = 0; i < 600; ++i) silent.push_back(connect_silently());
  Connection connection;
  EXPECT_EQ(come(1, secret_, &connection), JoinOutcome::kJoined);
  EXPECT_TRUE(is_dropped(silent[0]));
  for (const int descriptor : silent) close(descriptor);
  EXPECT_EQ(server_.stop().size(), 1u);
}

TEST_F(SegmentServerServes, NobodyIsThereOnceItIsClosed) {
  server_.close();
  Connection connection;
  EXPECT_EQ(come(1, secret_, &connection), JoinOutcome::kNobodyThere);
}

TEST_F(SegmentServerServes, ARefusedClientIsToldWhy) {
  Connection connection;
  ASSERT_EQ(come(1, secret_, &connection), JoinOutcome::kJoined);
  const std::vector<SegmentClient> clients = server_.stop();
  send_refusal(clients[0], std::string(300, 'x').replace(0, 9, "no memory").c_str());
  SegmentOffer offer;
  EXPECT_EQ(receive_segment(connection, 0, 60, &offer), MOB_ERR_PEER);
  EXPECT_NE(std::string(mob_last_error()).find("rank 0, the first of this host: no memory"),
            std::string::npos)
      << mob_last_error();
}

TEST_F(SegmentServerServes, ClientsAreToldWhenItDies) {
  Connection connection;
  ASSERT_EQ(come(1, secret_, &connection), JoinOutcome::kJoined);
  {
    const std::vector<SegmentClient> forgotten = server_.stop();
  }
  SegmentOffer offer;
  EXPECT_EQ(receive_segment(connection, 0, 60, &offer), MOB_ERR_PEER);
  EXPECT_NE(std::string(mob_last_error()).find("has died"), std::string::npos);
}

TEST(SegmentServer, AClientWaitsForASilentServerWithinItsLimit) {
  Secret secret;
  ASSERT_EQ(make_secret(&secret), MOB_OK);
  SegmentServer stopped;  // listens, but never starts
  ASSERT_EQ(stopped.open(), MOB_OK);
  Connection connection;
  EXPECT_EQ(join_segment_server(stopped.address(), secret, 7, 8, 1, &connection),
            JoinOutcome::kFailed);
  const std::string text = mob_last_error();
  EXPECT_NE(text.find("rank 7"), std::string::npos) << text;
  EXPECT_NE(text.find("MOBIUS_JOIN_SECONDS"), std::string::npos) << text;
}

}  // namespace
}  // namespace mobius::job
