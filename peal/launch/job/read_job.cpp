#include "peal/launch/job/read_job.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/job/forms.h"

namespace peal::launch {
namespace {

constexpr std::string_view kTrainingInput = "trainingInput";
constexpr std::string_view kWorkerPoolSpecs = "workerPoolSpecs";
constexpr std::string_view kJobSpec = "jobSpec";

/// "mnist" for "jobs/mnist.yaml".
std::string name_from(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  return stem.empty() ? "job" : stem;
}

/// Where the field with a path as "roles[0].name" stands, or the part of it that is there.
Place place_of(const Value& document, std::string_view path) {
  const Value* value = &document;
  while (!path.empty()) {
    const bool is_index = path.front() == '[';
    const std::size_t end = std::min(path.find_first_of(".[", 1), path.size());
    const std::string_view step = path.substr(0, end);
    path.remove_prefix(end);
    if (path.starts_with('.')) path.remove_prefix(1);
    const Value* next = nullptr;
    if (is_index) {
      std::size_t index = value->items.size();
      std::from_chars(step.data() + 1, step.data() + step.size(), index);
      if (index < value->items.size()) next = &value->items[index];
    } else {
      next = find(*value, step);
    }
    if (next == nullptr) break;
    value = next;
  }
  return value->place;
}

/// An error of `check` with the place. The fields of the other forms have other paths.
Error located(const Error& error, JobForm form, const Value& document, const std::string& name) {
  const std::string_view message = error.message();
  if (form != JobForm::kPeal) return Error(error.kind(), fmt::format("{}: {}", name, message));
  const Place place = place_of(document, message.substr(0, message.find(": ")));
  return Error(error.kind(), fmt::format("{}: {}", to_text(place, name), message));
}

ReadJob read_in(JobForm form, const Field& document) {
  switch (form) {
    case JobForm::kPeal:
      return read_peal_form(document);
    case JobForm::kTrainingInput:
      return read_training_input(document);
    case JobForm::kWorkerPoolSpecs:
      break;
  }
  return read_worker_pools(document);
}

}  // namespace

JobForm form_of(const Value& document) {
  if (find(document, kTrainingInput) != nullptr) return JobForm::kTrainingInput;
  const bool has_pools =
      find(document, kWorkerPoolSpecs) != nullptr || find(document, kJobSpec) != nullptr;
  return has_pools ? JobForm::kWorkerPoolSpecs : JobForm::kPeal;
}

ReadJob read_job(const Value& document, const std::string& name) {
  const Field field(document, "", name);
  if (document.kind != Value::Kind::kMap) {
    throw field.error("a job file has fields with values, as in name: mnist");
  }
  const JobForm form = form_of(document);
  ReadJob read = read_in(form, field);
  if (read.job.name.empty()) read.job.name = name_from(name);
  try {
    check(read.job);
  } catch (const Error& error) {
    throw located(error, form, document, name);
  }
  return read;
}

ReadJob read_job(std::string_view text, const std::string& name) {
  return read_job(parse_document(text, name), name);
}

}  // namespace peal::launch
