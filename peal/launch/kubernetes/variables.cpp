#include "peal/launch/kubernetes/variables.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "peal/launch/kubernetes/check_job.h"
#include "peal/launch/kubernetes/cluster_spec.h"
#include "peal/launch/kubernetes/names.h"

namespace peal::launch::kubernetes {
namespace {

constexpr const char* kSecretVariable = "PEAL_SECRET";
constexpr std::string_view kIndexPath =
    "metadata.annotations['batch.kubernetes.io/job-completion-index']";

std::string job_key(std::string_view name) { return fmt::format("job.{}", name); }
std::string role_key(const Role& role, std::string_view name) {
  return fmt::format("role.{}.{}", role.name, name);
}

/// Whether a shell keeps the variable. A shell drops variables with other names, such as "a.b".
bool is_for_shells(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c != '.' && c != '-'; });
}

/// A name under which a shell receives a variable that it would drop: "a.b" becomes "PEAL_ENV_3".
std::string name_in_shell(std::size_t number) { return fmt::format("PEAL_ENV_{}", number); }

/// Whether the ranks get the secret of the options: the job may have its own.
bool uses_secret(const Job& job, const ManifestOptions& options) {
  return !options.secret.empty() && !job.env.contains("PEAL_SECRET_FILE");
}

using Keys = std::map<std::string, std::string>;

/// The names of the job's variables on the nodes of a role, with their keys in the Secret.
Keys keys_by_name(const Job& job, const Role& role, const ManifestOptions& options) {
  Keys keys;
  if (uses_secret(job, options)) keys[kSecretVariable] = job_key(kSecretVariable);
  for (const auto& [name, value] : job.env) keys[name] = job_key(name);
  for (const auto& [name, value] : role.env) keys[name] = role_key(role, name);
  return keys;
}

/// The names that a shell would drop. In the order of keys_by_name.
std::vector<std::string> names_to_hide_from_shells(const Job& job, const Role& role) {
  std::vector<std::string> names;
  for (const auto& [name, key] : keys_by_name(job, role, {})) {
    if (!is_for_shells(name)) names.push_back(name);
  }
  return names;
}

Json literal(std::string_view name, std::string_view value) {
  return {{"name", name}, {"value", value}};
}

Json from_secret(std::string_view name, std::string_view secret, std::string_view key) {
  return {{"name", name}, {"valueFrom", {{"secretKeyRef", {{"name", secret}, {"key", key}}}}}};
}

/// The index of the pod in its Indexed Job.
Json from_index(std::string_view name) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", kIndexPath}}}}}};
}

bool sets(const Job& job, const Role& role, const char* name) {
  return job.env.contains(name) || role.env.contains(name);
}

/// The job's own variables. `behind_shell`: a shell starts the command.
void add_own(Json& list,
             const Job& job,
             const Role& role,
             const ManifestOptions& options,
             bool behind_shell) {
  const std::string secret = job_name(options.id);
  std::size_t hidden = 0;
  for (const auto& [name, key] : keys_by_name(job, role, options)) {
    const bool hide = behind_shell && !is_for_shells(name);
    list.push_back(from_secret(hide ? name_in_shell(hidden++) : name, secret, key));
  }
}

/// RANK and GROUP_RANK, unless a shell computes them.
void add_rank(Json& list, const PlacedRole& place) {
  if (needs_shell(place.role, place.first_rank)) return;
  for (const char* const name : {"RANK", "GROUP_RANK"}) {
    list.push_back(place.role.nodes.most > 1 ? from_index(name)
                                             : literal(name, fmt::format("{}", place.first_rank)));
  }
}

void add_managed(Json& list, const Job& job, const Role& role, const ManifestOptions& options) {
  if (job.form == JobForm::kPeal) return;
  // Kubernetes expands the reference, which is why PEAL_ROLE_RANK is earlier in the list.
  const std::string_view index = role.nodes.most > 1 ? "$(PEAL_ROLE_RANK)" : "0";
  if (!sets(job, role, "CLUSTER_SPEC")) {
    list.push_back(literal("CLUSTER_SPEC", cluster_spec(job, options.id, role, index)));
  }
  if (!sets(job, role, "TF_CONFIG")) {
    list.push_back(literal("TF_CONFIG", tf_config(job, options.id, role, index)));
  }
}

void add_defaults(Json& list, const Job& job, const Role& role) {
  // Python buffers output into a pipe, and a crash would lose the last lines.
  if (!sets(job, role, "PYTHONUNBUFFERED")) {
    list.push_back(literal("PYTHONUNBUFFERED", "1"));
  }
}

}  // namespace

std::vector<PlacedRole> placed_roles(const Job& job) {
  int all = 0;
  for (const Role& role : job.roles) all += role.nodes.most;
  std::vector<PlacedRole> places;
  int first = 0;
  for (const Role& role : job.roles) {
    places.push_back({.role = role, .first_rank = first, .all_nodes = all});
    first += role.nodes.most;
  }
  return places;
}

std::map<std::string, std::string> secret_texts(const Job& job, const ManifestOptions& options) {
  std::map<std::string, std::string> texts;
  if (uses_secret(job, options)) texts[job_key(kSecretVariable)] = options.secret.text();
  for (const auto& [name, value] : job.env) texts[job_key(name)] = value;
  for (const Role& role : job.roles) {
    for (const auto& [name, value] : role.env) texts[role_key(role, name)] = value;
  }
  return texts;
}

std::string master_port(const Job& job) {
  const auto own = job.env.find("MASTER_PORT");
  return own != job.env.end() ? own->second : fmt::format("{}", kMasterPort);
}

Json variables(const Job& job, const PlacedRole& place, const ManifestOptions& options) {
  const Role& role = place.role;
  const Role& first = job.roles.front();
  Json list = Json::array();
  list.push_back(role.nodes.most > 1 ? from_index("PEAL_ROLE_RANK")
                                     : literal("PEAL_ROLE_RANK", "0"));
  list.push_back(literal("PEAL_ROLE", role.name));
  list.push_back(literal("PEAL_JOB", unexpanded(options.id)));
  list.push_back(literal("MASTER_ADDR", host_name(options.id, first.name, first.nodes.most, 0)));
  if (!sets(job, role, "MASTER_PORT")) {
    list.push_back(literal("MASTER_PORT", master_port(job)));
  }
  list.push_back(literal("WORLD_SIZE", fmt::format("{}", place.all_nodes)));
  add_rank(list, place);
  if (role.ranks_per_node == 1) {  // else `peal run` sets them for each rank
    list.push_back(literal("LOCAL_RANK", "0"));
    list.push_back(literal("LOCAL_WORLD_SIZE", "1"));
  }
  add_managed(list, job, role, options);
  add_defaults(list, job, role);
  add_own(list, job, role, options, needs_shell(role, place.first_rank));
  return list;
}

Json variables_without_place(const Job& job, const Role& role, const ManifestOptions& options) {
  Json list = Json::array();
  list.push_back(literal("PEAL_ROLE", role.name));
  list.push_back(literal("PEAL_JOB", unexpanded(options.id)));
  add_defaults(list, job, role);
  add_own(list, job, role, options, true);
  return list;
}

std::vector<std::string> words_behind_shell(const Job& job,
                                            const Role& role,
                                            const std::vector<std::string>& exports) {
  std::vector<std::string> words;
  if (role.ranks_per_node > 1) {
    words = {"peal", "run", "-n", fmt::format("{}", role.ranks_per_node), "--"};
  }
  words.insert(words.end(), role.command.begin(), role.command.end());
  words.insert(words.end(), role.args.begin(), role.args.end());
  if (exports.empty()) return words;

  std::string script = "export";
  for (const std::string& assignment : exports) script += fmt::format(" {}", assignment);
  script += "; exec ";
  const std::vector<std::string> hidden = names_to_hide_from_shells(job, role);
  if (!hidden.empty()) script += "env ";
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    script += fmt::format("-u {} ", name_in_shell(i));
  }
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    script += fmt::format("\"{}=${}\" ", hidden[i], name_in_shell(i));
  }
  script += "\"$@\"";
  words.insert(words.begin(), {"sh", "-c", script, "sh"});
  return words;
}

std::string unexpanded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '$') result += '$';
  }
  return result;
}

}  // namespace peal::launch::kubernetes
