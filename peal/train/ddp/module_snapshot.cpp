#include "peal/train/ddp/module_snapshot.h"

#include <algorithm>
#include <span>
#include <utility>

#include <torch/torch.h>

#include "peal/train/ddp/checksum.h"
#include "peal/train/tensors/staged.h"

namespace peal::train {
namespace {

std::string describe_tensor(const std::string& name,
                            const torch::Tensor& tensor,
                            std::string_view suffix) {
  std::string text = c10::str(name, " (", tensor.scalar_type(), ", shape ", tensor.sizes());
  if (tensor.layout() == torch::kStrided) text += c10::str(", strides ", tensor.strides());
  if (tensor.layout() != torch::kStrided) text += c10::str(", ", tensor.layout());
  if (!tensor.is_cpu()) text += ", on " + c10::DeviceTypeName(tensor.device().type(), true);
  return text.append(suffix) + ")";
}

}  // namespace

ModuleSnapshot::ModuleSnapshot(const ModelTensors& model) {
  for (const auto& item : model.parameters()) parameters_.emplace_back(item.key(), *item);
}

ModuleSnapshot::Change ModuleSnapshot::change(const ModelTensors& now) const {
  Change change = Change::kNone;
  std::size_t count = 0;
  now.visit_parameters([&](const torch::Tensor& parameter) {
    const std::size_t i = count++;
    if (i >= parameters_.size() || !parameters_[i].has_layout_of(parameter)) {
      change = Change::kLayout;
    } else if (change == Change::kNone && !parameters_[i].has_memory_of(parameter)) {
      change = Change::kMemory;
    }
  });
  return count == parameters_.size() ? change : Change::kLayout;
}

std::vector<std::string> ModuleSnapshot::describe(const ModelTensors& now) const {
  std::vector<std::string> lines;
  const std::vector<NamedTensor> parameters = now.parameters();
  for (const auto& item : parameters) {
    const auto before = std::ranges::find(parameters_, item.key(), &Parameter::name);
    const bool replaced = before != parameters_.end() && !before->tensor.is_same(*item);
    // Ranks have GPUs of other numbers. But a module has several devices on all ranks, or on none.
    const bool is_elsewhere = item->device() != parameters.front()->device();
    lines.push_back(describe_tensor(
        item.key(),
        *item,
        c10::str(is_elsewhere ? ", on another device than " + parameters.front().key() : "",
                 item->requires_grad() ? "" : ", frozen",
                 replaced ? ", replaced" : "")));
  }
  for (const auto& item : now.buffers()) {
    lines.push_back(describe_tensor(item.key(), *item, ""));
  }
  return lines;
}

ModuleSnapshot::Parameter::Parameter(std::string key, const torch::Tensor& value)
    : name(std::move(key)),
      tensor(value),
      type(value.scalar_type()),
      device(value.device()),
      layout(value.layout()),
      sizes(value.sizes().vec()),
      strides(value.strides().vec()),
      requires_grad(value.requires_grad()),
      storage(value.storage().getWeakStorageImpl()),
      offset(value.storage_offset()) {}

bool ModuleSnapshot::Parameter::has_layout_of(const torch::Tensor& value) const {
  return tensor.is_same(value) && type == value.scalar_type() && device == value.device() &&
         layout == value.layout() && value.sizes() == sizes && value.strides() == strides &&
         requires_grad == value.requires_grad();
}

bool ModuleSnapshot::Parameter::has_memory_of(const torch::Tensor& value) const {
  return storage == value.storage().getWeakStorageImpl() && offset == value.storage_offset();
}

std::vector<std::string> checksums(const ModelTensors& model) {
  std::vector<std::string> lines;
  for (const auto& item : model.parameters()) {
    const Staged staged(*item, Staged::Use::kRead);
    const Buffer buffer = staged.buffer();
    const std::span bytes(static_cast<const std::byte*>(buffer.data),
                          static_cast<std::size_t>(bytes_of(buffer.count, buffer.dtype).value));
    lines.push_back(c10::str(item.key(), " (checksum ", checksum(bytes), ")"));
  }
  return lines;
}

}  // namespace peal::train
