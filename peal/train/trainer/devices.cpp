#include "peal/train/trainer/devices.h"

#include <string>

#include <torch/torch.h>

#include "peal/base/error.h"

namespace peal::train {

std::vector<torch::Device> choose_devices(std::span<const int> gpus) {
  const auto present = static_cast<int>(torch::cuda::device_count());
  std::vector<torch::Device> devices;
  for (const int gpu : gpus) {
    if (gpu < 0 || gpu >= present) {
      throw Error(ErrorKind::kUsage,
                  "GPU " + std::to_string(gpu) + " is not available: this machine has " +
                      std::to_string(present) + (present == 1 ? " GPU" : " GPUs") +
                      (present == 0 ? "; leave out the numbers to train on the CPU"
                                    : "; their numbers begin with 0"));
    }
    devices.emplace_back(torch::kCUDA, static_cast<c10::DeviceIndex>(gpu));
  }
  if (!gpus.empty()) return devices;
  for (int gpu = 0; gpu < present; ++gpu) {
    devices.emplace_back(torch::kCUDA, static_cast<c10::DeviceIndex>(gpu));
  }
  if (devices.empty()) devices.emplace_back(torch::kCPU);
  return devices;
}

torch::Device device_of(int local_rank, std::span<const torch::Device> devices) {
  if (devices.empty()) {
    throw Error(ErrorKind::kUsage, "a rank needs a device: pass those of choose_devices()");
  }
  if (devices.front().is_cpu()) return devices.front();
  if (local_rank < 0 || local_rank >= std::ssize(devices)) {
    throw Error(ErrorKind::kUsage,
                "local rank " + std::to_string(local_rank) + " has no GPU of its own among " +
                    std::to_string(devices.size()) +
                    ": start as many ranks on this machine as it has GPUs");
  }
  return devices[static_cast<std::size_t>(local_rank)];
}

}  // namespace peal::train
