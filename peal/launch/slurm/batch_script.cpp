#include "peal/launch/slurm/batch_script.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"

namespace peal::launch::slurm {
namespace {

/// What a component of a job asks for on each node.
struct NodeRequest {
  int cpus = 1;
  std::optional<Bytes> memory{};
  std::optional<int> gpus{};
  friend bool operator==(const NodeRequest&, const NodeRequest&) = default;
};

NodeRequest request_of(const Role& role) {
  const double cpus = role.resources.cpus.value_or(role.ranks_per_node);
  return {.cpus = static_cast<int>(std::ceil(cpus)),
          .memory = role.resources.memory,
          .gpus = role.resources.gpus};
}

/// For a shell, and for sbatch, which reads the quotes of its lines in the same way.
std::string quoted_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=/.,:@+%[]";
  if (text.find('\n') != std::string_view::npos) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: a line break cannot be part of a line of a batch script",
                            quoted_beginning(text)));
  }
  if (text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? R"('\'')" : std::string(1, c);
  return word + "'";
}

void add(std::string& script, std::string_view option) {
  script += fmt::format("#SBATCH {}\n", quoted_word(option));
}

/// In the name of an output file, Slurm replaces "%j" and others; "%%" is a percent sign.
std::string without_patterns(std::string_view path) {
  std::string result;
  for (const char c : path) result += c == '%' ? "%%" : std::string(1, c);
  return result;
}

/// "0-02:00:30": days, hours, minutes, seconds. Slurm rounds up to minutes.
std::string time_text(std::chrono::seconds time) {
  const std::chrono::hh_mm_ss parts(time % std::chrono::days(1));
  return fmt::format("{}-{:02}:{:02}:{:02}",
                     time / std::chrono::days(1),
                     parts.hours().count(),
                     parts.minutes().count(),
                     parts.seconds().count());
}

std::string labels_text(const Job& job) {
  std::string text;
  for (const auto& [name, value] : job.labels) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  }
  std::ranges::replace(text, '\n', ' ');
  return text;
}

/// Options of the whole job, which Slurm takes from the first component.
void add_job_options(const Job& job, const ScriptOptions& options, std::string& script) {
  add(script, "--job-name=" + options.id);
  add(script, "--output=" + without_patterns(options.folder + "/launcher.log"));
  add(script, "--open-mode=append");
  if (!job.labels.empty()) add(script, "--comment=" + labels_text(job));
}

void add_nodes(const std::vector<Role>& roles, int spare_nodes, std::string& script) {
  NodeCount nodes{spare_nodes, spare_nodes};
  for (const Role& role : roles) {
    nodes.least += role.nodes.least;
    nodes.most += role.nodes.most;
  }
  if (nodes.least == nodes.most) {
    add(script, fmt::format("--nodes={}", nodes.least));
    add(script, "--ntasks-per-node=1");
  } else {
    // With a number of tasks, Slurm would give the job no more than the least nodes.
    add(script, fmt::format("--nodes={}-{}", nodes.least, nodes.most));
  }
}

void add_component(const Job& job, const std::vector<Role>& roles, std::string& script) {
  const NodeRequest request = request_of(roles.front());
  add(script, "--no-kill");  // after the loss of a node, the launcher goes on with the others
  add(script, "--requeue");  // after the loss of the launcher's node
  if (job.max_run_time) add(script, "--time=" + time_text(*job.max_run_time));
  if (job.priority < 0) {
    add(script, fmt::format("--nice={}", -static_cast<std::int64_t>(job.priority)));
  }
  add_nodes(roles, job.spare_nodes, script);
  add(script, fmt::format("--cpus-per-task={}", request.cpus));
  if (request.memory) {
    constexpr std::int64_t kMiB = 1 << 20;
    add(script, fmt::format("--mem={}M", (request.memory->value + kMiB - 1) / kMiB));
  }
  if (request.gpus) add(script, fmt::format("--gpus-per-node={}", *request.gpus));
  const auto own = job.engine_options.find("slurm");
  if (own == job.engine_options.end()) return;
  for (const std::string& option : own->second) add(script, option);
}

/// The launcher takes the nodes in their order, so each node must fit the role at its place.
void check_fixed(const Job& job) {
  const bool is_elastic = std::ranges::any_of(
      job.roles, [](const Role& role) { return role.nodes.least != role.nodes.most; });
  if (!is_elastic && job.spare_nodes == 0) return;
  throw Error(ErrorKind::kUsage,
              "the roles of the job ask for different resources, so that in Slurm its numbers of "
              "nodes must be fixed: give each role one number of nodes, and spare_nodes: 0; or "
              "give all roles the same resources");
}

}  // namespace

std::vector<std::vector<Role>> components(const Job& job) {
  std::vector<std::vector<Role>> result;
  for (const Role& role : job.roles) {
    if (result.empty() || request_of(result.back().front()) != request_of(role)) {
      result.emplace_back();
    }
    result.back().push_back(role);
  }
  return result;
}

std::string batch_script(const Job& job, const ScriptOptions& options) {
  const auto parts = components(job);
  if (parts.size() > 1) check_fixed(job);
  std::string script = "#!/bin/sh\n";
  add_job_options(job, options, script);
  for (const std::vector<Role>& roles : parts) {
    if (&roles != &parts.front()) script += "#SBATCH hetjob\n";
    add_component(job, roles, script);
  }
  return script +
         fmt::format("exec {} job {}\n", quoted_word(options.peal), quoted_word(options.folder));
}

std::vector<std::string> unused_fields(const Job& job) {
  std::vector<std::string> sentences;
  if (job.priority > 0) {
    sentences.emplace_back(
        "priority is not used: users of Slurm cannot raise it; choose a QOS or a partition in "
        "engine_options.slurm");
  }
  if (job.start_timeout != Job{}.start_timeout) {
    sentences.emplace_back(
        "start_timeout limits only the start of the ranks, not the time in Slurm's queue; to limit "
        "the time of the whole job, use --deadline in engine_options.slurm");
  }
  const bool has_shm = std::ranges::any_of(
      job.roles, [](const Role& role) { return role.image.empty() && role.resources.shm; });
  if (has_shm) {
    sentences.emplace_back(
        "resources.shm is not used: only containers have a /dev/shm of their own");
  }
  return sentences;
}

}  // namespace peal::launch::slurm
