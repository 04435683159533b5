// Which device a rank trains on.
#pragma once

#include <span>
#include <vector>

#include <torch/types.h>

#include "peal/base/units.h"

namespace peal::train {

/// The devices with the numbers `gpus`, as of an option `--gpus 0 1`. Without numbers: all GPUs of
/// this machine, or the CPU if it has none.
/// Errors: usage, for a number that this machine does not have: "GPU 3 is not available: this
///   machine has 1 GPU".
std::vector<torch::Device> choose_devices(std::span<const int> gpus = {});

/// The device of a rank: its local rank is an index into `devices`.
/// Errors: usage (more local ranks than GPUs). All local ranks may share the CPU.
torch::Device device_of(int local_rank, std::span<const torch::Device> devices);

}  // namespace peal::train
