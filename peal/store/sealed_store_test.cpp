// Tests what a program can do that reaches the store but does not know the secret.
#include "peal/store/sealed_store.h"

#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/error_of.h"
#include "peal/store/memory_store.h"
#include "peal/store/prefix_store.h"
#include "peal/store/testing/forwarding_store.h"

namespace peal::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class SealedStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> sealed(const std::string& secret = "the job's secret") const {
    return make_sealed_store(open_, Secret(secret), seconds(20));
  }

  /// Expects that every call that reads the key rejects the value for its missing seal.
  void expect_refused(const std::string& key) const {
    const auto store = sealed();
    for (const Error& error : {error_of([&] { store->try_get(key); }),
                               error_of([&] { store->get(key, Deadline::after(seconds(20))); }),
                               error_of([&] { store->add(key, 1); }),
                               error_of([&] { store->compare_set(key, "", "x"); })}) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("\"" + key + "\""), HasSubstr("seal")));
    }
  }

  std::shared_ptr<Store> open_ = make_memory_store();  // for programs without the secret
};

TEST_F(SealedStoreTest, AValueWrittenByAStrangerIsRejected) {
  open_->set("short", "forged");
  expect_refused("short");
  open_->set("long", std::string(200, 'x'));
  expect_refused("long");
  open_->set("empty", "");
  expect_refused("empty");
}

TEST_F(SealedStoreTest, AValueChangedByAStrangerIsRejected) {
  sealed()->set("key", "some value");
  const std::string good = *open_->try_get("key");
  EXPECT_THAT(good, HasSubstr("some value")) << "sealed, not encrypted";
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string changed = good;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    open_->set("key", changed);
    EXPECT_EQ(error_of([&] { sealed()->try_get("key"); }).kind(), ErrorKind::kUsage) << i;
    open_->set("key", good.substr(0, i));
    EXPECT_EQ(error_of([&] { sealed()->try_get("key"); }).kind(), ErrorKind::kUsage) << i;
  }
  open_->set("key", good);
  EXPECT_EQ(sealed()->try_get("key"), "some value");
}

TEST_F(SealedStoreTest, AValueMovedToAnotherKeyIsRejected) {
  sealed()->set("contact/0", "here");
  open_->set("contact/1", *open_->try_get("contact/0"));
  expect_refused("contact/1");
  // The seal covers the whole key, so a value of one group is rejected in another group.
  make_prefix_store(sealed(), "group/a")->set("contact/0", "in a");
  open_->set("group/b/contact/0", *open_->try_get("group/a/contact/0"));
  expect_refused("group/b/contact/0");
}

TEST_F(SealedStoreTest, ACounterSetByAStrangerIsRejected) {
  sealed()->add("arrived", 1);
  open_->set("arrived", "3");
  expect_refused("arrived");
}

TEST_F(SealedStoreTest, AnotherSecretOrNoSecretIsDetectedOnBothSides) {
  for (const char* other : {"another secret", ""}) {
    sealed(other)->set("key", "value");
    expect_refused("key");
    sealed()->set("key", "value");
    EXPECT_EQ(error_of([&] { sealed(other)->try_get("key"); }).kind(), ErrorKind::kUsage);
  }
  EXPECT_THAT(error_of([&] { sealed("")->try_get("key"); }).what(),
              HasSubstr("this process has no secret"));
  EXPECT_THAT(error_of([&] { sealed("another")->try_get("key"); }).what(),
              Not(HasSubstr("this process has no secret")));
}

TEST_F(SealedStoreTest, EqualValuesAreSealedDifferentlyEachTime) {
  sealed()->set("key", "value");
  const std::string first = *open_->try_get("key");
  sealed()->set("key", "value");
  EXPECT_NE(*open_->try_get("key"), first);
}

TEST_F(SealedStoreTest, AddTimesOutIfAStrangerChangesTheCounterAtEachAttempt) {
  /// Behaves as if another sealed value of the counter had replaced the read one before each write.
  class Restless final : public testing::ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    std::string compare_set(std::string_view key, std::string_view, std::string_view) override {
      return get(key, Deadline(Clock::now()));
    }
  };
  sealed()->add("n", 1);
  const auto store = make_sealed_store(
      std::make_shared<Restless>(open_), Secret("the job's secret"), milliseconds(20));
  const Error error = error_of([&] { store->add("n", 1); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.what(), HasSubstr("\"n\""));
}

}  // namespace
}  // namespace peal::store
