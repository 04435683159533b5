// The messages between the workers of an elastic job and their driver, as keys and values of the
// driver's store. Used by elastic_assignment.cpp (the worker) and launch/elastic (the driver).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "peal/base/units.h"
#include "peal/config/config.h"
#include "peal/net/proof.h"
#include "peal/rendezvous/elastic_assignment.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// "127.0.0.1:4711", or "10.0.0.1:4711,[fd00::1]:4712": where the driver serves its store. The
/// worker tries the addresses in this order.
inline constexpr const char* kElasticDriverVariable = "PEAL_ELASTIC_DRIVER";
/// The number of the worker: which of the processes that the driver has started it is.
inline constexpr const char* kElasticWorkerVariable = "PEAL_ELASTIC_WORKER";

/// For the connections to the driver's store.
net::ProofContext elastic_proof_context(const Config& config, const std::string& job);

/// From a worker to the driver. `number` distinguishes the requests of a worker.
struct ElasticRequest {
  enum class Kind : std::uint8_t { kNextRound = 1, kSynchronized, kProgress, kFinish, kStop };
  int worker = 0;
  std::int64_t number = 0;
  Kind kind = Kind::kNextRound;

  std::string encode() const;
  /// Errors: mismatch for anything that `encode` did not make.
  static ElasticRequest decode(std::string_view bytes);
  friend bool operator==(const ElasticRequest&, const ElasticRequest&) = default;
};

/// From the driver to a worker that asked for the next round.
struct ElasticAnswer {
  enum class Kind : std::uint8_t { kPlace = 1, kRemoved, kOver };
  Kind kind = Kind::kOver;
  ElasticAssignment place{};  // for kPlace; without the store
  std::string reason{};       // for kOver: why the job ends

  std::string encode() const;
  /// Errors: as above.
  static ElasticAnswer decode(std::string_view bytes);
};

/// The requests form a list in the store: "request/0", "request/1", ... The driver reads them in
/// this order, each once.
std::string request_key(std::int64_t index);
/// Which request the driver reads next, so that a worker need not begin its search at 0.
inline constexpr const char* kNextRequestKey = "next_request";
std::string answer_key(int worker, std::int64_t number);
/// The changes of hosts since the round began; the key does not exist before the first.
std::string changes_key(int round);
/// The keys of the meeting of a round.
std::string round_prefix(int round);

std::string encode(HostChanges changes);
/// Errors: mismatch.
HostChanges decode_changes(std::string_view text);

/// Appends a request to the list. Errors: of the store. Cost: two requests to the store, and one
/// for each worker that is posting at the same moment.
void post(store::Store& store, const ElasticRequest& request);

}  // namespace peal::rendezvous
