// Where a rank is in its epochs: which samples come next, which are used, and the position that all
// ranks have together. EpochSampler (train/samplers) gives it to data loaders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "peal/base/units.h"
#include "peal/train/data/shard.h"

namespace peal::train::data {

/// The samples of an epoch in the order that all ranks share: `size` indices, which depend only on
/// the arguments. `permutation` (permutation.h) is such a function.
using EpochOrder =
    std::function<std::vector<std::size_t>(std::size_t size, std::uint64_t seed, std::uint64_t)>;

struct EpochOptions {
  std::size_t size = 0;  // samples of an epoch, on all ranks together
  Rank rank = 0;
  int ranks = 1;
  Remainder remainder = Remainder::kPad;
  std::uint64_t seed = 0;
  EpochOrder order = {};  // must be set
};

/// States: epoch begun -> (next) in use -> (next gives no samples) over. restart() leads from "in
/// use" and "over" to the next epoch; an epoch that is not in use yet begins unchanged.
/// Threads: one at a time.
class EpochCursor {
 public:
  /// Errors: usage (a rank outside of 0 .. ranks - 1, no order).
  explicit EpochCursor(EpochOptions options);

  /// Begins this epoch. If seek() has just set a position in the same epoch, the position stays.
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const { return epoch_; }
  std::uint64_t seed() const { return options_.seed; }
  std::size_t size() const { return options_.size; }
  Rank rank() const { return options_.rank; }
  int ranks() const { return options_.ranks; }

  /// Begins the epoch at `position`. Errors: usage (beyond the end).
  void seek(std::size_t position);
  /// Begins the next epoch if the current one is in use or over. With `size`, epochs have this
  /// size from now on. Errors: usage (an epoch that seek() has begun beyond the new end).
  void restart(std::optional<std::size_t> size = std::nullopt);

  /// The next `count` samples; fewer at the end of the epoch, and nullopt after that.
  std::optional<std::vector<std::size_t>> next(std::size_t count);
  /// Until the next epoch begins, next() gives no samples.
  void close() { closed_ = true; }

  /// From the next restart() until the one after it, samples count when they are used, not when
  /// they are taken.
  void count_uses_after_restart() { count_after_restart_ = true; }
  /// The oldest result of next() that is not used yet is now used.
  /// Errors: usage (all are used, or uses do not count in this epoch).
  void use();
  /// All that was taken is now used, and the epoch is over.
  void use_all();

  /// The number of samples that all ranks together have taken (or used, if uses count), if each
  /// rank has made the same calls of next() as this rank. At the end it is the size of the epoch.
  std::size_t position() const;
  /// The number of samples that this rank has not taken (or used) yet.
  std::size_t remaining() const { return share() - counted().samples; }

 private:
  struct Progress {
    std::size_t samples = 0;
    // Some call gave fewer samples than it was asked for, so all ranks are at the end.
    bool at_end = false;

    void advance(const Progress& step);
  };

  void begin(std::uint64_t epoch, std::size_t position);
  void load_order();
  std::size_t share() const;
  const Progress& counted() const { return counting_uses_ ? used_ : taken_; }

  EpochOptions options_;
  std::uint64_t epoch_ = 0;
  std::size_t begin_ = 0;          // the position at which the epoch began
  std::vector<std::size_t> mine_;  // this rank's samples from there on
  bool order_is_loaded_ = false;   // only an epoch in use pays for its order
  bool in_use_ = false;
  bool closed_ = false;

  Progress taken_;
  Progress used_;
  std::deque<Progress> unused_;  // results of next(), the oldest first
  bool counting_uses_ = false;
  bool count_after_restart_ = false;
};

}  // namespace peal::train::data
