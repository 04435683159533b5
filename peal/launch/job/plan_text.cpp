// The plan of processes for people.
#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/duration_text.h"
#include "peal/base/printable.h"
#include "peal/launch/job/process_plan.h"

namespace peal::launch {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr std::string_view kHidden = "(hidden)";
/// Shorter values of secret variables are not looked for in other texts.
constexpr std::size_t kShortestSecret = 4;

bool is_secret(std::string name) {
  constexpr std::array<std::string_view, 4> kWords = {"SECRET", "TOKEN", "PASSWORD", "KEY"};
  std::ranges::transform(name, name.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  return std::ranges::any_of(
      kWords, [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

/// Replaces secrets in texts.
class Censor final {
 public:
  explicit Censor(const ProcessPlan& plan) {
    for (const PlannedProcess& process : plan.processes) {
      for (const auto& [name, value] : process.environment) {
        if (is_secret(name) && value.size() >= kShortestSecret) secrets_.insert(value);
      }
    }
  }

  std::string value(const std::string& name, const std::string& value) const {
    return is_secret(name) ? std::string(kHidden) : text(value);
  }

  std::string text(std::string text) const {
    for (const std::string& secret : secrets_) {
      for (std::size_t at = text.find(secret); at != std::string::npos;
           at = text.find(secret, at + kHidden.size())) {
        text.replace(at, secret.size(), kHidden);
      }
    }
    return text;
  }

 private:
  struct LongestFirst {
    bool operator()(const std::string& a, const std::string& b) const {
      return a.size() != b.size() ? a.size() > b.size() : a < b;
    }
  };
  std::set<std::string, LongestFirst> secrets_{};
};

/// A word as a shell would take it.
std::string word(const std::string& text) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+";
  if (!text.empty() && text.find_first_not_of(kSafe) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char letter : text) quoted += letter == '\'' ? R"('\'')" : std::string(1, letter);
  return printable(quoted + "'");
}

std::string command_of(const PlannedProcess& process, const Censor& censor) {
  std::vector<std::string> words;
  if (process.command.empty()) words.emplace_back("(the image's entrypoint)");
  for (const std::string& text : process.command) words.push_back(word(censor.text(text)));
  for (const std::string& text : process.args) words.push_back(word(censor.text(text)));
  return fmt::format("{}", fmt::join(words, " "));
}

/// The variables that are the same in all ranks.
Variables common_of(const ProcessPlan& plan) {
  Variables common = plan.processes.front().environment;
  for (const PlannedProcess& process : plan.processes) {
    if (!process.in_world) continue;
    std::erase_if(common, [&](const auto& variable) {
      const auto own = process.environment.find(variable.first);
      return own == process.environment.end() || own->second != variable.second;
    });
  }
  return common;
}

std::string number(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string header(const ProcessPlan& plan, const Job& job, const MasterAddress& master) {
  std::set<std::string> hosts;
  for (const PlannedProcess& process : plan.processes) hosts.insert(process.host);
  const auto nodes = static_cast<std::size_t>(plan.processes.back().node) + 1;
  std::string text = fmt::format("job {}: {} on {}, {}\n",
                                 job.name,
                                 number(nodes, "node", "nodes"),
                                 number(hosts.size(), "host", "hosts"),
                                 number(plan.processes.size(), "process", "processes"));
  text += fmt::format("the ranks meet at {}, port {}\n", master.host, master.port);
  if (!plan.spare_hosts.empty()) {
    text += fmt::format("spare hosts: {}\n", fmt::join(plan.spare_hosts, ", "));
  }
  if (!job.directory.empty()) text += fmt::format("directory: {}\n", word(job.directory));
  for (const JobFile& file : job.files) {
    text += fmt::format("file: {} -> {}\n", word(file.from), word(file.to));
  }
  if (!job.success_role.empty()) {
    text += fmt::format("the job succeeds when {} has ended with 0\n", job.success_role);
  }
  if (job.max_run_time) text += fmt::format("longest time: {}\n", duration_text(*job.max_run_time));
  if (job.warn_before) {
    text += fmt::format("warning: {} before the end\n", duration_text(*job.warn_before));
  }
  if (job.restarts.most > 0) text += fmt::format("restarts: up to {}\n", job.restarts.most);
  return text;
}

/// Which node of its role the process is on, as in the status and the logs.
int node_in_role(const ProcessPlan& plan, const PlannedProcess& process) {
  const auto first = std::ranges::find(plan.processes, process.role, &PlannedProcess::role);
  return process.node - first->node;
}

/// A process of the managed form has no local rank, because its RANK counts nodes.
std::string place_in_job(const PlannedProcess& process) {
  std::string node = fmt::format("node {}", process.node);
  if (!process.environment.contains("LOCAL_RANK")) return node;
  return fmt::format("{}, local rank {}", node, process.local_rank);
}

}  // namespace

std::string to_text(const ProcessPlan& plan, const Job& job, const MasterAddress& master) {
  const Censor censor(plan);
  const Variables common = common_of(plan);
  std::string text = header(plan, job, master) + "\nall ranks\n";
  const auto add = [&](const std::string& name, const std::string& value) {
    text += fmt::format("  {}={}\n", name, word(censor.value(name, value)));
  };
  for (const auto& [name, value] : common) add(name, value);
  for (const PlannedProcess& process : plan.processes) {
    text += process.in_world ? fmt::format("\nrank {}", process.rank)
                             : fmt::format("\nprocess {}, outside the world", process.rank);
    text += fmt::format(": {} {} on {} ({})\n",
                        process.role,
                        node_in_role(plan, process),
                        process.host,
                        place_in_job(process));
    if (!process.image.empty()) text += fmt::format("  image: {}\n", process.image);
    text += fmt::format("  command: {}\n", command_of(process, censor));
    for (const auto& [name, value] : process.environment) {
      if (!process.in_world || !common.contains(name)) add(name, value);
    }
  }
  return text;
}

}  // namespace peal::launch
