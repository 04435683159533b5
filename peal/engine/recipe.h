// All that is known of an operation before its memory is: how it is told apart, and this rank's
// part. A group's operations repeat, so recipes are kept.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "peal/base/dtype.h"
#include "peal/base/reduce_op.h"
#include "peal/engine/fingerprint.h"
#include "peal/engine/places.h"
#include "peal/engine/planner.h"
#include "peal/kernels/kernels.h"
#include "peal/schedule/schedule.h"

namespace peal::engine {

/// A move, taken apart.
struct Operands {
  enum class Kind : std::uint8_t { kLocal, kSend, kReceive };

  Kind kind = Kind::kLocal;
  Rank peer = 0;            // of a send or receive
  std::uint32_t begin = 0;  // in PlannedPart::operands: first the sources, then the targets
  std::uint32_t sources = 0;
  std::uint32_t targets = 0;
  /// Of outputs: past the caches where the operation does not fit into them.
  kernels::Stores stores = kernels::Stores::kCached;
  bool stages = false;  // a copy into the own stage, and nowhere else
};

/// One rank's part with what the engine wants to know of it as a whole.
struct PlannedPart {
  /// `outputs`: how to store outputs that are not inputs too. `weight`: contributions are
  /// multiplied by it before they are combined.
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

  /// Whether it is what most small operations are, and nothing else: perhaps a look back, a copy
  /// into the own stage, the one signal, a wait for others to give theirs, and one move of what
  /// they staged. Then `Walk` does it without looking at each step anew. `exchange` is the copy's
  /// step.
  bool is_exchange = false;
  std::size_t exchange = 0;

  schedule::Part part;
  std::vector<Operands> moves;  // by step; of no meaning where the step is none
  std::vector<Operand> operands;
  std::vector<double> weights;     // by operand; meaningless for targets; empty if all are 1
  std::vector<Elements> sent;      // by peer: elements on the wire in this operation
  std::vector<Elements> received;  // by peer
};

/// Whose memory decides whether an operation runs on registered memory. The ranks meet to find out:
/// those who decide give their first signal, and all wait for that. A part for registered memory
/// begins with these very steps (`meeting_steps` of them), one for foreign memory comes after them.
enum class Decides : std::uint8_t { kNobody, kRoot, kEverybody };

std::size_t meeting_steps(Decides decides);

/// What a problem does not say because it is the same for all of a group's.
struct Surroundings {
  int ranks = 1;
  int ranks_per_host = 1;
  Bytes stage;  // the most that a rank may stage
  Bytes cache;  // the last one's size
};

struct Recipe {
  schedule::Problem problem;  // whole, but for `access`, which is what the parts differ in
  /// But for `sequence` and `detail`.
  Fingerprint fingerprint;
  /// Of all that must agree.
  std::uint64_t digest = 0;
  Decides decides = Decides::kNobody;
  double weight = 1.0;  // of contributions
  kernels::Reducer reducer;
  kernels::Reducer finisher;  // and completes
  std::optional<PlannedPart> foreign = {};
  std::optional<PlannedPart> registered = {};
};

/// Threads: one at a time.
class RecipeBook {
 public:
  RecipeBook(const Surroundings& surroundings, Planner& planner)
      : surroundings_(surroundings), planner_(planner) {}

  /// The recipe for a problem, of which the surroundings and `access` need not be said. Valid until
  /// the next call.
  /// Cost: a look-up; planning where `counts` are given and the first time.
  Recipe& find(const schedule::Problem& problem, DType dtype, ReduceOp::Kind reduce);

  /// The recipe's part, planned the first time. Throws Error(bug) if one for registered memory does
  /// not begin with the meeting.
  const PlannedPart& part(Recipe& recipe, schedule::Access access);

 private:
  /// What differs between a group's problems, but for `counts`.
  struct Key {
    std::int64_t count = 0;
    std::int64_t rest = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  static Key key_of(const schedule::Problem& problem, DType dtype, ReduceOp::Kind reduce);
  kernels::Stores stores_of(const Recipe& recipe) const;
  Recipe make(schedule::Problem problem, DType dtype, ReduceOp::Kind reduce);

  Surroundings surroundings_;
  Planner& planner_;
  std::unordered_map<Key, Recipe, KeyHash> recipes_;
  Key last_key_{.count = -1};
  Recipe* last_ = nullptr;
  std::optional<Recipe> uneven_;  // problems with counts are not worth remembering
};

}  // namespace peal::engine
