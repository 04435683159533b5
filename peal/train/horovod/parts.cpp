#include "peal/train/horovod/parts.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/tensors/element_type.h"
#include "peal/train/tensors/staged.h"

namespace peal::hvd {

using named::Kind;
using named::Memory;
using named::Request;

namespace {

void append(std::string& text, std::uint64_t number) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  text.append(digits.data(), end.ptr);
}

Buffer memory_of(const Tensor& dense) {
  return {dense.data_ptr(), Elements(dense.numel()), train::element_type(dense.scalar_type())};
}

Tensor row_major_copy(const Tensor& tensor) {
  return torch::empty_like(tensor, torch::TensorOptions(torch::kCPU), at::MemoryFormat::Contiguous)
      .copy_(tensor);
}

/// Allocates the output of `part`, which lives as long as the operation.
std::function<Buffer(std::span<const std::int64_t>)> allocation_of(Pending::Part& part) {
  return [&part](std::span<const std::int64_t> rows) {
    part.rows.assign(rows.begin(), rows.end());
    part.dense = rows_like(part.input, std::accumulate(rows.begin(), rows.end(), std::int64_t{0}));
    return memory_of(part.dense);
  };
}

}  // namespace

// ---- names

Name full_name(Kind kind, Form form, const std::string& name, ProcessSetState& set) {
  std::string full;
  full.reserve(48);
  if (form == Form::kGroup) full += "grouped_";
  full += name_of(kind);
  full += '.';
  if (!name.empty()) return {std::move(full += name), true};
  full += "noname.";
  append(full, set.next_number(kind));
  return {std::move(full), false};
}

void set_name(Request& request, Name name) {
  request.name = std::move(name.text);
  request.remembered = name.is_given;
}

void set_names(std::vector<Submission>& submissions, Form form, Name name) {
  if (form == Form::kOne) return set_name(submissions.front().request, std::move(name));
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    Request& request = submissions[i].request;
    set_name(request, {c10::str(name.text, "_", i + 1, "of", submissions.size()), name.is_given});
    request.group = name.text;
    request.group_size = static_cast<int>(submissions.size());
  }
}

// ---- requests

Request request_of(Kind kind, const Tensor& tensor) {
  Request request;
  request.kind = kind;
  request.dtype = train::element_type(tensor.scalar_type());
  request.shape.assign(tensor.sizes().begin(), tensor.sizes().end());
  return request;
}

Request reduction_of(Kind kind, const Tensor& tensor, const ReductionOptions& options) {
  Request request = request_of(kind, tensor);
  request.reduction = options.op;
  request.prescale = options.prescale_factor;
  request.postscale = options.postscale_factor;
  return request;
}

// ---- memory

Pending::Part part_in_place(const Tensor& tensor, InPlace in_place) {
  train::require_sendable(tensor);
  const bool is_plain = train::is_plain(tensor);
  Pending::Part part;
  if (in_place == InPlace::kYes) {
    part.dense = is_plain ? tensor : row_major_copy(tensor);
    part.target = tensor;
  } else {
    part.dense = row_major_copy(tensor);
    if (!is_plain) part.like = tensor;
  }
  return part;
}

Pending::Part part_with_input(const Tensor& tensor, Kind kind) {
  train::require_sendable(tensor);
  if (tensor.dim() == 0) {
    throw Error(ErrorKind::kUsage,
                c10::str(name_of(kind),
                         " needs a tensor with at least one dimension: use reshape(1) to make a "
                         "scalar a tensor of one row"));
  }
  Pending::Part part;
  const bool is_plain = train::is_plain(tensor);
  part.input = is_plain ? tensor : row_major_copy(tensor);
  if (!is_plain) part.like = tensor;
  return part;
}

Tensor rows_like(const Tensor& like, std::int64_t rows) {
  std::vector<std::int64_t> sizes = like.sizes().vec();
  sizes.front() = rows;
  return torch::empty(sizes, torch::dtype(like.scalar_type()));
}

Memory memory_in_place(const Pending::Part& part) {
  Memory memory;
  memory.output = memory_of(part.dense);
  return memory;
}

Memory gathering_memory(Pending::Part& part) {
  Memory memory;
  memory.input = memory_of(part.input);
  memory.allocate = allocation_of(part);
  return memory;
}

Memory scattering_memory(const Pending::Part& part) {
  Memory memory = memory_in_place(part);
  memory.input = memory_of(part.input);
  return memory;
}

}  // namespace peal::hvd
