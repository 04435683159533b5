// Runs or starts an operation of the backend; used by the files that define its operations.
#pragma once

#include <ATen/record_function.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "python/c10d/backend.h"
#include "python/common/signals.h"

namespace peal::python {

/// Reports a failed argument check in the style of torch's own backends.
struct Invalid {
  const char* operation;

  void operator()(const std::string& why) const {
    TORCH_CHECK(false, "ProcessGroupPeal::", operation, ": ", why);
  }
};

inline TorchBackend::Tensors inputs_of(const TensorOperands& operands) {
  TorchBackend::Tensors tensors;
  for (const TensorOperand& operand : operands.in.empty() ? operands.out : operands.in) {
    tensors.push_back(operand.tensor());
  }
  return tensors;
}

/// Records the operation in torch's profile, if one is active, for the lifetime of this object.
class Profiled {
 public:
  Profiled(const char* title, const TensorOperands& operands) : record_(at::RecordScope::FUNCTION) {
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

inline TensorOperands from_to(at::TensorList in, at::TensorList out) {
  return {operands(in, Use::kRead), operands(out, Use::kWrite)};
}

/// Whether all tensors have one type, so that one operation can carry them.
inline bool is_of_one_type(const TensorOperands& operands) {
  const auto& some = operands.out;
  return std::all_of(some.begin(), some.end(), [&](const TensorOperand& one) {
    return one.buffer().dtype == some.front().buffer().dtype;
  });
}

template <class MakeResults, class Run, class Start>
TorchBackend::WorkRef TorchBackend::carry_out(
    const Asked& asked, TensorOperands operands, MakeResults results, Run run, Start start) {
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

template <class MakeResults, class Run, class Start, class Call>
TorchBackend::WorkRef TorchBackend::carry_out(const Asked& asked,
                                              TensorOperands operands,
                                              MakeResults results,
                                              const Forms<Run, Start>& forms,
                                              Call call) {
  return carry_out(
      asked,
      std::move(operands),
      results,
      [&](ProcessGroup& g, const TensorOperands& o) { call(std::bind_front(forms.run, &g), o); },
      [&](ProcessGroup& g, const TensorOperands& o) {
        return call(std::bind_front(forms.start, &g), o);
      });
}

template <class Run, class Start, class Call>
TorchBackend::WorkRef TorchBackend::carry_out_each(
    const Asked& asked, Tensors& out, Tensors& in, const Forms<Run, Start>& forms, Call call) {
  TensorOperands all = in.empty() ? in_place(out) : from_to(in, out);
  const auto results = [&] { return Results{out}; };
  if (is_of_one_type(all)) {
    return carry_out(
        asked, std::move(all), results, forms, [&](auto&& operation, const TensorOperands& o) {
          return call(operation, o.inputs(), o.outputs());
        });
  }
  const auto call_one = [&](auto&& operation, const TensorOperands& o, std::size_t k) {
    std::vector<ConstBuffer> inputs;
    if (!o.in.empty()) inputs.emplace_back(o.in[k].buffer());
    return call(operation, inputs, std::vector{o.out[k].buffer()});
  };
  return carry_out(
      asked,
      std::move(all),
      results,
      [&](ProcessGroup& g, const TensorOperands& o) {
        for (std::size_t k = 0; k < o.out.size(); ++k) {
          call_one(std::bind_front(forms.run, &g), o, k);
        }
      },
      [&](ProcessGroup& g, const TensorOperands& o) {
        return start_all(g, o.out.size(), [&](std::size_t k) {
          return call_one(std::bind_front(forms.start, &g), o, k);
        });
      });
}

}  // namespace peal::python
