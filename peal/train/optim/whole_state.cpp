#include "peal/train/optim/whole_state.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <torch/torch.h>

#include "peal/base/serialize.h"
#include "peal/train/optim/first_names.h"
#include "peal/train/tensors/tensors.h"
#include "peal/train/tensors/texts.h"
#include "peal/train/tensors/typed_lists.h"

namespace peal::train {
namespace {

constexpr Bytes kNameLimit = 64_KiB;

bool is_number(const Tensor& field) {
  return field.dim() == 0 && field.scalar_type() == torch::kInt64;
}

/// All but the values of tensors. Numbers are small, so they travel with the names.
std::string describe_fields(const FieldsByName& all) {
  ByteWriter writer;
  writer.put_u64(all.size());
  for (const auto& [name, fields] : all) {
    writer.put_text(name).put_u64(fields.size());
    for (const auto& [field, tensor] : fields) {
      writer.put_text(field).put_u8(static_cast<std::uint8_t>(tensor.scalar_type()));
      writer.put_u64(static_cast<std::uint64_t>(tensor.dim()));
      for (const std::int64_t size : tensor.sizes()) writer.put_i64(size);
      if (is_number(tensor)) writer.put_i64(tensor.item<std::int64_t>());
    }
  }
  return std::move(writer).take();
}

/// The fields with tensors that have yet to be filled.
FieldsByName empty_fields(std::string_view description) {
  ByteReader reader(description, "state of an optimizer");
  FieldsByName all;
  for (std::uint64_t names = reader.get_u64(); names > 0; --names) {
    OptimizerState::Fields& fields = all[std::string(reader.get_text(kNameLimit))];
    for (std::uint64_t count = reader.get_u64(); count > 0; --count) {
      Tensor& tensor = fields[std::string(reader.get_text(kNameLimit))];
      const auto type = static_cast<torch::ScalarType>(reader.get_u8());
      std::vector<std::int64_t> sizes(reader.get_u64());
      for (std::int64_t& size : sizes) size = reader.get_i64();
      tensor = torch::empty(sizes, type);
      if (is_number(tensor)) tensor.fill_(reader.get_i64());
    }
  }
  reader.finish();
  return all;
}

/// The tensors, in the order of their names, without numbers.
Tensors tensors_of(const FieldsByName& all) {
  Tensors tensors;
  for (const auto& [name, fields] : all) {
    for (const auto& [field, tensor] : fields) {
      if (!is_number(tensor)) tensors.push_back(tensor);
    }
  }
  return tensors;
}

FieldsByName copied(const FieldsByName& all) {
  FieldsByName copies = all;
  for (auto& [name, fields] : copies) {
    for (auto& [field, tensor] : fields) tensor = tensor.clone();
  }
  return copies;
}

/// Sends the tensors of `from` to `to`.
void send_fields(ProcessGroup& group, const Tensors& tensors, Rank from, Rank to, Timeout timeout) {
  for (const Tensor& tensor : tensors) {
    if (group.rank() == from) send(group, tensor, to, {.timeout = timeout});
    if (group.rank() == to) recv(group, tensor, from, {.timeout = timeout});
  }
}

}  // namespace

FieldsByName exchange_fields(ProcessGroup& group,
                             const FieldsByName& own,
                             std::optional<Rank> to,
                             Timeout timeout) {
  const std::vector<std::string> descriptions = gather_texts(group, describe_fields(own), timeout);
  const bool returned_here = !to || *to == group.rank();
  FieldsByName whole;
  for (Rank rank = 0; rank < group.size(); ++rank) {
    const bool is_own = rank == group.rank();
    if (!is_own && !returned_here) continue;
    FieldsByName of_rank = is_own ? (returned_here ? copied(own) : own)
                                  : empty_fields(descriptions[static_cast<std::size_t>(rank)]);
    const Tensors tensors = tensors_of(of_rank);
    if (!to) {
      for (const Tensors& same_type : by_type(tensors)) {
        broadcast(group, same_type, rank, {.timeout = timeout});
      }
    } else if (rank != *to) {
      send_fields(group, tensors, rank, *to, timeout);
    }
    if (returned_here) whole.merge(of_rank);
  }
  return whole;
}

OptimizerState part_of_state(const OptimizerState& state,
                             const torch::optim::Optimizer& local,
                             const NamedParameters& named) {
  const FirstNames names(named);
  std::map<std::string, const OptimizerState::Fields*> saved;
  for (const auto& [name, fields] : state.parameters) saved[names.first_of(name)] = &fields;
  OptimizerState part{.algorithm = state.algorithm};
  for (std::size_t i = 0; i < state.groups.size(); ++i) {
    OptimizerState::Group& group = part.groups.emplace_back();
    group.options = state.groups[i].options;
    for (const Tensor& parameter : local.param_groups()[i].params()) {
      const std::string& name = names.of(parameter);
      group.parameters.push_back(name);
      if (const auto fields = saved.find(name); fields != saved.end()) {
        part.parameters[name] = *fields->second;
      }
    }
  }
  return part;
}

}  // namespace peal::train
