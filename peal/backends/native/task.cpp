#include "peal/backends/native/task.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/kernels/kernels.h"

namespace peal::native {
namespace {

using engine::Extent;
using engine::Regions;

/// Calls visit(from, to, elements) for each stretch that is contiguous in both.
template <class Visit>
void for_each_stretch(const Regions& from, const Regions& to, DType dtype, Visit&& visit) {
  const Elements size = std::min(from.size(), to.size());
  for (Elements done; done < size;) {
    const Extent source = from.at(done, size_of(dtype));
    const Extent target = to.at(done, size_of(dtype));
    const Elements here = std::min({source.count, target.count, size - done});
    visit(source.data, target.data, here);
    done += here;
  }
}

void scale(const Regions& from, const Regions& to, DType dtype, double factor) {
  for_each_stretch(
      from, to, dtype, [&](const std::byte* source, std::byte* target, Elements count) {
        kernels::scale(source, target, count, dtype, factor);
      });
}

template <class AnyBuffer>
void collect(std::span<const AnyBuffer> buffers, Regions& regions) {
  regions.clear();
  for (const AnyBuffer& buffer : buffers) regions.add(buffer.data, buffer.count);
}

}  // namespace

const engine::Task& TaskMaker::make(const Request& request) {
  fill(request);
  if (request.reduce.kind == ReduceOp::Kind::kPremulSum && reduces(request.operation)) {
    scale_input(request);
  }
  return task_;
}

void TaskMaker::fill(const Request& request) {
  const Even even{.operation = request.operation,
                  .dtype = request.dtype,
                  .reduce = request.reduce.kind,
                  .in_place = request.in_place,
                  .root = request.root,
                  .count = request.count};
  if (!request.counts.empty() || even != last_) {
    fill_problem(request);
    ++task_.kind;
    last_ = request.counts.empty() ? std::optional(even) : std::nullopt;
  }
  collect(request.input, task_.input);
  collect(request.output, task_.output);
}

void TaskMaker::fill_problem(const Request& request) {
  schedule::Problem& problem = task_.problem;
  problem.operation = request.operation;
  problem.ranks = ranks_;
  problem.root = request.root;
  problem.count = request.count;
  problem.counts.assign(request.counts.begin(), request.counts.end());
  problem.in_place = request.in_place;
  task_.dtype = request.dtype;
  task_.reduce = reduces(request.operation) ? request.reduce.kind : ReduceOp::Kind::kSum;
}

/// The engine only adds. So the input is scaled before it is added, because the factor should
/// prevent an overflow of the sum.
void TaskMaker::scale_input(const Request& request) {
  const bool input_is_output = request.in_place && request.operation != Operation::kReduceScatter &&
                               task_.output.size() == task_.input.size();
  if (input_is_output) {
    scale(task_.input, task_.output, request.dtype, request.reduce.factor);
    return;
  }
  scaled_.resize(static_cast<std::size_t>(bytes_of(task_.input.size(), request.dtype).value));
  Regions scaled;
  scaled.add(scaled_.data(), task_.input.size());
  scale(task_.input, scaled, request.dtype, request.reduce.factor);
  task_.input = std::move(scaled);
  if (request.operation == Operation::kReduceScatter) {
    task_.problem.in_place = false;
    last_.reset();
  }
}

void TaskMaker::run_alone(const Request& request) {
  Regions input;
  Regions output;
  collect(request.input, input);
  collect(request.output, output);
  if (request.reduce.kind == ReduceOp::Kind::kPremulSum && reduces(request.operation)) {
    scale(input, output, request.dtype, request.reduce.factor);
    return;
  }
  for_each_stretch(input,
                   output,
                   request.dtype,
                   [&](const std::byte* source, std::byte* target, Elements count) {
                     if (source != target)
                       kernels::copy(source, target, bytes_of(count, request.dtype));
                   });
}

std::string describe(const Request& request) {
  Elements size;
  for (const ConstBuffer& buffer : request.input) size += buffer.count;
  if (request.input.empty()) {
    for (const Buffer& buffer : request.output) size += buffer.count;
  }
  std::string text =
      fmt::format("{} of {} {}", name_of(request.operation), size.value, name_of(request.dtype));
  if (request.operation == Operation::kSend) {
    text += fmt::format(" to rank {}, tag {}", request.root, request.tag.value);
  } else if (request.operation == Operation::kRecv) {
    text += request.root == kAnySource
                ? fmt::format(" from any rank, tag {}", request.tag.value)
                : fmt::format(" from rank {}, tag {}", request.root, request.tag.value);
  } else if (request.operation == Operation::kBarrier) {
    text = "barrier";
  }
  return text;
}

}  // namespace peal::native
