#include "peal/train/replicas/replica_runner.h"

#include <ATen/Parallel.h>
#include <ATen/ThreadLocalState.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/replicas/random_stream.h"
#include "peal/train/replicas/replica_threads.h"

namespace peal::train {
namespace {

void require_present(const torch::Device& device) {
  const auto present = static_cast<int>(torch::cuda::device_count());
  const int index = device.has_index() ? device.index() : 0;  // the current GPU
  if (!device.is_cuda() || index < present) return;
  throw Error(ErrorKind::kUsage,
              c10::str("DataParallel: ",
                       device,
                       " is not available: this machine has ",
                       present,
                       present == 1 ? " GPU" : " GPUs"));
}

std::vector<torch::Device> devices_of(const torch::nn::Module& module,
                                      const ReplicaOptions& options) {
  for (const torch::Device& device : options.devices) require_present(device);
  if (!options.devices.empty()) return options.devices;
  const std::vector<torch::Tensor> parameters = module.parameters();
  if (parameters.empty() || !parameters[0].is_cuda()) return {torch::kCPU};
  std::vector<torch::Device> devices;
  for (torch::DeviceIndex i = 0; i < static_cast<torch::DeviceIndex>(torch::cuda::device_count());
       ++i) {
    devices.emplace_back(torch::kCUDA, i);
  }
  return devices;
}

/// Clones the module, as far as its class allows that.
ReplicaSet::Make cloner(const std::shared_ptr<torch::nn::Module>& module) {
  return [module](const torch::Device& device) {
    try {
      return module->clone(device);
    } catch (const c10::Error& error) {
      throw Error(ErrorKind::kUsage,
                  c10::str("DataParallel cannot clone the module ",
                           module->name(),
                           ": ",
                           error.what_without_backtrace(),
                           ". Derive it from torch::nn::Cloneable and register its parameters in "
                           "reset(), or pass a function that makes another one"));
    }
  };
}

/// The current stream of this thread on each device.
std::vector<c10::Stream> streams_on(const std::vector<torch::Device>& devices) {
  std::vector<c10::Stream> streams;
  for (const torch::Device& device : devices) {
    streams.push_back(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  }
  return streams;
}

int threads_for_each(const ReplicaOptions& options, std::size_t replicas) {
  if (options.threads > 0) return options.threads;
  return std::max(1, at::get_num_threads() / static_cast<int>(replicas));
}

/// Throws an Error that names the replica, with the exception nested in it.
[[noreturn]] void throw_error_of(std::size_t replica,
                                 const torch::Device& device,
                                 const std::exception_ptr& thrown) {
  const auto text = [&](std::string_view what) {
    return c10::str("DataParallel: replica ", replica, " on ", device, " failed: ", what);
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    std::throw_with_nested(Error(error.kind(), text(error.message()), error.details()));
  } catch (const c10::OutOfMemoryError& error) {
    std::throw_with_nested(Error(ErrorKind::kResource, text(error.what_without_backtrace())));
  } catch (const c10::Error& error) {
    std::throw_with_nested(Error(ErrorKind::kUsage, text(error.what_without_backtrace())));
  } catch (const std::bad_alloc& error) {
    std::throw_with_nested(Error(ErrorKind::kResource, text(error.what())));
  } catch (const std::exception& error) {
    std::throw_with_nested(Error(ErrorKind::kUsage, text(error.what())));
  } catch (...) {
    std::throw_with_nested(
        Error(ErrorKind::kUsage, text("an exception that is not a std::exception")));
  }
}

}  // namespace

ReplicaRunner::ReplicaRunner(std::shared_ptr<torch::nn::Module> module,
                             const ReplicaOptions& options,
                             ReplicaSet::Make make)
    : options_(options),
      set_(module, devices_of(*module, options), make ? std::move(make) : cloner(module)) {
  const std::size_t count = set_.devices().size();
  if (count == 1) return;
  threads_ =
      std::make_unique<ReplicaThreads>(static_cast<int>(count), threads_for_each(options, count));
}

ReplicaRunner::~ReplicaRunner() = default;

torch::Device ReplicaRunner::output_device() const {
  return options_.output_device.value_or(set_.devices()[0]);
}

void ReplicaRunner::refresh(std::size_t used) {
  if (used > 1) set_.refresh(used, times_);
}

void ReplicaRunner::apply(std::size_t used, const std::function<void(std::size_t)>& task) {
  std::vector<std::exception_ptr> thrown(1);
  if (used == 1) {  // the module itself needs no other thread
    try {
      task(0);
    } catch (...) {
      thrown[0] = std::current_exception();
    }
  } else {
    const at::ThreadLocalState state;
    const std::vector<c10::Stream> streams = streams_on(set_.devices());
    const std::uint64_t seed = draw_seed();
    thrown = threads_->run(static_cast<int>(used), [&](int index) {
      const at::ThreadLocalStateGuard as_caller(state);
      const RandomStream stream(seed, index);
      const c10::StreamGuard on_device(streams[static_cast<std::size_t>(index)]);
      task(static_cast<std::size_t>(index));
    });
  }
  for (std::size_t i = 0; i < thrown.size(); ++i) {
    if (thrown[i]) throw_error_of(i, set_.devices()[i], thrown[i]);
  }
}

}  // namespace peal::train
