// An attacker that can write to the store where two ranks meet, for example torch's TCPStore,
// replaces rank 0's address by that of a relay. The relay forwards the proof of the secret and then
// changes bytes. The ranks must detect this, or never connect to the relay.
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
#include "peal/store/testing/forwarding_store.h"

#include "tests/support/interceptor.h"
#include "tests/support/ranks.h"

namespace peal::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 2;

/// A store in which the attacker changes each value as it is written, the best moment for an
/// attack.
class TappedStore : public store::testing::ForwardingStore {
 public:
  void set(std::string_view key, std::string_view value) final {
    ForwardingStore::set(key, changed(key, value));
  }

 protected:
  virtual std::string changed(std::string_view key, std::string_view value) = 0;
};

/// Replaces rank 0's address by that of a relay, behind the seal if there is one.
class RelayStore final : public TappedStore {
 public:
  /// Whether a rank has connected to the relay, and the relay has changed bytes.
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
          relay = std::make_unique<Interceptor>(contact.addresses.at(0));
          contact.addresses = {relay->address()};
        });
        return std::string(value.substr(0, seal)) + rendezvous::encode(contact);
      } catch (const Error&) {  // not a contact
      }
    }
    return std::string(value);
  }

  Guarded<std::unique_ptr<Interceptor>> relay_;
};

class RelayedTest : public ::testing::Test {
 protected:
  RelayedTest() {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "PEAL_JOB"}) {
      ::unsetenv(name);
    }
  }

  /// Sets the variables of a launcher that has started both ranks on this machine.
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

  /// Sums while the relay changes bytes, if a rank has connected to it. Returns each rank's last
  /// sum.
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

TEST_F(RelayedTest, AForgedAddressIsAnErrorThatNamesItWithASecret) {
  const ScopedVariable secret("PEAL_SECRET", "a secret of the tests");
  expect_all(ErrorKind::kUsage, "contact/0\" in the store where the ranks meet does not bear");
}

TEST_F(RelayedTest, AForgedAddressIsAnErrorThatNamesItWithTls) {
  const ScopedVariable secret("PEAL_SECRET", "a secret of the tests");
  const ScopedVariable tls("PEAL_TLS", "on");
  expect_all(ErrorKind::kUsage, "contact/0\" in the store where the ranks meet does not bear");
}

TEST_F(RelayedTest, TlsWithoutASecretIsRejectedIfOthersMayWriteToTheStore) {
  const ScopedVariable tls("PEAL_TLS", "on");
  expect_all(ErrorKind::kUsage, "PEAL_TLS=on needs a secret");
}

TEST_F(RelayedTest, RanksThatALauncherStartedHereTakeNoAddressFromTheStore) {
  launch_here();
  expect_right_sums();
  const ScopedVariable secret("PEAL_SECRET", "a secret of the tests");
  expect_right_sums();
}

TEST_F(RelayedTest, WithTlsRanksThatALauncherStartedHereTakeNoAddressFromTheStore) {
  launch_here();
  const ScopedVariable tls("PEAL_TLS", "on");
  expect_right_sums();
  const ScopedVariable secret("PEAL_SECRET", "a secret of the tests");
  expect_right_sums();
}

/// Replaces the name of rank 0's socket by that of another socket. It knows that there is no
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

TEST_F(RelayedTest, ASocketOfAnotherUserIsRejectedIfTheNameIsForged) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can act as another user";
  launch_here();
  const std::string name = "peal-test-stranger-" + std::to_string(::getpid());
  const auto store = std::make_shared<NameStore>(name);
  // The system records the user that began to listen.
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
