// Tests that every implementation of Store must pass. Each test runs against all implementations,
// with several handles if the implementation has handles.
#include <unistd.h>

#include <array>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/soon.h"
#include "peal/net/socket.h"
#include "peal/store/file_store.h"
#include "peal/store/memory_store.h"
#include "peal/store/prefix_store.h"
#include "peal/store/sealed_store.h"
#include "peal/store/store.h"
#include "peal/store/table.h"
#include "peal/store/tcp_store.h"
#include "peal/store/tcp_store_server.h"

namespace peal::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kHandles = 3;
using Handles = std::vector<std::shared_ptr<Store>>;

struct Implementation {
  std::string name;
  std::function<Handles()> open;  // kHandles of one new, empty store
  Bytes largest = kMaxValue;
  friend void PrintTo(const Implementation& self, std::ostream* out) { *out << self.name; }
};

Handles open_memory() { return Handles(kHandles, make_memory_store()); }

struct Hosted {
  explicit Hosted(LinkProtection protection)
      : context{Secret("hush"), "job", "store", protection}, server(listeners(), context) {}

  static std::vector<Fd> listeners() {
    std::vector<Fd> one;
    one.push_back(net::listen_on(net::Address::parse("127.0.0.1:0")));
    return one;
  }

  net::ProofContext context;
  TcpStoreServer server;
};

Handles open_tcp(LinkProtection protection) {
  const auto hosted = std::make_shared<Hosted>(protection);
  Handles handles;
  for (std::size_t i = 0; i < kHandles; ++i) {
    auto client =
        connect_tcp_store({hosted->server.address()}, hosted->context, seconds(20), soon());
    handles.emplace_back(client.release(), [hosted](Store* store) { delete store; });
  }
  return handles;
}

Handles open_prefix() {
  Handles handles = open_tcp(LinkProtection::kPlain);
  handles.front()->set("key", "of another user");
  for (auto& handle : handles) handle = make_prefix_store(handle, "mine");
  return handles;
}

Handles open_sealed() {
  Handles handles = open_tcp(LinkProtection::kPlain);
  for (auto& handle : handles) handle = make_sealed_store(handle, Secret("a secret"), seconds(20));
  return handles;
}

Handles open_plain() { return open_tcp(LinkProtection::kPlain); }
Handles open_checked() { return open_tcp(LinkProtection::kChecked); }
Handles open_encrypted() { return open_tcp(LinkProtection::kEncrypted); }

Handles open_file() {
  static int count = 0;
  const std::string path = ::testing::TempDir() + "peal-store-conformance-" +
                           std::to_string(::getpid()) + "-" + std::to_string(count++);
  Handles handles;
  for (std::size_t i = 0; i < kHandles; ++i) {
    handles.push_back(open_file_store(path, {.members = kHandles}, soon()));
  }
  return handles;
}

class StoreConformanceTest : public ::testing::TestWithParam<Implementation> {
 protected:
  Handles handles_ = GetParam().open();
  Store& a_ = *handles_[0];
  Store& b_ = *handles_[1];
};

TEST_P(StoreConformanceTest, TryGetAllReturnsTheValuesOfTheKeysThatExist) {
  a_.set("one", "1");
  a_.set("empty", "");
  const std::vector<std::optional<std::string>> expected = {std::nullopt, "1", "", "1"};
  EXPECT_EQ(b_.try_get_all({"none", "one", "empty", "one"}), expected);
  EXPECT_EQ(b_.try_get_all({}), std::vector<std::optional<std::string>>());
  EXPECT_EQ(b_.try_get_all({"none"}), std::vector<std::optional<std::string>>(1));
}

TEST_P(StoreConformanceTest, GetReturnsAValueThatAnotherHandleSet) {
  a_.set("key", "value");
  EXPECT_EQ(b_.get("key", soon()), "value");
  b_.set("key", "another");
  EXPECT_EQ(a_.get("key", soon()), "another");
  EXPECT_EQ(a_.try_get("key"), "another");
}

TEST_P(StoreConformanceTest, TryGetReturnsNothingForAMissingKey) {
  EXPECT_EQ(a_.try_get("key"), std::nullopt);
  a_.set("key", "");
  EXPECT_EQ(b_.try_get("key"), "");
}

TEST_P(StoreConformanceTest, ALastWillIsCarriedOutWhenItsHandleIsDestroyed) {
  a_.set_will("will", "a has gone");
  a_.set_will("kept", "a has gone");
  a_.set_will("empty", "a has gone");
  EXPECT_EQ(b_.try_get("will"), std::nullopt);
  b_.set("kept", "promise");
  b_.set("empty", "");
  if (handles_[0] == handles_[1]) return;  // one object for all: it ends with the process
  auto waiting = std::async(std::launch::async, [&] { return b_.get("will", soon()); });
  handles_[0].reset();
  EXPECT_EQ(waiting.get(), "a has gone");
  EXPECT_EQ(b_.get("kept", soon()), "promise");
  EXPECT_EQ(b_.get("empty", soon()), "");
}

TEST_P(StoreConformanceTest, KeysAndValuesAreBytes) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  a_.set(all, all + all);
  EXPECT_EQ(b_.get(all, soon()), all + all);
  a_.set("", "the empty key is a key");
  EXPECT_EQ(b_.get("", soon()), "the empty key is a key");
}

TEST_P(StoreConformanceTest, ValuesMayBeLarge) {
  std::string large(static_cast<std::size_t>(GetParam().largest.value), '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31 + i / 257);
  a_.set("large", large);
  EXPECT_TRUE(b_.get("large", soon()) == large);
}

TEST_P(StoreConformanceTest, TooLongKeysAndValuesAreUsageErrorsAndChangeNothing) {
  const std::string key(static_cast<std::size_t>(kMaxKey.value) + 1, 'k');
  const std::string value(static_cast<std::size_t>(kMaxValue.value) + 1, 'v');
  for (const Error& error : {error_of([&] { a_.set(key, "value"); }),
                             error_of([&] { a_.set("key", value); }),
                             error_of([&] { a_.try_get(key); }),
                             error_of([&] { a_.get(key, soon()); }),
                             error_of([&] { a_.add(key, 1); }),
                             error_of([&] { a_.compare_set(key, "", "x"); }),
                             error_of([&] { a_.compare_set("key", "", value); }),
                             error_of([&] {
                               a_.wait({"key", key}, soon());
                             }),
                             error_of([&] { a_.erase(key); })}) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
  }
  EXPECT_EQ(b_.try_get("key"), std::nullopt);
  a_.set("key", "value");
  EXPECT_EQ(b_.try_get("key"), "value");
}

TEST_P(StoreConformanceTest, AddReturnsTheNewValue) {
  EXPECT_EQ(a_.add("n", 5), 5);
  EXPECT_EQ(b_.add("n", -7), -2);
  EXPECT_EQ(a_.add("n", 0), -2);
  EXPECT_EQ(a_.get("n", soon()), "-2");
  a_.set("n", "40");
  EXPECT_EQ(b_.add("n", 2), 42);
}

TEST_P(StoreConformanceTest, AddToAWordIsAUsageError) {
  a_.set("word", "forty-two");
  EXPECT_EQ(error_of([&] { b_.add("word", 1); }).kind(), ErrorKind::kUsage);
  EXPECT_EQ(a_.get("word", soon()), "forty-two");
}

TEST_P(StoreConformanceTest, EveryAddOfManyThreadsCounts) {
  constexpr int kThreads = 6;
  constexpr int kTimes = 50;
  std::vector<std::future<std::vector<std::int64_t>>> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.push_back(std::async(std::launch::async, [&, t] {
      std::vector<std::int64_t> seen;
      for (int i = 0; i < kTimes; ++i) seen.push_back(handles_[t % kHandles]->add("n", 1));
      return seen;
    }));
  }
  std::set<std::int64_t> all;
  for (auto& thread : threads) {
    for (const std::int64_t value : thread.get()) {
      EXPECT_TRUE(all.insert(value).second) << value << " was returned twice";
    }
  }
  EXPECT_EQ(all.size(), std::size_t(kThreads * kTimes));
  EXPECT_EQ(*all.rbegin(), kThreads * kTimes);
}

TEST_P(StoreConformanceTest, CompareSetSetsOnlyIfTheValueIsTheExpectedOne) {
  EXPECT_EQ(a_.compare_set("key", "something", "x"), "");  // new, but not expected to be
  EXPECT_EQ(b_.try_get("key"), std::nullopt);
  EXPECT_EQ(a_.compare_set("key", "", "first"), "first");
  EXPECT_EQ(b_.compare_set("key", "", "second"), "first");
  EXPECT_EQ(b_.compare_set("key", "first", "third"), "third");
  EXPECT_EQ(a_.get("key", soon()), "third");
}

TEST_P(StoreConformanceTest, OnlyOneOfManyThreadsSetsAKeyByCompareSet) {
  std::vector<std::future<std::string>> threads;
  for (std::size_t t = 0; t < 6; ++t) {
    threads.push_back(std::async(std::launch::async, [&, t] {
      return handles_[t % kHandles]->compare_set("key", "", std::to_string(t));
    }));
  }
  std::set<std::string> winners;
  for (auto& thread : threads) winners.insert(thread.get());
  EXPECT_EQ(winners.size(), 1u);
}

TEST_P(StoreConformanceTest, AWaitingGetReturnsALaterSet) {
  auto waiting = std::async(std::launch::async, [&] { return a_.get("key", soon()); });
  EXPECT_EQ(waiting.wait_for(milliseconds(20)), std::future_status::timeout);
  b_.set("key", "value");
  EXPECT_EQ(waiting.get(), "value");
}

TEST_P(StoreConformanceTest, AWaitingGetReturnsAKeyMadeByAddOrCompareSet) {
  auto added = std::async(std::launch::async, [&] { return a_.get("added", soon()); });
  auto compared = std::async(std::launch::async, [&] { return a_.get("compared", soon()); });
  b_.add("added", 3);
  b_.compare_set("compared", "", "set");
  EXPECT_EQ(added.get(), "3");
  EXPECT_EQ(compared.get(), "set");
}

TEST_P(StoreConformanceTest, AWaitingThreadDoesNotDelayOthersOfTheSameHandle) {
  auto waiting = std::async(std::launch::async, [&] { return a_.get("key", soon()); });
  a_.set("other", "value");
  EXPECT_EQ(a_.get("other", soon()), "value");
  EXPECT_EQ(a_.add("n", 1), 1);
  a_.set("key", "from the same handle");
  EXPECT_EQ(waiting.get(), "from the same handle");
}

TEST_P(StoreConformanceTest, AGetThatTimesOutNamesTheKey) {
  const TimePoint begin = Clock::now();
  const Error error = error_of([&] { a_.get("never", Deadline(begin + milliseconds(30))); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.what(), HasSubstr("never\""));
  EXPECT_GE(Clock::now() - begin, milliseconds(30));
  a_.set("after", "the handle still works");
  EXPECT_EQ(a_.get("after", soon()), "the handle still works");
}

TEST_P(StoreConformanceTest, AWaitEndsWhenAllKeysExist) {
  a_.set("one", "1");
  auto waiting = std::async(std::launch::async, [&] { a_.wait({"one", "two", "three"}, soon()); });
  b_.set("three", "3");
  EXPECT_EQ(waiting.wait_for(milliseconds(20)), std::future_status::timeout);
  b_.set("two", "2");
  EXPECT_NO_THROW(waiting.get());
  EXPECT_NO_THROW(a_.wait({}, soon()));
}

TEST_P(StoreConformanceTest, AWaitThatTimesOutNamesTheMissingKeys) {
  a_.set("here", "1");
  const Error error = error_of([&] {
    a_.wait({"missing", "here", "absent"}, Deadline::after(milliseconds(20)));
  });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.what(),
              AllOf(HasSubstr("missing\""), HasSubstr("absent\""), Not(HasSubstr("here\""))));
}

TEST_P(StoreConformanceTest, APassedDeadlineStillReturnsExistingValues) {
  a_.set("key", "value");
  const Deadline passed(Clock::now());
  EXPECT_EQ(b_.get("key", passed), "value");
  EXPECT_NO_THROW(b_.wait({"key"}, passed));
  EXPECT_EQ(error_of([&] { b_.get("never", passed); }).kind(), ErrorKind::kTimeout);
}

TEST_P(StoreConformanceTest, AnErasedKeyIsMissingUntilItIsSetAgain) {
  EXPECT_FALSE(a_.erase("key"));
  a_.set("key", "value");
  EXPECT_TRUE(b_.erase("key"));
  EXPECT_FALSE(a_.erase("key"));
  EXPECT_EQ(a_.try_get("key"), std::nullopt);
  EXPECT_EQ(a_.add("key", 1), 1);
}

TEST_P(StoreConformanceTest, AnOpenStoreAnswers) { EXPECT_TRUE(a_.answers(soon())); }

TEST_P(StoreConformanceTest, ManyKeysKeepTheirOwnValues) {
  for (int i = 0; i < 300; ++i) {
    handles_[static_cast<std::size_t>(i) % kHandles]->set("key" + std::to_string(i),
                                                          std::to_string(i * i));
  }
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(b_.get("key" + std::to_string(i), soon()), std::to_string(i * i));
  }
}

INSTANTIATE_TEST_SUITE_P(Everywhere,
                         StoreConformanceTest,
                         ::testing::Values(Implementation{"Memory", open_memory},
                                           Implementation{"Prefix", open_prefix},
                                           Implementation{
                                               "Sealed", open_sealed, kMaxValue - kSealSize},
                                           Implementation{"Tcp", open_plain},
                                           Implementation{"TcpChecked", open_checked},
                                           Implementation{"TcpEncrypted", open_encrypted},
                                           Implementation{"File", open_file}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace peal::store
