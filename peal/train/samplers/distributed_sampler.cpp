#include "peal/train/samplers/distributed_sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/data/permutation.h"

namespace peal::train {

struct DistributedSampler::State {
  std::size_t size;
  Rank rank;
  int ranks;
  SamplerOptions options;

  std::uint64_t epoch = 0;
  std::vector<std::size_t> mine;  // this rank's samples, from position `begin` of the epoch on
  std::size_t begin = 0;
  std::size_t taken = 0;   // samples of `mine` that are taken
  std::size_t resume = 0;  // the position at which the next reset() begins

  std::size_t position() const {
    return std::min(size, begin + taken * static_cast<std::size_t>(ranks));
  }

  void start(std::size_t from) {
    if (from > size) {
      throw Error(ErrorKind::kUsage,
                  c10::str("position ", from, " lies beyond an epoch of ", size, " samples"));
    }
    std::vector<std::size_t> order;
    if (options.order == SamplerOptions::Order::kShuffled) {
      order = data::permutation(size, options.seed, epoch);
    } else {
      order.resize(size);
      std::iota(order.begin(), order.end(), std::size_t{0});
    }
    mine = data::shard_of(order, rank, ranks, options.remainder, from);
    begin = from;
    taken = 0;
  }
};

DistributedSampler::DistributedSampler(std::size_t size,
                                       Rank rank,
                                       int ranks,
                                       SamplerOptions options)
    : state_(std::make_shared<State>()) {
  if (rank < 0 || rank >= ranks) {
    throw Error(ErrorKind::kUsage,
                c10::str("a sampler for rank ",
                         rank,
                         " of ",
                         ranks,
                         " ranks: pass a rank from 0 on, "
                         "below the number of ranks"));
  }
  state_->size = size;
  state_->rank = rank;
  state_->ranks = ranks;
  state_->options = options;
  state_->start(0);
}

void DistributedSampler::set_epoch(std::uint64_t epoch) {
  state_->epoch = epoch;
  state_->resume = 0;
  state_->start(0);
}

std::uint64_t DistributedSampler::epoch() const { return state_->epoch; }

std::size_t DistributedSampler::position() const { return state_->position(); }

void DistributedSampler::seek(std::size_t position) {
  state_->start(position);
  state_->resume = position;
}

std::size_t DistributedSampler::remaining() const { return state_->mine.size() - state_->taken; }

void DistributedSampler::reset(std::optional<std::size_t> size) {
  state_->size = size.value_or(state_->size);
  state_->start(std::exchange(state_->resume, 0));
}

std::optional<std::vector<std::size_t>> DistributedSampler::next(std::size_t batch_size) {
  const std::size_t count = std::min(batch_size, remaining());
  if (count == 0) return std::nullopt;
  const auto first = state_->mine.begin() + static_cast<std::ptrdiff_t>(state_->taken);
  state_->taken += count;
  return std::vector<std::size_t>(first, first + static_cast<std::ptrdiff_t>(count));
}

void DistributedSampler::save(torch::serialize::OutputArchive& archive) const {
  const auto number = [](std::uint64_t value) {
    return torch::tensor(static_cast<std::int64_t>(value), torch::kInt64);
  };
  archive.write("epoch", number(epoch()), /*is_buffer=*/true);
  archive.write("position", number(position()), /*is_buffer=*/true);
}

void DistributedSampler::load(torch::serialize::InputArchive& archive) {
  const auto number = [&](const char* key) {
    torch::Tensor value;
    archive.read(key, value, /*is_buffer=*/true);
    return static_cast<std::uint64_t>(value.item<std::int64_t>());
  };
  set_epoch(number("epoch"));
  seek(number("position"));
}

}  // namespace peal::train
