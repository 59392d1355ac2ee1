// SPDX-License-Identifier: BSD-3-Clause

// Messages: handlers of any kind, and every call that sends.

#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "fixture.h"

using mobius_test::left_of;
using mobius_test::right_of;
using mobius_test::thrown;

namespace {

struct Insert {
  uint64_t key;
  int32_t place;
};
struct Empty {};

constexpr mob::Handler<Insert> kInsert(7);
constexpr mob::Handler<Empty> kPing(8);
constexpr mob::Handler<mob::Pointer<double>> kAnswer(MOB_MAX_HANDLERS - 1);
constexpr mob::Handler<int> kAsk(9);
constexpr mob::Handler<int> kReplaced(10);
constexpr mob::Handler<int> kNobody(11);

}  // namespace

TEST(Messages, GoToFunctionsWithPayloads) {
  const mob_rank_t me = mob_rank(), right = right_of(me);
  std::vector<double> received(4 * 20000);
  std::atomic<uint64_t> keys{0};
  std::atomic<int> source{-1};
  kInsert.set([&](const mob::Message<Insert>& message, mob_delivery_t& delivery) {
    keys += message.header.key;
    source = message.source;
    if (message.payload_bytes == 0) return;
    delivery.payload = received.data() + message.header.place * 20000;
  });
  mob::check(mob_barrier());

  std::vector<double> values(20000, me + 0.25);
  const double few[2] = {me + 0.5, me + 0.75};
  mob::Counter done;
  mob_notify_t notify{};
  notify.completion_counter = done.handle();
  kInsert.send(right, {1, 0});
  kInsert.send(right, {20, 0}, values, &notify);
  mob::Handle handle = kInsert.send_nb(right, {300, 1}, values, &notify);
  kInsert.send_nbi(right, {4000, 2}, few, &notify);
  kInsert.send(right, {50000, 3}, std::span<const int>(), &notify);
  handle.wait();
  done.wait(4);
  mob::check(mob_message_flush(right));
  mob::check(mob_barrier());
  EXPECT_EQ(keys.load(), 54321u);
  EXPECT_EQ(source.load(), left_of(me));
  EXPECT_EQ(received[19999], left_of(me) + 0.25);
  EXPECT_EQ(received[39999], left_of(me) + 0.25);
  EXPECT_EQ(received[40001], left_of(me) + 0.75);
  EXPECT_EQ(received[60000], 0.0);
  kInsert.set([](const mob::Message<Insert>&) {});  // does not refer to these variables any more
  mob::check(mob_barrier());
}

TEST(Messages, AreAnswered) {
  const mob_rank_t me = mob_rank(), right = right_of(me);
  const mob::Array<double> array(2);
  std::atomic<uint64_t> answers{0};
  std::atomic<double> payload{0};
  mob::Pointer<double> answered;
  kAsk.set([place = array.at(me)](const mob::Message<int>& message) {
    const double value[1] = {message.header * 2.0};
    kAnswer.reply(message.token, place + message.header, value);
    kPing.reply(message.token, {});
  });
  kAnswer.set([&](const mob::Message<mob::Pointer<double>>& message) {
    answered = message.header;
    double value = 0;
    if (message.payload != nullptr) std::memcpy(&value, message.payload, sizeof value);
    payload = value;
  });
  kPing.set([&](const mob::Message<Empty>&) { ++answers; });
  mob::check(mob_barrier());
  kAsk.send(right, 1);
  while (answers == 0) mob::check(mob_poll());
  EXPECT_EQ(answered, array.at(right, 1));
  EXPECT_EQ(payload.load(), 2.0);
  answered.put(5.5);
  mob::check(mob_barrier());
  EXPECT_EQ(array.local()[1], 5.5);
  mob::check(mob_flush_all());
  mob::check(mob_barrier());
}

TEST(Messages, FunctionsAreReplacedAndOwnTheirData) {
  const auto first = std::make_shared<std::atomic<int>>(0);
  const auto second = std::make_shared<std::atomic<int>>(0);
  kReplaced.set([first](const mob::Message<int>& message) { *first += message.header; });
  EXPECT_EQ(first.use_count(), 2);
  mob::check(mob_barrier());
  kReplaced.send(right_of(mob_rank()), 3);
  mob::check(mob_message_flush(right_of(mob_rank())));
  mob::check(mob_barrier());
  kReplaced.set([second, calls = 0](const mob::Message<int>& message) mutable {
    *second += message.header * ++calls;
  });
  EXPECT_EQ(first.use_count(), 2);  // kept: messages under way might need it
  mob::check(mob_barrier());
  kReplaced.send(right_of(mob_rank()), 10);
  kReplaced.send(right_of(mob_rank()), 10);
  mob::check(mob_message_flush(right_of(mob_rank())));
  mob::check(mob_barrier());
  EXPECT_EQ(first->load(), 3);
  EXPECT_EQ(second->load(), 30);
}

TEST(Messages, TellMistakes) {
  EXPECT_EQ(thrown([] { mob::Handler<int>(MOB_MAX_HANDLERS).set([](const mob::Message<int>&) {}); },
                   "mob_handler_register:"),
            MOB_ERR_ARGUMENT);
  EXPECT_EQ(thrown([] { kReplaced.send(mob_size(), 1); }, "mob_message_send:"), MOB_ERR_RANK);
  EXPECT_EQ(thrown([] { kNobody.send(mob_rank(), 1); }), MOB_ERR_HANDLE);
}
