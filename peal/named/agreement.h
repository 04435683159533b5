// The decision which operations run next, and which of them as one: the same on all ranks. A state
// machine without threads and communication. NamedOperations moves its messages between ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "peal/base/units.h"
#include "peal/named/announced_groups.h"
#include "peal/named/request.h"
#include "peal/named/response_cache.h"

namespace peal::named {

/// What all ranks do next, in the order of the list.
struct Decision {
  enum class Kind : std::uint8_t {
    kRun,        // `requests`, as one operation
    kFail,       // `requests`, with the text `problem`
    kAllJoined,  // every rank has joined; `last` was the last one
  };
  Kind kind = Kind::kRun;
  std::vector<Request> requests;
  std::string problem;
  Rank last = -1;
};

struct AgreementOptions {
  Bytes fusion_threshold = 128_MiB;
  std::size_t cache_capacity = 1024;
  bool fuses_groups_with_others = true;
  bool runs_all_kinds_while_joined = false;
};

/// One rank's copy. In each round, every rank
///   1. adds its new requests, and fills in its votes: bits that say which of the remembered
///      operations it has pending;
///   2. gives the bitwise or of all ranks' votes to `accept`;
///   3. if `accept` returns true, gives the announcements of all ranks to `decide`: the requests
///      that the ranks do not remember; otherwise an empty list;
///   4. carries out the decisions, in their order.
/// A remembered operation runs when all ranks have voted for it, another when all ranks have
/// announced it. Members of a group run when all members can run. If ranks have groups of different
/// sizes under one name, all members fail when all ranks have announced their group.
/// Threads: one.
class Agreement {
 public:
  /// `global_ranks`: the ranks of the group in the world, for texts.
  Agreement(std::vector<Rank> global_ranks, AgreementOptions options);

  /// This rank has submitted an operation. No other operation with this name may be pending here.
  void add(const Request& request);
  /// From the next round on, this rank votes for everything.
  void join();

  const std::vector<std::uint64_t>& votes();
  bool accept(std::span<const std::uint64_t> votes_of_all);
  std::string announcements();
  /// Errors: mismatch (malformed announcements).
  std::vector<Decision> decide(std::span<const std::string> announcements_of_all);

  struct Arrival {
    std::string name;
    Rank rank;
  };
  /// The announcements that the last `decide` has read. For timelines.
  const std::vector<Arrival>& arrivals() const { return arrivals_; }

 private:
  struct Announced {
    std::uint64_t number = 0;  // in the order of the first announcements
    std::vector<std::optional<Request>> by_rank;
  };
  /// An operation that all ranks have.
  struct Complete {
    Request request;
    std::string problem;
  };

  std::size_t words() const { return (cache_.end() + 63) / 64; }
  void forget(std::size_t number);
  void announce_instead(std::size_t number);
  void read(Rank rank, const std::string& announcements);
  std::vector<Decision> fail_uneven_groups();
  void forget_other_sizes();
  bool is_complete(const Announced& announced) const;
  std::string problem_while_joined(const Request& request) const;
  std::string problem_of(const Announced& announced) const;
  std::vector<Complete> complete_operations() const;
  void keep_whole_groups(std::vector<Complete>& complete) const;
  void settle(const Complete& complete);
  std::optional<Decision> end_of_join();

  std::vector<Rank> global_ranks_;
  AgreementOptions options_;

  // ---- the same on all ranks
  ResponseCache cache_;
  std::unordered_map<std::string, Announced> announced_;
  std::map<std::uint64_t, std::string> complete_;  // names of announced_, by number
  AnnouncedGroups groups_;                         // that have not run or failed
  std::uint64_t next_number_ = 0;
  std::vector<bool> joined_;  // by rank
  std::vector<Rank> join_order_;
  std::vector<std::size_t> voted_by_all_;  // in this round
  std::vector<Arrival> arrivals_;

  // ---- of this rank
  std::unordered_map<std::size_t, Request> voted_;  // remembered and pending
  std::vector<std::size_t> to_forget_;              // this rank's request differs
  std::vector<Request> unannounced_;
  bool has_joined_ = false;
  bool join_is_announced_ = false;
  std::vector<std::uint64_t> votes_;
};

/// Operations that can run as one, in the order of their first member: of one kind, type,
/// reduction, root and factors, and together at most `threshold` bytes.
std::vector<std::vector<Request>> fuse(std::vector<Request> requests,
                                       const AgreementOptions& options);

}  // namespace peal::named
