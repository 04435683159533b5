#include "peal/launch/job/form_names.h"

#include <array>

#include <fmt/format.h>

#include "peal/base/printable.h"

namespace peal::launch {
namespace {

constexpr std::array kForms = {JobForm::kPeal, JobForm::kTrainingInput, JobForm::kWorkerPoolSpecs};

}  // namespace

std::string_view name_of(JobForm form) {
  switch (form) {
    case JobForm::kPeal:
      return "peal";
    case JobForm::kTrainingInput:
      return "training_input";
    case JobForm::kWorkerPoolSpecs:
      break;
  }
  return "worker_pool_specs";
}

JobForm read_form(const Field& field) {
  const std::string text = field.text();
  for (const JobForm form : kForms) {
    if (name_of(form) == text) return form;
  }
  throw field.error(
      fmt::format("{} is not peal, training_input or worker_pool_specs", quoted_beginning(text)));
}

}  // namespace peal::launch
