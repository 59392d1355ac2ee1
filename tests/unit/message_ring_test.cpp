// SPDX-License-Identifier: BSD-3-Clause

// The two ends of a ring of messages, without a job: MessageSender writes, MessageReceiver runs
// handlers.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/common/instrumentation.h"
#include "engine/message/message.h"
#include "engine/message/message_receiver.h"
#include "engine/message/message_sender.h"
#include "engine/message/message_services.h"
#include "engine/message/receive_inline.h"
#include "engine/message/send_inline.h"
#include "engine/progress/request_activity.h"
#include "engine/segment/kernel_copy.h"
#include "fake_job.h"

namespace mobius::engine {
namespace {

constexpr unsigned kHandler = 5;
using Text = std::pair<std::string, std::string>;  // header and payload

class MessageEnds : public testing::Test {
 protected:
  MessageEnds() : ring_(static_cast<MessageRing*>(std::aligned_alloc(4096, kMessageRingBytes))) {
    std::memset(static_cast<void*>(ring_.get()), 0, kMessageRingBytes);
    give_memory(segment_, 1);
    // The receiver has a handler, and says so in its inbox.
    segment_.own_process().inbox.handlers[0].store(uint64_t{1} << kHandler);
    handlers_.set(kHandler, {&MessageEnds::note, this});
    sender_ = std::make_unique<MessageSender>(services_, 0, *ring_, 0, boxes_with_queue_);
    receiver_ = std::make_unique<MessageReceiver>(services_, handlers_, *ring_);
  }

  static Outgoing message(const Text& text) {
    Outgoing made;
    made.id = kHandler;
    made.header = text.first.data();
    made.header_bytes = text.first.size();
    made.payload = text.second.data();
    made.payload_bytes = text.second.size();
    return made;
  }

  // Handles all that is there.
  void receive() {
    for (bool more = true; more;) {
      more = false;
      receiver_->drain(&more);
    }
  }

  std::vector<Text> received_;
  MessageSender& sender() { return *sender_; }
  std::atomic<uint32_t>& boxes_with_queue() { return boxes_with_queue_; }

 private:
  struct Free {
    void operator()(MessageRing* ring) const { std::free(ring); }
  };

  // Takes the payload into memory of its own, and notes the message when it is there.
  static void note(const mob_message_t* message, void* self, mob_delivery_t* delivery) {
    auto& ring = *static_cast<MessageEnds*>(self);
    ring.received_.emplace_back(
        std::string(static_cast<const char*>(message->header), message->header_bytes),
        std::string(message->payload_bytes, '-'));
    delivery->payload = ring.received_.back().second.data();
  }

  FakeReports reports_;
  NothingRemapped remapped_;
  Peers peers_{reports_};
  Segment segment_{peers_, remapped_};
  FakeWaiter waiter_{peers_, segment_};
  KernelCopy kernel_copy_{peers_};
  Instrumentation instrumentation_;
  RequestActivity request_activity_;
  Messages messages_{{peers_, segment_, waiter_, untouched<Completion>(), untouched<Counters>(),
                      untouched<Progress>(), untouched<Network>(), kernel_copy_, instrumentation_,
                      request_activity_, messages_}};
  const MessageServices services_{peers_,
                                  segment_,
                                  waiter_,
                                  untouched<Completion>(),
                                  untouched<Counters>(),
                                  untouched<Progress>(),
                                  untouched<Network>(),
                                  kernel_copy_,
                                  instrumentation_,
                                  request_activity_,
                                  messages_};
  HandlerTable handlers_;
  std::unique_ptr<MessageRing, Free> ring_;
  std::atomic<uint32_t> boxes_with_queue_ = 0;
  std::unique_ptr<MessageSender> sender_;
  std::unique_ptr<MessageReceiver> receiver_;
};

TEST_F(MessageEnds, MessagesOfAllShapesArriveInOrder) {
  std::mt19937 random(11);
  std::vector<Text> sent;
  for (int i = 0; i < 400; ++i) {
    sent.emplace_back(std::string(random() % 200, static_cast<char>('a' + i % 26)),
                      std::string(random() % 900, static_cast<char>('A' + i % 26)));
    ASSERT_TRUE(sender().send_now(message(sent.back()))) << i;
    if (i % 7 == 0) receive();
  }
  receive();
  EXPECT_EQ(received_, sent);
}

TEST_F(MessageEnds, AFullRingTakesNothingUntilTheReceiverMadeRoom) {
  const Text text("header", std::string(3000, 'p'));
  size_t fit = 0;
  while (sender().send_now(message(text))) ++fit;
  EXPECT_GT(fit, 10u);
  EXPECT_LE(fit * 3000, kRingCapacity);
  receive();
  EXPECT_EQ(received_.size(), fit);
  EXPECT_TRUE(sender().send_now(message(text)));
  receive();
  EXPECT_EQ(received_.size(), fit + 1);
  EXPECT_EQ(received_.back(), text);
}

TEST_F(MessageEnds, PostedMessagesWaitInAQueueAndKeepTheirOrder) {
  std::vector<Text> sent;
  while (boxes_with_queue().load() == 0) {
    sent.emplace_back("header " + std::to_string(sent.size()), std::string(2000, 'q'));
    ASSERT_EQ(sender().post(message(sent.back())), MOB_OK);
  }
  // Behind the queue, and copied: the caller's memory may change.
  for (int i = 0; i < 5; ++i) {
    sent.emplace_back("behind " + std::to_string(i), std::string(100, 'r'));
    Text copy = sent.back();
    ASSERT_EQ(sender().post(message(copy)), MOB_OK);
    copy.second.assign(100, 'x');
  }
  for (int turn = 0; turn < 100 && boxes_with_queue().load() != 0; ++turn) {
    receive();
    sender().pump();
  }
  receive();
  EXPECT_EQ(boxes_with_queue().load(), 0u);
  EXPECT_EQ(received_, sent);
}

TEST_F(MessageEnds, APayloadLargerThanTheRingFlowsThroughIt) {
  const Text text("large", std::string(3 * kRingCapacity, 'l'));
  std::atomic<bool> sent = false;
  std::thread other([&] {
    EXPECT_EQ(sender().send(message(text)), MOB_OK);
    sent.store(true);
  });
  while (!sent.load()) receive();
  other.join();
  receive();
  ASSERT_EQ(received_.size(), 1u);
  EXPECT_EQ(received_.front(), text);
}

}  // namespace
}  // namespace mobius::engine
