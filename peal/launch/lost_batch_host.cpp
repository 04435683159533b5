#include "peal/launch/lost_batch_host.h"

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/split.h"
#include "peal/launch/command.h"
#include "peal/launch/scontrol.h"
#include "peal/rendezvous/nodelist.h"

namespace peal::launch {
namespace {

/// Slurm's own default.
constexpr std::chrono::seconds kUsualSlurmdTimeout{300};

/// Empty if peal cannot read the list.
std::vector<std::string> hosts_of(std::string_view nodelist) {
  try {
    return rendezvous::all_hosts(nodelist);
  } catch (const Error&) {
    return {};
  }
}

bool is_running(std::string_view line) { return slurm_field(line, "JobState") == "RUNNING"; }

/// Nothing if Slurm does not answer, or refuses.
std::optional<std::string> try_slurm(const std::vector<std::string>& words) {
  try {
    return ask_slurm(words);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The batch script runs on a node of the job. So the first other node is the first or the second.
bool may_be_first_other_node(std::string_view nodes, std::string_view node) {
  auto hosts = hosts_of(nodes);
  hosts.resize(std::min<std::size_t>(hosts.size(), 2));
  return std::ranges::find(hosts, node) != hosts.end();
}

/// Nothing if Slurm does not answer: then this node is probably cut off, and not that of the
/// launcher. Slurm notices a loss later than SlurmdTimeout: for example after 25 s if it is 10 s.
std::optional<Deadline> limit_of(const LostBatchHostWait& wait) {
  const Deadline first_answer = Deadline::after(wait.first_answer);
  auto shown = try_slurm({"scontrol", "show", "config"});
  while (!shown && !first_answer.passed()) {
    std::this_thread::sleep_for(wait.ask_every);
    shown = try_slurm({"scontrol", "show", "config"});
  }
  if (!shown) return std::nullopt;
  const auto timeout = slurmd_timeout(*shown).value_or(kUsualSlurmdTimeout);
  return Deadline::after(2 * timeout + wait.margin);
}

}  // namespace

std::string lost_batch_host(std::string_view line) {
  std::string host = slurm_field(line, "BatchHost");
  const auto nodes = hosts_of(slurm_field(line, "NodeList"));
  if (host.empty() || nodes.empty() || !is_running(line)) return "";
  return std::ranges::find(nodes, host) == nodes.end() ? host : "";
}

bool may_requeue(std::string_view line, std::string_view nodes, std::string_view node) {
  const std::string batch_host = slurm_field(line, "BatchHost");
  const bool has_script = slurm_field(line, "BatchFlag") == "1" && !batch_host.empty();
  const bool is_component =
      !slurm_field(line, "HetJobId").empty();  // Slurm requeues only the whole
  if (!has_script || is_component || slurm_field(line, "Requeue") != "1") return false;
  const auto hosts = hosts_of(nodes);
  const auto first =
      std::ranges::find_if(hosts, [&](const std::string& host) { return host != batch_host; });
  return first != hosts.end() && *first == node;
}

std::string name_for_requeue(std::string_view line) {
  const std::string array = slurm_field(line, "ArrayJobId");
  const std::string task = slurm_field(line, "ArrayTaskId");
  if (array.empty() || task.empty()) return slurm_field(line, "JobId");
  return fmt::format("{}_{}", array, task);
}

std::optional<std::chrono::seconds> slurmd_timeout(std::string_view configuration) {
  for (const std::string_view line : split(configuration, '\n')) {
    const auto words = split(line, ' ');
    if (words.front() != "SlurmdTimeout") continue;
    for (const std::string_view word : words) {
      if (const auto seconds = try_parse_number<std::uint16_t>(word)) {
        return std::chrono::seconds(*seconds);
      }
    }
  }
  return std::nullopt;
}

void requeue_after_lost_batch_host(const Environment& environment, const LostBatchHostWait& wait) {
  const auto job = environment("SLURM_JOB_ID");
  const auto nodes = environment("SLURM_JOB_NODELIST");
  const auto node = environment("SLURMD_NODENAME");
  if (!job || !nodes || !node || !may_be_first_other_node(*nodes, *node)) return;
  if (find_command("scontrol", environment("PATH").value_or("")).exit_code != 0) return;
  const auto limit = limit_of(wait);
  while (limit && !limit->passed()) {
    const auto shown = try_slurm({"scontrol", "show", "job", "--oneliner", *job}).value_or("");
    const auto lines = lines_of_job(shown, *job);
    if (!lines.empty()) {
      const std::string_view line = lines.front();
      if (!is_running(line) || !may_requeue(line, *nodes, *node)) return;
      const bool is_lost = !lost_batch_host(line).empty();
      if (is_lost && try_slurm({"scontrol", "requeue", name_for_requeue(line)})) return;
    }
    std::this_thread::sleep_for(wait.ask_every);
  }
}

}  // namespace peal::launch
