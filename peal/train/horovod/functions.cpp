#include "peal/train/horovod/functions.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/train/horovod/context.h"
#include "peal/train/horovod/optimizer_values.h"

namespace peal::hvd {
namespace {

constexpr Bytes kNameLimit = 64_KiB;

Tensor tensor_of(const std::string& bytes) {
  return torch::tensor(
      at::ArrayRef<std::uint8_t>(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()),
      torch::kUInt8);
}

std::string bytes_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.const_data_ptr<std::uint8_t>()),
          static_cast<std::size_t>(tensor.numel())};
}

/// Options of one of several operations of a call.
OperationOptions part_of(const OperationOptions& options, const char* part) {
  OperationOptions result = options;
  if (!result.name.empty()) result.name += part;
  return result;
}

void broadcast_all(const NamedTensors& tensors, Rank root, const ProcessSet& set) {
  std::vector<Handle<Tensor>> handles;
  handles.reserve(tensors.size());
  for (const auto& item : tensors) {
    if (!item.value().defined()) continue;
    handles.push_back(
        broadcast_async_(item.value(), root, {.name = item.key(), .process_set = set}));
  }
  for (const Handle<Tensor>& handle : handles) handle.synchronize();
}

// ---- the state of an optimizer

/// All but the values of tensors.
std::string describe(const train::OptimizerState& state) {
  ByteWriter writer;
  writer.put_text(state.algorithm).put_u64(state.groups.size());
  for (const auto& group : state.groups) {
    writer.put_u64(group.options.size());
    for (const auto& [name, value] : group.options) {
      writer.put_text(name).put_u64(std::bit_cast<std::uint64_t>(value));
    }
    writer.put_u64(group.parameters.size());
    for (const std::string& name : group.parameters) writer.put_text(name);
  }
  writer.put_u64(state.parameters.size());
  for (const auto& [name, fields] : state.parameters) {
    writer.put_text(name).put_u64(fields.size());
    for (const auto& [field, tensor] : fields) {
      writer.put_text(field).put_u8(static_cast<std::uint8_t>(tensor.scalar_type()));
      writer.put_u64(static_cast<std::uint64_t>(tensor.dim()));
      for (const std::int64_t size : tensor.sizes()) writer.put_i64(size);
    }
  }
  return std::move(writer).take();
}

Tensor described_tensor(ByteReader& reader) {
  const auto type = static_cast<torch::ScalarType>(reader.get_u8());
  std::vector<std::int64_t> sizes(reader.get_u64());
  for (std::int64_t& size : sizes) size = reader.get_i64();
  return torch::empty(sizes, type);
}

/// The state of a description, with tensors that have yet to be filled.
train::OptimizerState described_state(std::string_view description) {
  ByteReader reader(description, "state of an optimizer");
  train::OptimizerState state;
  state.algorithm = reader.get_text(kNameLimit);
  state.groups.resize(reader.get_u64());
  for (auto& group : state.groups) {
    for (std::uint64_t options = reader.get_u64(); options > 0; --options) {
      const std::string name(reader.get_text(kNameLimit));
      group.options[name] = std::bit_cast<double>(reader.get_u64());
    }
    for (std::uint64_t names = reader.get_u64(); names > 0; --names) {
      group.parameters.emplace_back(reader.get_text(kNameLimit));
    }
  }
  for (std::uint64_t parameters = reader.get_u64(); parameters > 0; --parameters) {
    auto& fields = state.parameters[std::string(reader.get_text(kNameLimit))];
    for (std::uint64_t count = reader.get_u64(); count > 0; --count) {
      const std::string field(reader.get_text(kNameLimit));
      fields[field] = described_tensor(reader);
    }
  }
  reader.finish();
  return state;
}

NamedTensors tensors_of(const train::OptimizerState& state) {
  NamedTensors tensors;
  for (const auto& [name, fields] : state.parameters) {
    for (const auto& [field, tensor] : fields) {
      tensors.insert("optimizer_state." + name + "." + field, tensor);
    }
  }
  return tensors;
}

void set_zero_gradients(torch::optim::Optimizer& optimizer) {
  for (auto& group : optimizer.param_groups()) {
    for (Tensor& parameter : group.params()) {
      if (parameter.requires_grad() && !parameter.grad().defined()) {
        parameter.mutable_grad() = torch::zeros_like(parameter);
      }
    }
  }
}

}  // namespace

void broadcast_parameters(const NamedTensors& parameters,
                          Rank root_rank,
                          const ProcessSet& process_set) {
  broadcast_all(parameters, root_rank, process_set);
}

void broadcast_parameters(const torch::nn::Module& module,
                          Rank root_rank,
                          const ProcessSet& process_set) {
  NamedTensors all = module.named_parameters();
  for (const auto& item : module.named_buffers()) all.insert(item.key(), item.value());
  broadcast_all(all, root_rank, process_set);
}

void broadcast_optimizer_state(torch::optim::Optimizer& optimizer,
                               Rank root_rank,
                               const ProcessSet& process_set) {
  const torch::NoGradGuard no_grad;
  const train::NamedParameters named = numbered_parameters(optimizer);
  const train::OptimizerState own = train::read_optimizer_state(optimizer, named);
  const bool is_root = current()->world()->rank() == root_rank;
  const std::string description =
      broadcast_bytes(is_root ? describe(own) : std::string(),
                      root_rank,
                      {.name = "optimizer_state", .process_set = process_set});
  const train::OptimizerState state = is_root ? own : described_state(description);
  broadcast_all(tensors_of(state), root_rank, process_set);
  if (!is_root) train::load_optimizer_state(optimizer, named, state);
  set_zero_gradients(optimizer);
}

std::string broadcast_bytes(const std::string& bytes,
                            Rank root_rank,
                            const OperationOptions& options) {
  const Tensor size = torch::tensor(static_cast<std::int64_t>(bytes.size()), torch::kInt64);
  broadcast_(size, root_rank, part_of(options, ".size"));
  const bool is_root = current()->world()->rank() == root_rank;
  const Tensor content =
      is_root ? tensor_of(bytes) : torch::empty({size.item<std::int64_t>()}, torch::kUInt8);
  broadcast_(content, root_rank, part_of(options, ".bytes"));
  return bytes_of(content);
}

std::vector<std::string> allgather_bytes(const std::string& bytes,
                                         const OperationOptions& options) {
  const Tensor own_size = torch::tensor({static_cast<std::int64_t>(bytes.size())}, torch::kInt64);
  const Tensor sizes = allgather(own_size, part_of(options, ".size"));
  const std::string all = bytes_of(allgather(tensor_of(bytes), part_of(options, ".bytes")));
  std::vector<std::string> texts;
  std::size_t at = 0;
  for (std::int64_t i = 0; i < sizes.numel(); ++i) {
    const auto size = static_cast<std::size_t>(sizes[i].item<std::int64_t>());
    texts.push_back(all.substr(at, size));
    at += size;
  }
  return texts;
}

}  // namespace peal::hvd
