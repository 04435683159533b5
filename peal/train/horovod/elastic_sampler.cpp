#include "peal/train/horovod/elastic_sampler.h"

#include <algorithm>
#include <numeric>

#include <torch/torch.h>

#include "peal/train/data/permutation.h"
#include "peal/train/horovod/init.h"

namespace peal::hvd {

struct ElasticSampler::Shared {
  std::size_t samples = 0;
  Order order = Order::kShuffled;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::size_t processed = 0;
  std::size_t ranks = 1;
  std::vector<std::size_t> mine = {};
  std::size_t taken = 0;

  std::vector<std::size_t> ordered() const {
    if (order == Order::kShuffled) return train::data::permutation(samples, seed, epoch);
    std::vector<std::size_t> all(samples);
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }

  void divide() {
    ranks = static_cast<std::size_t>(hvd::size());
    taken = 0;
    mine.clear();
    const std::vector<std::size_t> all = ordered();
    const std::size_t rest = samples - processed;
    const std::size_t each = (rest + ranks - 1) / ranks;
    for (std::size_t i = 0; i < each; ++i) {
      const std::size_t place = i * ranks + static_cast<std::size_t>(hvd::rank());
      mine.push_back(all[processed + place % rest]);
    }
  }
};

ElasticSampler::ElasticSampler(std::size_t size, Order order, std::uint64_t seed)
    : shared_(std::make_shared<Shared>()) {
  shared_->samples = size;
  shared_->order = order;
  shared_->seed = seed;
  shared_->divide();
}

std::uint64_t ElasticSampler::epoch() const { return shared_->epoch; }
std::size_t ElasticSampler::processed() const { return shared_->processed; }
std::size_t ElasticSampler::size() const { return shared_->mine.size(); }

void ElasticSampler::set_epoch(std::uint64_t epoch) { seek(epoch, 0); }

void ElasticSampler::record_batch(std::size_t batch_size) {
  // Beyond the end are repeated samples.
  shared_->processed = std::min(shared_->processed + batch_size * shared_->ranks, shared_->samples);
}

void ElasticSampler::seek(std::uint64_t epoch, std::size_t processed) {
  shared_->epoch = epoch;
  shared_->processed = std::min(processed, shared_->samples);
  // A state may be restored between two rounds. Its sync divides the samples in the next round.
  if (is_initialized()) shared_->divide();
}

void ElasticSampler::reset(std::optional<std::size_t> size) {
  if (size) shared_->samples = *size;
  shared_->divide();
}

std::optional<std::vector<std::size_t>> ElasticSampler::next(std::size_t batch_size) {
  const std::size_t count = std::min(batch_size, shared_->mine.size() - shared_->taken);
  if (count == 0) return std::nullopt;
  const auto first = shared_->mine.begin() + static_cast<std::ptrdiff_t>(shared_->taken);
  shared_->taken += count;
  return std::vector<std::size_t>(first, first + static_cast<std::ptrdiff_t>(count));
}

void ElasticSampler::save(torch::serialize::OutputArchive& archive) const {
  archive.write("epoch", torch::tensor(static_cast<std::int64_t>(epoch()), torch::kInt64));
  archive.write("processed", torch::tensor(static_cast<std::int64_t>(processed()), torch::kInt64));
}

void ElasticSampler::load(torch::serialize::InputArchive& archive) {
  torch::Tensor saved_epoch, saved_processed;
  archive.read("epoch", saved_epoch);
  archive.read("processed", saved_processed);
  seek(static_cast<std::uint64_t>(saved_epoch.item<std::int64_t>()),
       static_cast<std::size_t>(saved_processed.item<std::int64_t>()));
}

}  // namespace peal::hvd
