#include "peal/train/samplers/epoch_sampler.h"

#include <string>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

void write_number(torch::serialize::OutputArchive& archive,
                  const std::string& key,
                  std::uint64_t value) {
  const auto number = static_cast<std::int64_t>(value);
  archive.write(key, torch::tensor(number, torch::kInt64), /*is_buffer=*/true);
}

std::uint64_t number_of(const torch::Tensor& tensor) {
  return static_cast<std::uint64_t>(tensor.item<std::int64_t>());
}

std::uint64_t read_number(torch::serialize::InputArchive& archive, const std::string& key) {
  torch::Tensor value;
  archive.read(key, value, /*is_buffer=*/true);
  return number_of(value);
}

/// Archives of earlier versions lack the number.
void require_same_number(torch::serialize::InputArchive& archive,
                         const std::string& key,
                         std::uint64_t mine) {
  torch::Tensor value;
  if (!archive.try_read(key, value, /*is_buffer=*/true) || number_of(value) == mine) return;
  throw Error(ErrorKind::kUsage,
              c10::str("the archive is of a sampler with ",
                       key,
                       " ",
                       number_of(value),
                       ", and this sampler has ",
                       key,
                       " ",
                       mine,
                       ": a position in other data or in another order means nothing here"));
}

}  // namespace

EpochSampler::EpochSampler(data::EpochOptions options)
    : cursor_(std::make_shared<data::EpochCursor>(std::move(options))) {}

void EpochSampler::set_epoch(std::uint64_t epoch) { cursor_->set_epoch(epoch); }

std::uint64_t EpochSampler::epoch() const { return cursor_->epoch(); }

std::uint64_t EpochSampler::seed() const { return cursor_->seed(); }

std::size_t EpochSampler::size() const { return cursor_->size(); }
Rank EpochSampler::rank() const { return cursor_->rank(); }
int EpochSampler::ranks() const { return cursor_->ranks(); }

std::size_t EpochSampler::position() const { return cursor_->position(); }

void EpochSampler::seek(std::size_t position) { cursor_->seek(position); }

std::size_t EpochSampler::remaining() const { return cursor_->remaining(); }

std::size_t EpochSampler::batches(std::size_t batch_size, data::ShortBatch short_batch) const {
  return data::batch_count(remaining(), batch_size, short_batch);
}

void EpochSampler::reset(std::optional<std::size_t> size) { cursor_->restart(size); }

std::optional<std::vector<std::size_t>> EpochSampler::next(std::size_t batch_size) {
  return cursor_->next(batch_size);
}

void EpochSampler::save(torch::serialize::OutputArchive& archive) const {
  write_number(archive, "epoch", epoch());
  write_number(archive, "position", position());
  write_number(archive, "size", size());
  write_number(archive, "seed", seed());
}

void EpochSampler::load(torch::serialize::InputArchive& archive) {
  require_same_number(archive, "size", size());
  require_same_number(archive, "seed", seed());
  const std::uint64_t epoch = read_number(archive, "epoch");
  const std::uint64_t position = read_number(archive, "position");
  cursor_->set_epoch(epoch);
  cursor_->seek(position);
}

}  // namespace peal::train
