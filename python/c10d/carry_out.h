// How the backend carries out an operation, for the files that define its operations.
#pragma once

#include <ATen/record_function.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "python/c10d/backend.h"
#include "python/common/signals.h"

namespace peal::python {

/// An argument check that failed, in the words of torch's own backends.
struct Invalid {
  const char* operation;

  void operator()(const std::string& why) const {
    TORCH_CHECK(false, "ProcessGroupPeal::", operation, ": ", why);
  }
};

inline TorchBackend::Tensors inputs_of(const Operands& operands) {
  TorchBackend::Tensors tensors;
  for (const Operand& operand : operands.in.empty() ? operands.out : operands.in) {
    tensors.push_back(operand.tensor());
  }
  return tensors;
}

/// In a profile for as long as it lives, if somebody takes one.
class Profiled {
 public:
  Profiled(const char* title, const Operands& operands) : record_(at::RecordScope::FUNCTION) {
    if (!record_.isActive()) return;
    if (!record_.needsInputs()) {
      record_.before(title);
      return;
    }
    std::vector<c10::IValue> inputs;
    for (at::Tensor& tensor : inputs_of(operands)) inputs.emplace_back(std::move(tensor));
    record_.before(title, c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size()));
  }

 private:
  at::RecordFunction record_;
};

inline Operands from_to(at::TensorList in, at::TensorList out) {
  return {operands(in, Use::kRead), operands(out, Use::kWrite)};
}

/// Whether one operation can carry all of them.
inline bool is_of_one_type(const Operands& operands) {
  const auto& some = operands.out;
  return std::all_of(some.begin(), some.end(), [&](const Operand& one) {
    return one.buffer().dtype == some.front().buffer().dtype;
  });
}

template <class MakeResults, class Run, class Start>
TorchBackend::WorkRef TorchBackend::carry_out(
    const Asked& asked, Operands operands, MakeResults results, Run run, Start start) {
  ProcessGroup& group = this->group();
  const std::uint64_t number = ++sequence_;
  if (!asked.is_async && !is_coalescing_) {
    const Profiled profiled(asked.kind.title, operands);
    interruptible([&] { run(group, operands); });
    operands.finish();
    return nullptr;
  }
  WorkPtr work = interruptible([&] { return start(group, operands); });
  WorkRef torch_work = c10::make_intrusive<TorchWork>(rank_,
                                                      asked.kind,
                                                      inputs_of(operands),
                                                      std::move(work),
                                                      std::move(operands),
                                                      results(),
                                                      number);
  if (is_coalescing_) coalesced_.push_back(torch_work);
  return torch_work;
}

template <class Run, class Start>
TorchBackend::WorkRef TorchBackend::carry_out_each(
    const Asked& asked, Tensors& out, Tensors& in, Run run, Start start) {
  Operands all = in.empty() ? in_place(out) : from_to(in, out);
  if (is_of_one_type(all)) {
    return carry_out(
        asked,
        std::move(all),
        [&] { return Results{out}; },
        [&](ProcessGroup& g, const Operands& o) { run(g, o.inputs(), o.outputs()); },
        [&](ProcessGroup& g, const Operands& o) { return start(g, o.inputs(), o.outputs()); });
  }
  const auto one = [](const Operands& operands, std::size_t k, auto use) {
    const std::vector<ConstBuffer> inputs = operands.inputs();
    const std::vector<Buffer> outputs = operands.outputs();
    return use(inputs.empty() ? std::span<const ConstBuffer>() : std::span(inputs).subspan(k, 1),
               std::span(outputs).subspan(k, 1));
  };
  return carry_out(
      asked,
      std::move(all),
      [&] { return Results{out}; },
      [&](ProcessGroup& g, const Operands& o) {
        for (std::size_t k = 0; k < o.out.size(); ++k) {
          one(o, k, [&](const auto& inputs, const auto& outputs) { run(g, inputs, outputs); });
        }
      },
      [&](ProcessGroup& g, const Operands& o) {
        return start_all(g, o.out.size(), [&](std::size_t k) {
          return one(o, k, [&](const auto& inputs, const auto& outputs) {
            return start(g, inputs, outputs);
          });
        });
      });
}

}  // namespace peal::python
