// Cached plans: everything about an operation that does not depend on its memory. A cached plan has
// the operation's fingerprint and this rank's part. A group's operations repeat, so cached plans
// are kept.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "peal/base/dtype.h"
#include "peal/base/reduce_op.h"
#include "peal/engine/buffer_addresses.h"
#include "peal/engine/fingerprint.h"
#include "peal/engine/planner.h"
#include "peal/kernels/kernels.h"
#include "peal/schedule/schedule.h"

namespace peal::engine {

/// The operands of a move: which of them are local, sent or received.
struct Operands {
  enum class Kind : std::uint8_t { kLocal, kSend, kReceive };

  Kind kind = Kind::kLocal;
  Rank peer = 0;            // of a send or receive
  std::uint32_t begin = 0;  // in PlannedPart::operands: first the sources, then the targets
  std::uint32_t sources = 0;
  std::uint32_t targets = 0;
  /// How to store outputs: past the caches if the operation does not fit into them.
  kernels::Stores stores = kernels::Stores::kCached;
  bool stages = false;  // a copy into this rank's stage only
};

/// One rank's part, with facts about the part that the engine needs.
struct PlannedPart {
  /// `outputs`: how to store outputs that are not also inputs. `weight`: the factor of
  /// contributions before they are combined.
  PlannedPart(schedule::Part part, int ranks, kernels::Stores outputs, double weight = 1.0);

  std::span<const Operand> sources(const Operands& move) const {
    return std::span(operands).subspan(move.begin, move.sources);
  }
  std::span<const Operand> targets(const Operands& move) const {
    return std::span(operands).subspan(move.begin + move.sources, move.targets);
  }
  /// The weights of the sources; empty if all are 1.
  kernels::Weights weights_of(const Operands& move) const {
    return weights.empty() ? kernels::Weights()
                           : kernels::Weights(weights).subspan(move.begin, move.sources);
  }

  /// Whether the part has the form of most small operations: a copy into this rank's stage, a
  /// signal, a wait for the signals of the others, and one move of the staged data. Up to
  /// three steps without a message may come first, such as an opening and a wait for 0. `Execution`
  /// executes such a part by a separate, faster function. `exchange` is the index of the copy.
  bool is_exchange = false;
  std::size_t exchange = 0;

  /// The number of first steps that form an opening after which the rank must choose its part
  /// (schedule/opening.h); 0 if the rank knows its part already.
  std::size_t opening = 0;

  schedule::Part part;
  std::vector<Operands> moves;  // by step; has no meaning for steps that are not moves
  std::vector<Operand> operands;
  std::vector<double> weights;     // by operand; meaningless for targets; empty if all are 1
  std::vector<Elements> sent;      // by peer: elements on the wire in this operation
  std::vector<Elements> received;  // by peer
};

/// What a rank knows about the memory that the ranks of its host share in an operation.
enum class HostMemory : std::uint8_t {
  kForeign,     // this rank's memory is not registered
  kMixed,       // another rank's memory is not registered; this rank's is registered or not shared
  kRegistered,  // all shared memory is registered
};
inline constexpr std::size_t kHostMemories = 3;

/// The parts of a problem that are the same for all problems of a group.
struct Surroundings {
  Rank self = 0;
  int ranks = 1;
  int ranks_per_host = 1;
  Bytes stage;  // the most that a rank may stage
  Bytes cache;  // the size of the last cache
};

/// Whether other ranks access the input and the output of a rank directly, if these buffers are
/// registered.
struct SharedBuffers {
  bool input = false;
  bool output = false;
};

struct CachedPlan {
  schedule::Problem problem;  // complete except `registered`, in which the parts differ
  /// Complete except `sequence` and `detail`.
  Fingerprint fingerprint;
  /// Hash of all that must agree.
  std::uint64_t digest = 0;
  bool opens = false;  // whether its schedules depend on registered memory and have an opening
  std::vector<SharedBuffers> shared = {};  // by rank; empty if the plan does not open
  double weight = 1.0;                     // of contributions
  kernels::Reducer reducer;
  kernels::Reducer finisher;  // reduces and completes
  std::array<std::optional<PlannedPart>, kHostMemories> parts = {};
};

/// Threads: one at a time.
class PlanCache {
 public:
  PlanCache(const Surroundings& surroundings, Planner& planner)
      : surroundings_(surroundings), planner_(planner) {}

  /// The plan for a problem. The caller need not fill in the surroundings and `registered`. The
  /// reference is valid until the next call.
  /// Cost: a look-up; planning the first time, and each time for problems with `counts`.
  CachedPlan& find(const schedule::Problem& problem, DType dtype, ReduceOp::Kind reduce);

  /// The plan's part; planned the first time. A cached plan that does not open has only the part
  /// for HostMemory::kForeign.
  /// Errors: bug if the plan opens and its part does not begin with the opening.
  const PlannedPart& part(CachedPlan& plan, HostMemory host_memory);

 private:
  /// The fields in which a group's problems may differ, except `counts`.
  struct Key {
    std::int64_t count = 0;
    std::int64_t rest = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  static Key key_of(const schedule::Problem& problem, DType dtype, ReduceOp::Kind reduce);
  kernels::Stores stores_of(const CachedPlan& plan) const;
  CachedPlan make(schedule::Problem problem, DType dtype, ReduceOp::Kind reduce);
  PlannedPart make_part(const CachedPlan& plan, HostMemory host_memory);

  Surroundings surroundings_;
  Planner& planner_;
  std::unordered_map<Key, CachedPlan, KeyHash> plans_;
  std::deque<Key> by_age_;  // of all cached plans, the oldest first
  Key last_key_{.count = -1};
  CachedPlan* last_ = nullptr;
  std::optional<CachedPlan>
      uneven_;  // problems with counts rarely repeat, so only the last one is kept
};

}  // namespace peal::engine
