#include "peal/launch/lost_batch_host.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "peal/base/error.h"
#include "peal/launch/allocation_end.h"
#include "peal/launch/program.h"
#include "peal/rendezvous/nodelist.h"

namespace peal::launch {
namespace {

/// Slurm takes SlurmdTimeout to notice the loss, often five minutes.
constexpr std::chrono::seconds kAskEvery{5};

/// Empty if peal cannot read the list.
std::vector<std::string> hosts_of(std::string_view nodelist) {
  try {
    return rendezvous::all_hosts(nodelist);
  } catch (const Error&) {
    return {};
  }
}

bool is_running(std::string_view line) { return slurm_field(line, "JobState") == "RUNNING"; }

std::optional<std::string> try_slurm(std::vector<std::string> words) {
  try {
    Answer answer = ask_program({.words = std::move(words)});
    if (answer.exit_code == 0) return std::move(answer.out);
  } catch (const Error&) {  // the command does not exist
  }
  return std::nullopt;
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

void requeue_after_lost_batch_host(const Environment& environment) {
  const auto job = environment("SLURM_JOB_ID");
  const auto nodes = environment("SLURM_JOB_NODELIST");
  const auto node = environment("SLURMD_NODENAME");
  if (!job || !nodes || !node) return;
  while (true) {
    const auto line = try_slurm({"scontrol", "show", "job", "--oneliner", *job});
    if (!line || !is_running(*line) || !may_requeue(*line, *nodes, *node)) return;
    if (!lost_batch_host(*line).empty()) break;
    std::this_thread::sleep_for(kAskEvery);
  }
  try_slurm({"scontrol", "requeue", *job});
}

}  // namespace peal::launch
