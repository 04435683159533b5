// The status that the ranks sum at the end of a backward pass, in one small all_reduce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "peal/base/units.h"

namespace peal::train {

/// Integers, so that the sum over the ranks is exact. Fill it, sum `words` over the ranks in place,
/// then read it.
class PassStatus {
 public:
  PassStatus() : PassStatus(0, 1) {}
  PassStatus(std::size_t parameters, int ranks);

  // ---- before the sum: what this rank has done
  void clear();
  /// The module differs from the one on which the ranks agreed.
  void set_module_changed() { words_[kChanged] = 1; }
  /// Gradients have arrived in another order than that of the buckets.
  void set_other_order() { words_[kOtherOrder] = 1; }
  /// This rank wants to stop.
  void set_stop() { words_[kStop] = 1; }
  /// This rank, which is `rank`, had `samples` samples.
  void set_active(Rank rank, std::int64_t samples);
  enum class Gradient : unsigned char { kDense, kSparse };
  void set_reached(std::size_t parameter, Gradient gradient);

  std::span<std::int64_t> words() { return words_; }

  // ---- after the sum
  bool some_module_changed() const { return words_[kChanged] > 0; }
  bool some_other_order() const { return words_[kOtherOrder] > 0; }
  bool some_wants_to_stop() const { return words_[kStop] > 0; }
  /// Of all ranks.
  std::int64_t samples() const { return words_[kSamples]; }
  /// The ranks that had data.
  int active_ranks() const;
  /// The lowest rank that had data; 0 if no rank had data.
  Rank first_active() const;
  /// The number of ranks that have reached the parameter.
  int reached(std::size_t parameter) const;
  /// Whether some rank has reached the parameter with a sparse gradient.
  bool is_sparse(std::size_t parameter) const;

 private:
  enum Word : std::size_t { kChanged, kOtherOrder, kStop, kSamples, kFirstRanks };
  static constexpr int kRanksOfWord = 62;
  static constexpr std::int64_t kSparseUnit = std::int64_t{1} << 32;

  int ranks_;
  std::size_t first_parameter_;  // the word of parameter 0
  // changed | other order | stop | samples | a bit for each active rank ... | a word for each
  // parameter: the ranks that reached it, and kSparseUnit for each that reached it with a sparse
  // gradient
  std::vector<std::int64_t> words_;
};

}  // namespace peal::train
