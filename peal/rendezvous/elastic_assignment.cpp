#include "peal/rendezvous/elastic_assignment.h"

#include <atomic>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/split.h"
#include "peal/config/config.h"
#include "peal/net/address.h"
#include "peal/rendezvous/elastic_protocol.h"
#include "peal/store/prefix_store.h"
#include "peal/store/tcp_store.h"

namespace peal::rendezvous {
namespace {

/// How long the driver may be silent. It answers at once unless its process is stopped, for example
/// by Ctrl-Z, or the machine is very busy.
constexpr Timeout kSilence = std::chrono::seconds(10);
/// How long to try to connect. On another machine the first packet may be lost.
constexpr Timeout kToConnect = std::chrono::seconds(5);
constexpr auto kAskEvery = std::chrono::milliseconds(500);

/// The variables by which the driver tells a worker what it is.
struct Variables {
  std::vector<net::Address> driver;
  int worker = 0;
  std::string hostname;
  std::string slot;
  std::string job;
  Config config;
};

std::string required(const Environment& environment, const char* name) {
  if (auto value = environment(name)) return *std::move(value);
  throw Error(ErrorKind::kUsage,
              fmt::format("{} is not set, so this process cannot join the elastic job: start it "
                          "with peal run, which sets it",
                          name));
}

Variables read(const Environment& environment) {
  const std::string number = required(environment, kElasticWorkerVariable);
  const auto worker = try_parse_number<int>(number);
  if (!worker || *worker < 0) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format(
            "{}=\"{}\": it is set by peal run; do not change it", kElasticWorkerVariable, number));
  }
  const std::string addresses = required(environment, kElasticDriverVariable);
  std::vector<net::Address> driver;
  for (const std::string_view address : split(addresses, ',')) {
    driver.push_back(net::Address::parse(address));
  }
  return {.driver = std::move(driver),
          .worker = *worker,
          .hostname = environment("HOROVOD_HOSTNAME").value_or("localhost"),
          .slot = environment("HOROVOD_LOCAL_RANK").value_or("0"),
          .job = environment("PEAL_JOB").value_or(""),
          .config = config_from(environment)};
}

class ElasticWorkerOverStore final : public ElasticWorker {
 public:
  explicit ElasticWorkerOverStore(Variables variables)
      : self_(std::move(variables)), store_(connect()) {}

  std::optional<ElasticAssignment> next_round(const Interrupt& interrupt) override {
    const ElasticAnswer answer = ask(interrupt);
    switch (answer.kind) {
      case ElasticAnswer::Kind::kPlace:
        break;
      case ElasticAnswer::Kind::kRemoved:
        return std::nullopt;
      case ElasticAnswer::Kind::kOver:
        throw Error(ErrorKind::kAborted, answer.reason, {.cause = ErrorCause::kAborted});
    }
    ElasticAssignment place = answer.place;
    // Its own connection: the last wills of the meeting are carried out when this one closes.
    place.store = call([&] {
      return store::make_prefix_store(std::shared_ptr<store::Store>(connect()),
                                      round_prefix(place.round));
    });
    round_ = place.round;
    has_progress_ = false;
    return place;
  }

  HostChanges host_changes() override {
    if (!has_progress_) tell(ElasticRequest::Kind::kProgress);
    has_progress_ = true;
    return call([&] {
      const auto text = store_->try_get(changes_key(round_));
      return text ? decode_changes(*text) : HostChanges::kNone;
    });
  }

  void mark_synchronized() override { tell(ElasticRequest::Kind::kSynchronized); }
  void finish() override { tell(ElasticRequest::Kind::kFinish); }

  std::string removal_text() const override {
    return fmt::format("{} has been removed from elastic job", name());
  }

 private:
  void tell(ElasticRequest::Kind kind) {
    call([&] { post(*store_, {self_.worker, next_number(), kind}); });
  }

  std::string name() const { return fmt::format("{}[{}]", self_.hostname, self_.slot); }

  std::unique_ptr<store::Store> connect() const {
    return store::connect_tcp_store(self_.driver,
                                    elastic_proof_context(self_.config, self_.job),
                                    kSilence,
                                    Deadline::after(kToConnect),
                                    "the store of the elastic job's driver");
  }

  ElasticAnswer ask(const Interrupt& interrupt) {
    try {
      return call([&] {
        const std::int64_t number = next_number();
        post(*store_, {self_.worker, number, ElasticRequest::Kind::kNextRound});
        return ElasticAnswer::decode(await(answer_key(self_.worker, number), interrupt));
      });
    } catch (const Interrupted& interrupted) {
      std::rethrow_exception(interrupted.cause);
    }
  }

  /// The store counts, so that another object of the same process may follow this one.
  std::int64_t next_number() { return store_->add(fmt::format("asked/{}", self_.worker), 1); }

  std::string await(const std::string& key, const Interrupt& interrupt) {
    const Deadline never(TimePoint::max());
    const Duration slice = interrupt ? Duration(kInterruptEvery) : Duration(kAskEvery);
    while (true) {
      try {
        return store_->get(key, never.within(slice));
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kTimeout) throw;
        // The answer is not there yet, or the driver is silent.
        if (!store_->answers(Deadline::after(kSilence))) store_->try_get(key);
      }
      let_interrupt(interrupt);
    }
  }

  /// Calls `use`; an error of the store becomes one that names the driver and what it means.
  template <class Use>
  std::invoke_result_t<Use> call(const Use& use) const {
    try {
      return use();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kPeerLost && error.kind() != ErrorKind::kTimeout) throw;
      const bool is_gone = error.kind() == ErrorKind::kPeerLost;
      throw Error(error.kind(),
                  fmt::format("the driver of the elastic job {}, so worker {} cannot go on: {}",
                              is_gone ? "has ended" : "does not answer",
                              name(),
                              error.message()),
                  {.cause = is_gone ? ErrorCause::kExited : ErrorCause::kUnreachable});
    }
  }

  const Variables self_;
  const std::unique_ptr<store::Store> store_;
  std::atomic<int> round_ = 0;
  std::atomic<bool> has_progress_ = false;  // in this round, as the driver knows
};

}  // namespace

bool is_elastic(const Environment& environment) {
  return environment(kElasticDriverVariable) && environment("HOROVOD_ELASTIC") == "1";
}

std::unique_ptr<ElasticWorker> join_elastic_job(const Environment& environment) {
  return std::make_unique<ElasticWorkerOverStore>(read(environment));
}

}  // namespace peal::rendezvous
