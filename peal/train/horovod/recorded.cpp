#include "peal/train/horovod/recorded.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <torch/torch.h>

#include "peal/train/horovod/context.h"

namespace peal::hvd {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Recipe final : torch::CustomClassHolder {
  explicit Recipe(std::function<Run()> forward) : run(std::move(forward)) {}
  std::function<Run()> run;
  Gradient gradient;
};
using RecipePtr = c10::intrusive_ptr<Recipe>;

class Recorded final : public torch::autograd::Function<Recorded> {
 public:
  static variable_list forward(AutogradContext* context,
                               at::TensorList /*tensors*/,
                               const RecipePtr& recipe) {
    Run done = std::exchange(recipe->run, nullptr)();
    recipe->gradient = std::move(done.gradient);
    context->saved_data["recipe"] = c10::IValue::make_capsule(recipe);
    return std::move(done.results);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto recipe =
        c10::static_intrusive_pointer_cast<Recipe>(context->saved_data["recipe"].toCapsule());
    try {
      variable_list result = recipe->gradient(gradients);
      result.emplace_back();  // for the recipe
      return result;
    } catch (...) {
      const std::exception_ptr error = std::current_exception();
      if (const ContextPtr here = try_current()) here->leave_backward(error);
      throw;
    }
  }
};

}  // namespace

bool is_recorded(at::TensorList tensors) {
  return torch::GradMode::is_enabled() &&
         std::ranges::any_of(tensors, [](const torch::Tensor& tensor) {
           return tensor.defined() && tensor.requires_grad();
         });
}

std::vector<torch::Tensor> recorded(at::TensorList tensors, std::function<Run()> run) {
  return Recorded::apply(tensors, c10::make_intrusive<Recipe>(std::move(run)));
}

}  // namespace peal::hvd
