#include "peal/train/checkpoint/random_state.h"

#include <ATen/CPUGeneratorImpl.h>

#include <cstdint>
#include <mutex>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/base/mixed.h"
#include "peal/train/checkpoint/about_file.h"

namespace peal::train {
namespace {

constexpr const char* kState = "random.state";
constexpr const char* kSeed = "random.seed";

}  // namespace

void save_random_state(Checkpoint& checkpoint) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::scoped_lock lock(generator.mutex());
  checkpoint.rank_tensors[kState] = generator.get_state();
  checkpoint.values.set(kSeed, generator.current_seed());
}

void load_random_state(const CheckpointReader& checkpoint, Rank rank, int ranks) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const auto seed = checkpoint.values().number<std::uint64_t>(kSeed);
  if (ranks != checkpoint.ranks()) {
    const auto step = static_cast<std::uint64_t>(checkpoint.step());
    const std::scoped_lock lock(generator.mutex());
    generator.set_current_seed(
        mixed(mixed(mixed(0, seed), static_cast<std::uint64_t>(rank)), step));
    return;
  }
  const TensorMap tensors = checkpoint.rank_tensors(rank);
  const auto state = tensors.find(kState);
  if (state == tensors.end()) {
    throw Error(
        ErrorKind::kResource,
        checkpoint.path().string() + ": there is no random state of rank " + std::to_string(rank));
  }
  about_file(checkpoint.path(), [&] {  // LibTorch refuses a state of another size
    const std::scoped_lock lock(generator.mutex());
    generator.set_state(state->second);
  });
}

}  // namespace peal::train
