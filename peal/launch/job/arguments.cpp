// Arguments from the command line, added to a parsed job file (gcloud_flags.h).
#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/job/edit_document.h"
#include "peal/launch/job/gcloud_flags.h"
#include "peal/launch/job/read_job.h"

namespace peal::launch {
namespace {

Place from_command_line() { return {0, 0, "the arguments after --"}; }

/// Appends to the list at `key`, or makes it.
void append(Value& map, std::string_view key, const std::vector<std::string>& arguments) {
  const std::vector<std::string_view> views(arguments.begin(), arguments.end());
  Value more = list_at(views, from_command_line());
  Value* const known = find(map, key);
  if (known == nullptr || known->kind == Value::Kind::kNull) {
    set(map, key, std::move(more));
  } else {
    std::ranges::move(more.items, std::back_inserter(known->items));
  }
}

/// The arguments of a trainingInput are in args, or, for each kind of replica, in containerArgs.
void append_to_training(Value& input, const std::vector<std::string>& arguments) {
  constexpr std::array<std::string_view, 3> kConfigs = {
      "masterConfig", "workerConfig", "evaluatorConfig"};
  const auto has_own = [&](std::string_view config) {
    const Value* const replica = find(input, config);
    return replica != nullptr && find(*replica, "containerArgs") != nullptr;
  };
  if (std::ranges::none_of(kConfigs, has_own)) return append(input, "args", arguments);
  for (const std::string_view config : kConfigs) {
    const std::string count = std::string(config.substr(0, config.find("Config"))) + "Count";
    const bool has_replicas = config != "evaluatorConfig" || find(input, count) != nullptr;
    if (has_replicas)
      append(map_in(input, config, from_command_line()), "containerArgs", arguments);
  }
}

void append_to_pools(Value& spec, const std::vector<std::string>& arguments) {
  for (Value& pool : value_in(spec, "workerPoolSpecs", from_command_line()).items) {
    for (const char* const program : {"containerSpec", "pythonPackageSpec"}) {
      if (Value* const found = find(pool, program)) append(*found, "args", arguments);
    }
  }
}

}  // namespace

Value with_arguments(Value document, const std::vector<std::string>& arguments) {
  if (arguments.empty()) return document;
  switch (form_of(document)) {
    case JobForm::kTrainingInput:
      append_to_training(map_in(document, "trainingInput", from_command_line()), arguments);
      break;
    case JobForm::kWorkerPoolSpecs:
      append_to_pools(find(document, "jobSpec") != nullptr
                          ? map_in(document, "jobSpec", from_command_line())
                          : document,
                      arguments);
      break;
    case JobForm::kPeal:
      if (Value* const roles = find(document, "roles")) {
        for (Value& role : roles->items) append(role, "args", arguments);
      }
      break;
  }
  return document;
}

}  // namespace peal::launch
