#include "peal/launch/job/job.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "peal/base/difference.h"
#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/base/size_text.h"

namespace peal::launch {
namespace {

constexpr std::size_t kLongestName = 128;     // of a job, as in the managed forms
constexpr std::size_t kLongestRoleName = 40;  // so that a host name of 63 characters can contain it
/// Of a variable or a label: keys of YAML have up to 1024 characters, and up to four for each byte.
constexpr std::size_t kLongestKey = 200;
constexpr double kLeastCpus = 0.001;
constexpr double kMostCpus = 1'000'000;
constexpr int kMostGpus = 1'000;
constexpr auto kLongestPause = std::chrono::hours(24);
constexpr auto kLongestTime = std::chrono::hours(24 * 366);

/// Variables that the plan sets for each process (process_plan.h).
constexpr std::array<std::string_view, 19> kPlanned = {"RANK",
                                                       "WORLD_SIZE",
                                                       "LOCAL_RANK",
                                                       "LOCAL_WORLD_SIZE",
                                                       "GROUP_RANK",
                                                       "GROUP_WORLD_SIZE",
                                                       "NODE_RANK",
                                                       "MASTER_ADDR",
                                                       "MASTER_PORT",
                                                       "HOROVOD_RANK",
                                                       "HOROVOD_SIZE",
                                                       "HOROVOD_LOCAL_RANK",
                                                       "HOROVOD_LOCAL_SIZE",
                                                       "HOROVOD_CROSS_RANK",
                                                       "HOROVOD_CROSS_SIZE",
                                                       "HOROVOD_HOSTNAME",
                                                       "PEAL_ROLE",
                                                       "PEAL_ROLE_RANK",
                                                       "PEAL_NODE"};

Error wrong(std::string_view field, std::string_view problem) {
  return Error(ErrorKind::kUsage, fmt::format("{}: {}", field, problem));
}

template <class Number>
void check_range(const std::string& field, Number value, Number least, Number most) {
  if (value >= least && value <= most) return;  // false for NaN
  throw wrong(field, fmt::format("{} is not from {} to {}", value, least, most));
}

/// Texts travel in files, in JSON and to exec.
void check_text(const std::string& field, const std::string& text) {
  if (text.find('\0') != std::string::npos) {
    throw wrong(field, "it contains a NUL character, which no process can receive");
  }
  if (!is_utf8(text)) throw wrong(field, "it is not UTF-8 text");
}

void check_texts(const std::string& field, const std::vector<std::string>& texts) {
  for (std::size_t i = 0; i < texts.size(); ++i) {
    check_text(fmt::format("{}[{}]", field, i), texts[i]);
  }
}

void check_key(const std::string& field, const std::string& key) {
  check_text(field, key);
  if (!key.empty() && key.size() <= kLongestKey) return;
  throw wrong(field,
              fmt::format("{} cannot be a name: it has {} bytes, not 1 to {}",
                          quoted_beginning(key),
                          key.size(),
                          kLongestKey));
}

void check_variables(const std::string& field, const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env) {
    check_key(field, name);
    if (name.find('=') != std::string::npos) {
      throw wrong(field,
                  fmt::format("{} cannot be the name of a variable, because it contains =",
                              quoted_beginning(name)));
    }
    const std::string variable = fmt::format("{}.{}", field, name);
    check_text(variable, value);
    if (std::ranges::find(kPlanned, name) != kPlanned.end()) {
      throw wrong(variable, "peal sets this variable for each process by itself; remove it");
    }
  }
}

bool is_role_name(const std::string& name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr std::string_view kLegal =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
  return !name.empty() && name.size() <= kLongestRoleName &&
         kLetters.find(name.front()) != std::string_view::npos && name.back() != '-' &&
         name.find_first_not_of(kLegal) == std::string::npos;
}

void check_resources(const std::string& role, const Resources& resources) {
  const std::string field = role + ".resources";
  if (resources.cpus) check_range(field + ".cpus", *resources.cpus, kLeastCpus, kMostCpus);
  if (resources.gpus) check_range(field + ".gpus", *resources.gpus, 0, kMostGpus);
  if (resources.memory && *resources.memory <= 0_B) {
    throw wrong(field + ".memory", "it must be more than 0");
  }
  if (resources.shm && *resources.shm <= 0_B) {
    throw wrong(field + ".shm", "it must be more than 0");
  }
  if (resources.shm && resources.memory && *resources.shm > *resources.memory) {
    throw wrong(field + ".shm",
                fmt::format("{} is more than the memory of the node ({}), which /dev/shm is a part "
                            "of; lower shm, or raise memory",
                            size_text(*resources.shm, SizeStyle::kLong),
                            size_text(*resources.memory, SizeStyle::kLong)));
  }
}

void check_counts(const std::string& field, const Role& role) {
  if (role.nodes.least > role.nodes.most) {
    throw wrong(field + ".nodes",
                fmt::format("{}:{} has more nodes at least than at most; swap the numbers",
                            role.nodes.least,
                            role.nodes.most));
  }
  check_range(field + ".nodes", role.nodes.least, 1, kMostJobNodes);
  check_range(field + ".nodes", role.nodes.most, 1, kMostJobNodes);
  check_range(field + ".ranks_per_node", role.ranks_per_node, 1, kMostJobRanks);
}

void check_role(const std::string& field, const Role& role) {
  if (!is_role_name(role.name)) {
    throw wrong(
        field + ".name",
        fmt::format("{} is not legal: a name has up to {} letters, digits and -, and begins "
                    "with a letter",
                    quoted_beginning(role.name),
                    kLongestRoleName));
  }
  check_counts(field, role);
  if (role.command.empty() && role.image.empty()) {
    throw wrong(field,
                "it needs a command, as in command: [python3, train.py], or an image that has one");
  }
  if (!role.command.empty() && role.command.front().empty()) {
    throw wrong(field + ".command", "its first word, the program, is empty");
  }
  check_text(field + ".image", role.image);
  check_texts(field + ".command", role.command);
  check_texts(field + ".args", role.args);
  check_variables(field + ".env", role.env);
  check_resources(field, role.resources);
}

void check_roles(const Job& job) {
  if (job.roles.empty()) throw wrong("roles", "a job needs a role");
  std::set<std::string> names;
  std::int64_t nodes = 0;
  std::int64_t ranks = 0;
  for (std::size_t i = 0; i < job.roles.size(); ++i) {
    const Role& role = job.roles[i];
    const std::string field = fmt::format("roles[{}]", i);
    check_role(field, role);
    if (!names.insert(role.name).second) {
      throw wrong(field + ".name", fmt::format("two roles have the name {}", role.name));
    }
    if (role.in_world && i > 0 && !job.roles[i - 1].in_world) {
      throw wrong(field, "roles outside the world (in_world: false) come after all other roles");
    }
    nodes += role.nodes.most;
    ranks += std::int64_t{role.nodes.most} * role.ranks_per_node;
  }
  if (!job.roles.front().in_world) {
    throw wrong("roles[0].in_world", "the first role has rank 0, so it is in the world");
  }
  check_range("the nodes of all roles", nodes, std::int64_t{1}, std::int64_t{kMostJobNodes});
  check_range("the ranks of all roles", ranks, std::int64_t{1}, std::int64_t{kMostJobRanks});
}

void check_success_role(const Job& job) {
  if (job.success_role.empty()) return;
  std::vector<std::string_view> names;
  for (const Role& role : job.roles) names.push_back(role.name);
  if (std::ranges::find(names, job.success_role) != names.end()) return;
  throw wrong("success_role",
              fmt::format("there is no role {}, only {}",
                          quoted_beginning(job.success_role),
                          fmt::join(names, ", ")));
}

template <class Duration>
void check_duration(const std::string& field,
                    Duration value,
                    std::chrono::milliseconds least,
                    std::chrono::milliseconds most,
                    std::string_view legal) {
  if (value >= least && value <= most) return;
  throw wrong(field, fmt::format("it is {}", legal));
}

void check_times(const Job& job) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  if (job.max_run_time) {
    check_duration("max_run_time", *job.max_run_time, seconds(1), kLongestTime, "from 1s to 366d");
  }
  if (job.warn_before) {
    if (!job.max_run_time)
      throw wrong("warn_before",
                  "it is a time before the end of max_run_time: give max_run_time too");
    check_duration(
        "warn_before", *job.warn_before, seconds(1), *job.max_run_time, "from 1s to max_run_time");
  }
  check_duration("start_timeout", job.start_timeout, seconds(1), kLongestTime, "from 1s to 366d");
  check_duration("grace", job.grace, milliseconds(0), kLongestPause, "from 0s to 1d");
  check_duration("restarts.first_pause",
                 job.restarts.first_pause,
                 milliseconds(0),
                 kLongestPause,
                 "from 0s to 1d");
  check_duration("restarts.longest_pause",
                 job.restarts.longest_pause,
                 milliseconds(0),
                 kLongestPause,
                 "from 0s to 1d");
  check_range("restarts.most", job.restarts.most, 0, 1'000'000);
  if (job.restarts.first_pause > job.restarts.longest_pause) {
    throw wrong("restarts.first_pause", "it is longer than restarts.longest_pause");
  }
}

void check_files(const Job& job) {
  std::set<std::string> targets;
  for (std::size_t i = 0; i < job.files.size(); ++i) {
    const std::string field = fmt::format("files[{}]", i);
    check_text(field + ".from", job.files[i].from);
    check_text(field + ".to", job.files[i].to);
    if (job.files[i].from.empty() || job.files[i].to.empty()) {
      throw wrong(field, "it needs two paths, as in {from: data/small, to: data}");
    }
    if (!targets.insert(job.files[i].to).second) {
      throw wrong(field + ".to", fmt::format("two files go to {}", job.files[i].to));
    }
  }
}

void check_engine_options(const Job& job) {
  for (const auto& [runner, options] : job.engine_options) {
    const std::string field = "engine_options." + runner;
    if (std::ranges::find(kEngineNames, runner) == kEngineNames.end()) {
      const std::string_view nearest = nearest_word(runner, kEngineNames);
      throw wrong(
          field,
          nearest.empty()
              ? fmt::format("there is no such engine, only {}", fmt::join(kEngineNames, ", "))
              : fmt::format("there is no such engine; did you mean {}?", nearest));
    }
    check_texts(field, options);
  }
}

void check_document(const Job& job) {
  check_text("document", job.document);
  if (job.form == JobForm::kPeal || nlohmann::json::accept(job.document)) return;
  throw wrong("document", "it is not JSON, and CLUSTER_SPEC and TF_CONFIG contain it");
}

void check_name(const std::string& name) {
  check_text("name", name);
  if (name.empty() || name.size() > kLongestName || printable(name) != name) {
    throw wrong("name",
                fmt::format("a name has 1 to {} bytes and no control characters", kLongestName));
  }
}

}  // namespace

int node_count(const Job& job) {
  int nodes = 0;
  for (const Role& role : job.roles) nodes += role.nodes.most;
  return nodes;
}

int rank_count(const Job& job) {
  int ranks = 0;
  for (const Role& role : job.roles) ranks += role.nodes.most * role.ranks_per_node;
  return ranks;
}

bool processes_are_ranks(const Job& job, const Role& role) {
  const auto& words = role.command;
  const bool is_peal_run = words.size() > 1 && words[0].ends_with("peal") && words[1] == "run";
  return job.form == JobForm::kPeal && role.in_world && !(is_peal_run && role.ranks_per_node == 1);
}

void check(const Job& job) {
  check_name(job.name);
  check_roles(job);
  check_success_role(job);
  check_variables("env", job.env);
  check_text("directory", job.directory);
  check_files(job);
  check_range("spare_nodes", job.spare_nodes, 0, kMostJobNodes);
  check_times(job);
  for (const auto& [label, value] : job.labels) {
    check_key("labels", label);
    if (label.starts_with(kOwnLabels)) {
      throw wrong(
          "labels",
          fmt::format("names that begin with {} are peal's own; choose another name", kOwnLabels));
    }
    check_text("labels." + label, value);
  }
  check_engine_options(job);
  check_document(job);
}

}  // namespace peal::launch
