// A worker against a driver that the test plays: it serves the store, and reads and answers.
#include "peal/rendezvous/elastic_assignment.h"

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/soon.h"
#include "peal/net/socket.h"
#include "peal/rendezvous/elastic_protocol.h"
#include "peal/store/memory_store.h"
#include "peal/store/tcp_store.h"
#include "peal/store/tcp_store_server.h"

namespace peal::rendezvous {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class ElasticWorkerTest : public ::testing::Test {
 protected:
  ElasticWorkerTest() {
    std::vector<Fd> listeners;
    listeners.push_back(net::listen_on(net::Address::parse("127.0.0.1:0")));
    server_ = std::make_unique<store::TcpStoreServer>(std::move(listeners), proof());
    driver_ = store::connect_tcp_store({server_->address()}, proof(), seconds(10), soon());
    variables_ = {{"HOROVOD_ELASTIC", "1"},
                  {"HOROVOD_HOSTNAME", "127.0.0.1"},
                  {"HOROVOD_LOCAL_RANK", "1"},
                  {"PEAL_ELASTIC_DRIVER", server_->address().to_string()},
                  {"PEAL_ELASTIC_WORKER", "7"},
                  {"PEAL_JOB", "job"},
                  {"PEAL_SECRET", "hush hush hush hush"}};
  }

  static net::ProofContext proof() {
    Config config;
    config.secret = Secret("hush hush hush hush");
    return elastic_proof_context(config, "job");
  }

  std::unique_ptr<ElasticWorker> join() { return join_elastic_job(fixed_environment(variables_)); }

  ElasticRequest next_request() {
    return ElasticRequest::decode(driver_->get(request_key(read_++), soon()));
  }
  void answer(const ElasticRequest& request, const ElasticAnswer& answer) {
    driver_->set(answer_key(request.worker, request.number), answer.encode());
  }
  static ElasticAnswer place(int round) {
    return {.kind = ElasticAnswer::Kind::kPlace,
            .place = {.round = round,
                      .rank = 2,
                      .size = 3,
                      .local_rank = 1,
                      .local_size = 2,
                      .cross_rank = 1,
                      .cross_size = 2,
                      .hostname = "127.0.0.1",
                      .slot = 1,
                      .records = fmt::format("records/{}", round),
                      .store = nullptr}};
  }

  /// The worker asks in another thread.
  static auto ask(ElasticWorker& worker) {
    return std::async(std::launch::async, [&] { return worker.next_round(); });
  }

  std::unique_ptr<store::TcpStoreServer> server_;
  std::unique_ptr<store::Store> driver_;
  std::map<std::string, std::string> variables_;
  std::int64_t read_ = 0;
};

std::optional<Error> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

TEST_F(ElasticWorkerTest, TheDriversVariablesMakeAProcessElastic) {
  EXPECT_TRUE(is_elastic(fixed_environment(variables_)));
  variables_["HOROVOD_ELASTIC"] = "0";
  EXPECT_FALSE(is_elastic(fixed_environment(variables_)));
  EXPECT_FALSE(is_elastic(fixed_environment({{"HOROVOD_ELASTIC", "1"}})));
}

TEST_F(ElasticWorkerTest, AWorkerGetsItsPlaceInEachRound) {
  const auto worker = join();
  for (const int round : {1, 2}) {
    auto asked = ask(*worker);
    const ElasticRequest request = next_request();
    EXPECT_EQ(request.worker, 7);
    EXPECT_EQ(request.kind, ElasticRequest::Kind::kNextRound);
    answer(request, place(round));
    const auto got = asked.get();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->round, round);
    EXPECT_EQ(got->rank, 2);
    EXPECT_EQ(got->size, 3);
    EXPECT_EQ(got->local_rank, 1);
    EXPECT_EQ(got->local_size, 2);
    EXPECT_EQ(got->cross_rank, 1);
    EXPECT_EQ(got->cross_size, 2);
    EXPECT_EQ(got->hostname, "127.0.0.1");
    EXPECT_EQ(got->slot, 1);
    EXPECT_EQ(got->records, fmt::format("records/{}", round));
    got->store->set("key", "value");
    EXPECT_EQ(driver_->get(round_prefix(round) + "/key", soon()), "value");
  }
}

TEST_F(ElasticWorkerTest, AnotherObjectOfTheSameProcessFollowsTheFirst) {
  for (const int round : {1, 2}) {
    const auto worker = join();
    auto asked = ask(*worker);
    answer(next_request(), place(round));
    EXPECT_EQ(asked.get()->round, round);
  }
}

TEST_F(ElasticWorkerTest, TheFirstQuestionForChangesOfARoundNotifiesTheDriverOfProgress) {
  const auto worker = join();
  for (const int round : {1, 2}) {
    auto asked = ask(*worker);
    answer(next_request(), place(round));
    ASSERT_TRUE(asked.get());
    for (int commit = 0; commit < 3; ++commit) worker->host_changes();
    EXPECT_EQ(next_request().kind, ElasticRequest::Kind::kProgress);
  }
}

TEST_F(ElasticWorkerTest, ARemovedWorkerGetsNoPlace) {
  const auto worker = join();
  auto asked = ask(*worker);
  answer(next_request(), {.kind = ElasticAnswer::Kind::kRemoved});
  EXPECT_FALSE(asked.get());
  EXPECT_EQ(worker->removal_text(), "127.0.0.1[1] has been removed from elastic job");
}

TEST_F(ElasticWorkerTest, TheDriversReasonForTheEndIsThrown) {
  const auto worker = join();
  auto asked = ask(*worker);
  answer(next_request(), {.kind = ElasticAnswer::Kind::kOver, .reason = "too many resets"});
  const auto error = error_of([&] { asked.get(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::kAborted);
  EXPECT_EQ(error->message(), "too many resets");
}

TEST_F(ElasticWorkerTest, TheChangesOfHostsAreThoseSinceTheRoundBegan) {
  const auto worker = join();
  auto asked = ask(*worker);
  answer(next_request(), place(5));
  asked.get();
  EXPECT_EQ(worker->host_changes(), HostChanges::kNone);
  driver_->set(changes_key(4), encode(HostChanges::kRemoved));
  EXPECT_EQ(worker->host_changes(), HostChanges::kNone);
  driver_->set(changes_key(5), encode(HostChanges::kAdded));
  EXPECT_EQ(worker->host_changes(), HostChanges::kAdded);
}

TEST_F(ElasticWorkerTest, TheDriverReceivesThatAWorkerHasTheStateAndThatItFinishes) {
  const auto worker = join();
  worker->mark_synchronized();
  worker->finish();
  for (const auto kind : {ElasticRequest::Kind::kSynchronized, ElasticRequest::Kind::kFinish}) {
    const ElasticRequest request = next_request();
    EXPECT_EQ(request.worker, 7);
    EXPECT_EQ(request.kind, kind);
  }
}

TEST_F(ElasticWorkerTest, AWorkerThatWaitsNoticesTheEndOfTheDriverAtOnce) {
  const auto worker = join();
  auto asked = ask(*worker);
  next_request();
  const TimePoint begin = Clock::now();
  driver_.reset();
  server_.reset();
  const auto error = error_of([&] { asked.get(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::kPeerLost);
  EXPECT_THAT(std::string(error->message()),
              HasSubstr("the driver of the elastic job has ended, so worker 127.0.0.1[1] cannot "
                        "go on"));
  EXPECT_LT(Clock::now() - begin, seconds(2));
  EXPECT_EQ(error_of([&] { worker->host_changes(); })->kind(), ErrorKind::kPeerLost);
}

TEST_F(ElasticWorkerTest, AnInterruptEndsTheWait) {
  const auto worker = join();
  EXPECT_THROW(worker->next_round([] { throw std::runtime_error("Ctrl-C"); }), std::runtime_error);
}

TEST_F(ElasticWorkerTest, AWorkerTriesAllAddressesOfTheDriver) {
  variables_["PEAL_ELASTIC_DRIVER"] = "127.0.0.1:1,[::1]:1," + server_->address().to_string();
  const auto worker = join();
  worker->finish();
  EXPECT_EQ(next_request().kind, ElasticRequest::Kind::kFinish);
}

TEST_F(ElasticWorkerTest, AMissingVariableIsNamed) {
  variables_.erase("PEAL_ELASTIC_WORKER");
  const auto error = error_of([&] { join(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::kUsage);
  EXPECT_THAT(std::string(error->message()), HasSubstr("PEAL_ELASTIC_WORKER is not set"));
}

TEST_F(ElasticWorkerTest, AProcessWithoutTheSecretIsRejected) {
  variables_["PEAL_SECRET"] = "guess guess guess guess";
  EXPECT_EQ(error_of([&] { join(); })->kind(), ErrorKind::kUsage);
}

TEST(ElasticProtocolTest, EachRequestIsInTheListOnceAlthoughManyPostAtOnce) {
  constexpr int kWorkers = 8;
  constexpr int kRequests = 20;
  const std::shared_ptr<store::Store> store = store::make_memory_store();
  std::vector<std::future<void>> threads;
  for (int worker = 0; worker < kWorkers; ++worker) {
    threads.push_back(std::async(std::launch::async, [&, worker] {
      for (int i = 0; i < kRequests; ++i) {
        post(*store, {worker, i, ElasticRequest::Kind::kNextRound});
      }
    }));
  }
  for (auto& thread : threads) thread.get();
  std::map<int, std::int64_t> next;
  for (int index = 0; index < kWorkers * kRequests; ++index) {
    const auto text = store->try_get(request_key(index));
    ASSERT_TRUE(text);
    const ElasticRequest request = ElasticRequest::decode(*text);
    EXPECT_EQ(request.number, next[request.worker]++);
  }
  EXPECT_EQ(store->try_get(request_key(kWorkers * kRequests)), std::nullopt);
}

TEST(ElasticProtocolTest, EveryCutMessageIsMalformed) {
  const std::string request = ElasticRequest{3, 4, ElasticRequest::Kind::kFinish}.encode();
  for (std::size_t size = 0; size < request.size(); ++size) {
    EXPECT_EQ(error_of([&] { ElasticRequest::decode(request.substr(0, size)); })->kind(),
              ErrorKind::kMismatch);
  }
  const std::string answer =
      ElasticAnswer{.kind = ElasticAnswer::Kind::kOver, .reason = "why"}.encode();
  for (std::size_t size = 0; size < answer.size(); ++size) {
    EXPECT_EQ(error_of([&] { ElasticAnswer::decode(answer.substr(0, size)); })->kind(),
              ErrorKind::kMismatch);
  }
  EXPECT_EQ(ElasticAnswer::decode(answer).reason, "why");
  EXPECT_EQ(error_of([] { decode_changes("4"); })->kind(), ErrorKind::kMismatch);
}

}  // namespace
}  // namespace peal::rendezvous
