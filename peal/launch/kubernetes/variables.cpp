#include "peal/launch/kubernetes/variables.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/job/cluster_spec.h"
#include "peal/launch/job/references.h"
#include "peal/launch/kubernetes/check_job.h"
#include "peal/launch/kubernetes/names.h"

namespace peal::launch::kubernetes {
namespace {

constexpr int kClusterPort = 2222;

using Variables = std::map<std::string, std::string>;

/// Builds the process of one role.
class Builder final {
 public:
  /// `env`: the first variables. `assignments`: the variables that a shell computes.
  Builder(const NodeGroup& group,
          const ManifestOptions& options,
          Json env,
          std::vector<std::string> assignments)
      : group_(group), options_(options), secret_(job_name(options.id)) {
    process_.env = std::move(env);
    start_.assignments = std::move(assignments);
  }

  void add_managed_variables();
  void add_own_variables();
  void set_words();
  Process take() { return std::move(process_); }

 private:
  bool has_own(const std::string& name) const {
    return group_.job.env.contains(name) || group_.role().env.contains(name);
  }
  std::string role_key(std::string_view name) const {
    return fmt::format("role.{}.{}", group_.role().name, name);
  }
  std::string name_for_shell(const std::string& name);
  void add_secret(const std::string& name, const std::string& key, std::string text);
  void add_by_index(const std::string& name, const std::string& text);
  void add_value(const std::string& name, const std::string& key, std::string text);
  void add_expanded_variables();
  std::optional<std::string> mark_of(const std::string& name) const;
  std::string word_of(const std::string& word) const;

  const NodeGroup& group_;
  const ManifestOptions& options_;
  const std::string secret_;
  ShellStart start_{};
  Variables expanded_{};  // the job's own variables, in the form that has references
  Process process_{};
};

/// The name of a variable in the manifest: another one if a shell would drop the variable.
std::string Builder::name_for_shell(const std::string& name) {
  if (start_.assignments.empty() || is_for_shells(name)) return name;
  std::string given = fmt::format("PEAL_ENV_{}", start_.renames.size());
  start_.renames.push_back({name, given});
  return given;
}

/// A variable whose value is in the Secret.
void Builder::add_secret(const std::string& name, const std::string& key, std::string text) {
  check_variable_size(name, text);
  process_.secret_texts[key] = std::move(text);
  process_.env.push_back(from_secret(name_for_shell(name), secret_, key));
}

/// A text with a reference that Kubernetes replaces, or any other text.
void Builder::add_value(const std::string& name, const std::string& key, std::string text) {
  if (!has_mark(text)) return add_secret(name, key, std::move(text));
  process_.env.push_back(literal(name_for_shell(name), with_references(text)));
}

/// A text with the place of the node in its role; -1 stands for this place. The Secret has the text
/// in two parts, because Kubernetes puts the index between them.
void Builder::add_by_index(const std::string& name, const std::string& text) {
  constexpr std::string_view kPlace = R"("index":-1)";
  const std::size_t number = text.find(kPlace) + kPlace.size() - 2;
  const std::array<std::pair<std::string, std::string>, 2> parts = {
      {{fmt::format("PEAL_{}_BEGIN", name), text.substr(0, number)},
       {fmt::format("PEAL_{}_END", name), text.substr(number + 2)}}};
  check_variable_size(name, text);
  for (const auto& [part, content] : parts) {
    add_secret(part, role_key(part), content);
    start_.unset.push_back(part);
  }
  process_.env.push_back(
      literal(name, fmt::format("$({})$(PEAL_ROLE_RANK)$({})", parts[0].first, parts[1].first)));
}

/// CLUSTER_SPEC and TF_CONFIG of the managed forms.
void Builder::add_managed_variables() {
  const Job& job = group_.job;
  if (job.form == JobForm::kPeal) return;
  std::vector<std::vector<std::string>> addresses(job.roles.size());
  for (const NodeGroup& other : node_groups(job)) {
    for (int place = 0; place < other.nodes; ++place) {
      addresses[other.role_index].push_back(
          fmt::format("{}:{}", other.host(options_.id, place), kClusterPort));
    }
  }
  const ClusterSpec spec(job, std::move(addresses));
  const bool is_single = group_.role().nodes.most == 1;
  for (const auto& [name, text] : spec.variables(group_.role_index, is_single ? 0 : -1)) {
    if (has_own(name)) continue;
    if (is_single) {
      add_secret(name, role_key(name), text);
    } else {
      add_by_index(name, text);
    }
  }
}

/// The replacement of $(NAME) for a variable that Kubernetes knows.
std::optional<std::string> Builder::mark_of(const std::string& name) const {
  const auto computes = [&](const std::string& text) { return text.starts_with(name + "="); };
  if (std::ranges::any_of(start_.assignments, computes)) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("role \"{}\" refers to $({}), which Kubernetes does not know, because a "
                    "shell in the container computes it: let the program read the variable "
                    "{}",
                    group_.role().name,
                    name,
                    name));
  }
  const auto is_named = [&](const Json& entry) { return entry["name"] == name; };
  if (std::ranges::none_of(process_.env, is_named)) return std::nullopt;
  return mark(name);
}

void Builder::add_expanded_variables() {
  Variables own = group_.role().env;
  own.insert(group_.job.env.begin(), group_.job.env.end());
  expanded_ = expand_variables(own, [&](const std::string& name) { return mark_of(name); });
  for (const auto& [name, text] : expanded_) add_value(name, role_key(name), text);
}

void Builder::add_own_variables() {
  const Job& job = group_.job;
  // Python buffers output into a pipe, and a crash would lose the last lines.
  if (!has_own("PYTHONUNBUFFERED")) process_.env.push_back(literal("PYTHONUNBUFFERED", "1"));
  if (!options_.secret.empty() && !has_own("PEAL_SECRET") && !has_own("PEAL_SECRET_FILE")) {
    add_secret("PEAL_SECRET", "job.PEAL_SECRET", std::string(options_.secret.text()));
  }
  if (job.form == JobForm::kWorkerPoolSpecs) return add_expanded_variables();
  for (const auto& [name, text] : job.env) {
    if (!group_.role().env.contains(name)) add_secret(name, fmt::format("job.{}", name), text);
  }
  for (const auto& [name, text] : group_.role().env) add_secret(name, role_key(name), text);
}

/// A word of the job for a manifest.
std::string Builder::word_of(const std::string& word) const {
  if (group_.job.form != JobForm::kWorkerPoolSpecs) return unexpanded(word);
  const std::string text = expand_references(word, [&](const std::string& name) {
    const auto own = expanded_.find(name);
    return own != expanded_.end() ? std::optional(own->second) : mark_of(name);
  });
  return with_references(text);
}

void Builder::set_words() {
  const Role& role = group_.role();
  std::vector<std::string> command;
  for (const std::string& word : shell_words(start_)) command.push_back(unexpanded(word));
  if (role.ranks_per_node > 1) {
    const std::string ranks = fmt::format("{}", role.ranks_per_node);
    for (const char* const word : {"peal", "run", "-n", ranks.c_str(), "--"}) {
      command.emplace_back(word);
    }
  }
  for (const std::string& word : role.command) command.push_back(word_of(word));
  process_.command = std::move(command);
  for (const std::string& word : role.args) process_.args.push_back(word_of(word));
}

}  // namespace

Process process_of(const NodeGroup& group, const ManifestOptions& options) {
  Builder builder(group, options, place_variables(group, options), shell_assignments(group));
  builder.add_managed_variables();
  builder.add_own_variables();
  builder.set_words();
  return builder.take();
}

Process process_of_train_job(const NodeGroup& group, const ManifestOptions& options) {
  Json list = Json::array();
  list.push_back(literal("PEAL_ROLE", group.role().name));
  list.push_back(literal("PEAL_JOB", unexpanded(options.id)));
  std::vector<std::string> assignments;
  for (const char* const name : {"RANK", "GROUP_RANK", "NODE_RANK", "PEAL_ROLE_RANK"}) {
    assignments.push_back(fmt::format("{}=$PET_NODE_RANK", name));
  }
  for (const char* const name : {"WORLD_SIZE", "GROUP_WORLD_SIZE"}) {
    assignments.push_back(fmt::format("{}=$PET_NNODES", name));
  }
  assignments.emplace_back("MASTER_ADDR=$PET_MASTER_ADDR");
  assignments.emplace_back("MASTER_PORT=$PET_MASTER_PORT");
  if (group.is_rank()) {
    assignments.emplace_back("LOCAL_RANK=0");
    assignments.emplace_back("LOCAL_WORLD_SIZE=1");
  }
  Builder builder(group, options, std::move(list), std::move(assignments));
  builder.add_own_variables();
  builder.set_words();
  return builder.take();
}

}  // namespace peal::launch::kubernetes
