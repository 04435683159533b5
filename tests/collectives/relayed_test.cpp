// A stranger who can write to the store where two ranks meet, as to torch's TCPStore, puts the
// address of a relay in place of rank 0's. The relay passes on the proof of the secret and then
// changes bytes. The ranks must find out, or never come near the relay.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/guarded.h"
#include "peal/base/testing/scoped_variable.h"
#include "peal/init/init.h"
#include "peal/net/socket.h"
#include "peal/rendezvous/contact.h"
#include "peal/store/memory_store.h"
#include "peal/store/sealed_store.h"

#include "tests/support/meddler.h"
#include "tests/support/ranks.h"

namespace peal::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 2;

/// A store in which the stranger changes each value at the best of all moments: as it is written.
class TappedStore : public store::Store {
 public:
  void set(std::string_view key, std::string_view value) override {
    base_->set(key, changed(key, value));
  }
  std::string get(std::string_view key, Deadline deadline) override {
    return base_->get(key, deadline);
  }
  std::optional<std::string> try_get(std::string_view key) override { return base_->try_get(key); }
  std::int64_t add(std::string_view key, std::int64_t amount) override {
    return base_->add(key, amount);
  }
  std::string compare_set(std::string_view key,
                          std::string_view expected,
                          std::string_view desired) override {
    return base_->compare_set(key, expected, desired);
  }
  void wait(const std::vector<std::string>& keys, Deadline deadline) override {
    base_->wait(keys, deadline);
  }
  bool erase(std::string_view key) override { return base_->erase(key); }
  void set_will(std::string_view key, std::string_view value) override {
    base_->set_will(key, value);
  }
  bool answers(Deadline deadline) override { return base_->answers(deadline); }

 protected:
  virtual std::string changed(std::string_view key, std::string_view value) = 0;

 private:
  std::unique_ptr<store::Store> base_ = store::make_memory_store();
};

/// Puts a relay in place of rank 0's address, behind the seal if there is one.
class RelayStore final : public TappedStore {
 public:
  /// Whether a rank was led to the relay, and what passed there was changed.
  bool has_changed_bytes() {
    return relay_.with([](const auto& relay) { return relay && relay->has_flipped(); });
  }
  void change_next_bytes() {
    relay_.with([](const auto& relay) {
      if (relay) relay->flip_next();
    });
  }

 private:
  std::string changed(std::string_view key, std::string_view value) override {
    if (!key.ends_with("contact/0")) return std::string(value);
    for (const std::size_t seal :
         {std::size_t{0}, static_cast<std::size_t>(store::kSealSize.value)}) {
      if (value.size() < seal) break;
      try {
        transport::Contact contact = rendezvous::decode(value.substr(seal));
        relay_.with([&](auto& relay) {
          relay = std::make_unique<Meddler>(contact.addresses.at(0));
          contact.addresses = {relay->address()};
        });
        return std::string(value.substr(0, seal)) + rendezvous::encode(contact);
      } catch (const Error&) {  // it begins elsewhere
      }
    }
    return std::string(value);
  }

  Guarded<std::unique_ptr<Meddler>> relay_;
};

class RelayedTest : public ::testing::Test {
 protected:
  RelayedTest() {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "PEAL_JOB"}) {
      ::unsetenv(name);
    }
  }

  /// As a launcher that has put both ranks on this machine.
  void launch_here() {
    for (const auto& [name, value] : {std::pair{"RANK", "0"},
                                      std::pair{"WORLD_SIZE", "2"},
                                      std::pair{"LOCAL_RANK", "0"},
                                      std::pair{"LOCAL_WORLD_SIZE", "2"},
                                      std::pair{"PEAL_JOB", "relayed"}}) {
      launcher_.push_back(std::make_unique<ScopedVariable>(name, value));
    }
  }

  static InitOptions options(Rank rank, const std::shared_ptr<store::Store>& store) {
    InitOptions options;
    options.store = store;
    options.rank = rank;
    options.world_size = kRanks;
    options.is_whole_job = false;
    options.timeout = std::chrono::seconds(30);
    return options;
  }

  /// Sums while the relay changes bytes, if a rank has come to it; what each rank got last.
  std::vector<Outcome<float>> sum(const std::shared_ptr<RelayStore>& store) const {
    return on_ranks(kRanks, [&](Rank rank) {
      const ProcessGroupPtr group = init_process_group(options(rank, store));
      std::vector<float> values(1000);
      for (int round = 0; round < 50; ++round) {
        values.assign(values.size(), rank == 0 ? 1000.0F : 234.5F);
        if (rank == 0 && round > 0) store->change_next_bytes();
        group->all_reduce(values);
        for (const float value : values) {
          if (value != 1234.5F) return value;
        }
      }
      group->destroy();
      return values[0];
    });
  }

  void expect_right_sums() const {
    const auto store = std::make_shared<RelayStore>();
    for (const auto& outcome : sum(store)) {
      EXPECT_EQ(outcome.error, "");
      EXPECT_EQ(outcome.result, 1234.5F);
    }
    EXPECT_FALSE(store->has_changed_bytes());
  }

  void expect_all(ErrorKind kind, const std::string& cause) const {
    const auto store = std::make_shared<RelayStore>();
    for (const auto& outcome : sum(store)) {
      EXPECT_EQ(outcome.result, 0) << "a wrong sum, without an error";
      EXPECT_EQ(outcome.kind, kind);
      EXPECT_THAT(outcome.error, HasSubstr(cause));
    }
    EXPECT_FALSE(store->has_changed_bytes());
  }

  const ScopedVariable tcp_{"PEAL_TRANSPORT", "tcp"};
  std::vector<std::unique_ptr<ScopedVariable>> launcher_;
};

TEST_F(RelayedTest, WithASecretAForgedAddressIsAnErrorThatNamesIt) {
  const ScopedVariable secret("PEAL_SECRET", "a secret of the tests");
  expect_all(ErrorKind::kUsage, "contact/0\" in the store where the ranks meet does not bear");
}

TEST_F(RelayedTest, WithASecretAndTlsItIsTheSame) {
  const ScopedVariable secret("PEAL_SECRET", "a secret of the tests");
  const ScopedVariable tls("PEAL_TLS", "on");
  expect_all(ErrorKind::kUsage, "contact/0\" in the store where the ranks meet does not bear");
}

TEST_F(RelayedTest, TlsWithoutASecretIsRefusedWhereTheStoreMayBeOpenToOthers) {
  const ScopedVariable tls("PEAL_TLS", "on");
  expect_all(ErrorKind::kUsage, "PEAL_TLS=on needs a secret");
}

TEST_F(RelayedTest, RanksThatTheLauncherHasPutHereTakeNoAddressFromTheStore) {
  launch_here();
  expect_right_sums();
  const ScopedVariable secret("PEAL_SECRET", "a secret of the tests");
  expect_right_sums();
}

TEST_F(RelayedTest, NorDoTheyWithTls) {
  launch_here();
  const ScopedVariable tls("PEAL_TLS", "on");
  expect_right_sums();
  const ScopedVariable secret("PEAL_SECRET", "a secret of the tests");
  expect_right_sums();
}

/// Gives the ranks the name of a socket of its own instead of rank 0's. It knows that there is no
/// secret, and seals the name as a rank does.
class NameStore final : public TappedStore {
 public:
  explicit NameStore(std::string name) : name_(std::move(name)) {}

 private:
  std::string changed(std::string_view key, std::string_view value) override {
    if (!key.ends_with("place")) return std::string(value);
    const std::shared_ptr<store::Store> own = store::make_memory_store();
    store::make_sealed_store(own, Secret(""), std::chrono::seconds(1))->set(key, name_);
    return *own->try_get(key);
  }

  std::string name_;
};

TEST_F(RelayedTest, ASocketOfAnotherUserIsRefusedWhereTheNameOfRankZerosIsForged) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  launch_here();
  const std::string name = "peal-test-stranger-" + std::to_string(::getpid());
  const auto store = std::make_shared<NameStore>(name);
  // The system remembers which user began to listen.
  ASSERT_EQ(::seteuid(65534), 0);
  const Fd stranger = net::listen_on(net::Address::abstract_unix(name));
  ASSERT_EQ(::seteuid(0), 0);
  const auto outcomes = on_ranks(kRanks, [&](Rank rank) {
    InitOptions own = options(rank, store);
    own.timeout = std::chrono::seconds(2);
    return init_process_group(own) != nullptr;
  });
  EXPECT_EQ(outcomes[1].kind, ErrorKind::kUsage);
  EXPECT_THAT(outcomes[1].error, HasSubstr("belongs to another user"));
  EXPECT_THAT(outcomes[0].error, HasSubstr("rank 1"));
}

}  // namespace
}  // namespace peal::testing
