#include "peal/train/data/epoch_cursor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::train::data {

EpochCursor::EpochCursor(EpochOptions options) : options_(std::move(options)) {
  if (options_.rank < 0 || options_.rank >= options_.ranks) {
    throw Error(ErrorKind::kUsage,
                fmt::format("a sampler for rank {} of {} ranks: pass a rank from 0 on, below the "
                            "number of ranks",
                            options_.rank,
                            options_.ranks));
  }
  if (!options_.order) {
    throw Error(ErrorKind::kUsage,
                "a sampler without an order of the samples: set EpochOptions::order, for example "
                "to permutation");
  }
}

void EpochCursor::Progress::advance(const Progress& step) {
  samples += step.samples;
  at_end = at_end || step.at_end;
}

void EpochCursor::begin(std::uint64_t epoch, std::size_t position) {
  if (position > options_.size) {
    throw Error(ErrorKind::kUsage,
                fmt::format("position {} lies beyond an epoch of {} samples: pass a position of "
                            "the same data set",
                            position,
                            options_.size));
  }
  epoch_ = epoch;
  begin_ = position;
  mine_.clear();
  order_is_loaded_ = in_use_ = closed_ = counting_uses_ = false;
  taken_ = used_ = {};
  unused_.clear();
}

void EpochCursor::set_epoch(std::uint64_t epoch) {
  begin(epoch, !in_use_ && epoch == epoch_ ? begin_ : 0);
}

void EpochCursor::seek(std::size_t position) { begin(epoch_, position); }

void EpochCursor::restart(std::optional<std::size_t> size) {
  options_.size = size.value_or(options_.size);
  if (in_use_) {
    begin(epoch_ + 1, 0);
  } else {
    begin(epoch_, begin_);
  }
  counting_uses_ = std::exchange(count_after_restart_, false);
}

void EpochCursor::load_order() {
  if (order_is_loaded_) return;
  const std::vector<std::size_t> order = options_.order(options_.size, options_.seed, epoch_);
  if (order.size() != options_.size) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("the order of epoch {} has {} samples instead of {}: the order function "
                    "must return as many samples as it is asked for",
                    epoch_,
                    order.size(),
                    options_.size));
  }
  mine_ = shard_of(order, options_.rank, options_.ranks, options_.remainder, begin_);
  order_is_loaded_ = true;
}

std::optional<std::vector<std::size_t>> EpochCursor::next(std::size_t count) {
  in_use_ = true;
  if (closed_) return std::nullopt;
  load_order();
  const std::size_t left = mine_.size() - taken_.samples;
  const Progress step = {std::min(count, left), count > left};
  const auto first = mine_.begin() + static_cast<std::ptrdiff_t>(taken_.samples);
  taken_.advance(step);
  if (step.samples == 0) return std::nullopt;
  if (counting_uses_) unused_.push_back(step);
  return std::vector<std::size_t>(first, first + static_cast<std::ptrdiff_t>(step.samples));
}

void EpochCursor::use() {
  if (unused_.empty()) {
    throw Error(ErrorKind::kUsage,
                "a batch was used that this sampler has not given, or that it does not count: pass "
                "the sampler of the loader, or a copy of it");
  }
  used_.advance(unused_.front());
  unused_.pop_front();
}

void EpochCursor::use_all() {
  used_ = {share(), true};
  taken_ = used_;
  unused_.clear();
}

std::size_t EpochCursor::position() const {
  if (counted().at_end) return options_.size;
  return std::min(options_.size,
                  begin_ + counted().samples * static_cast<std::size_t>(options_.ranks));
}

std::size_t EpochCursor::share() const {
  return share_of(options_.size, options_.rank, options_.ranks, options_.remainder, begin_);
}

}  // namespace peal::train::data
