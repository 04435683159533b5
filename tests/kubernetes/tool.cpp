// Drives the Kubernetes runner from a command line, for kubernetes_test.py:
//   peal_kubernetes_tool print|start FILE ID [--train-job]
//   peal_kubernetes_tool status|cancel ID
//   peal_kubernetes_tool logs ID [--follow] [--node N] [--attempt K]
// --namespace X comes after all others. The job's secret is in PEAL_TEST_SECRET. An error is one
// line on stderr, and exit code 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "peal/base/error.h"
#include "peal/launch/kubernetes/kubernetes_runner.h"
#include "peal/launch/kubernetes/manifests.h"

#include "tests/kubernetes/job_file.h"

namespace {

using peal::launch::JobStatus;
using peal::launch::LogLine;
using peal::launch::LogQuery;
using peal::launch::NodeStatus;
namespace kubernetes = peal::launch::kubernetes;

using Words = std::vector<std::string>;

bool has(const Words& words, const char* flag) {
  return std::ranges::find(words, flag) != words.end();
}

std::optional<std::string> value_of(const Words& words, const char* flag) {
  const auto found = std::ranges::find(words, flag);
  if (found == words.end() || found + 1 == words.end()) return std::nullopt;
  return *(found + 1);
}

std::optional<int> number_of(const Words& words, const char* flag) {
  const auto text = value_of(words, flag);
  return text ? std::optional(std::stoi(*text)) : std::nullopt;
}

nlohmann::ordered_json json_of(const NodeStatus& node) {
  nlohmann::ordered_json tree = {{"role", node.role},
                                 {"index", node.index},
                                 {"state", name_of(node.state)},
                                 {"engine_state", node.engine_state},
                                 {"reason", node.reason},
                                 {"attempt", node.attempt}};
  if (node.exit_code) tree["exit_code"] = *node.exit_code;
  return tree;
}

void print(const JobStatus& status) {
  nlohmann::ordered_json tree = {{"id", status.id},
                                 {"state", name_of(status.state)},
                                 {"engine_state", status.engine_state},
                                 {"reason", status.reason},
                                 {"first_failure", status.first_failure}};
  if (status.exit_code) tree["exit_code"] = *status.exit_code;
  for (const NodeStatus& node : status.nodes) tree["nodes"].push_back(json_of(node));
  std::cout << tree.dump(2) << '\n';
}

void print_line(const LogLine& line) {
  std::cout << '[' << line.role << '-' << line.index << "] " << line.text << std::endl;
}

int run(const Words& words) {
  const std::string& action = words.at(0);
  const char* const secret = std::getenv("PEAL_TEST_SECRET");
  const peal::Secret own(secret == nullptr ? "" : secret);
  const auto form =
      has(words, "--train-job") ? kubernetes::Form::kTrainJob : kubernetes::Form::kIndexedJobs;
  const auto runner = kubernetes::make_kubernetes_runner(
      {.job_namespace = value_of(words, "--namespace").value_or(""), .form = form});
  if (action == "print") {
    const auto job = kubernetes::job_in_file(words.at(1));
    const kubernetes::ManifestOptions options{.id = words.at(2), .secret = own};
    std::cout << kubernetes::to_text(form == kubernetes::Form::kTrainJob
                                         ? train_job_manifests(job, options)
                                         : manifests(job, options));
  } else if (action == "start") {
    std::cout << runner->start(kubernetes::job_in_file(words.at(1)),
                               {.id = words.at(2), .secret = own})
              << '\n';
  } else if (action == "status") {
    print(runner->status(words.at(1)));
  } else if (action == "logs") {
    LogQuery query{.node = number_of(words, "--node"), .attempt = number_of(words, "--attempt")};
    if (has(words, "--follow")) query.follow = peal::launch::Follow::kUntilTheEnd;
    runner->logs(words.at(1), query, print_line);
  } else if (action == "cancel") {
    const bool was_there = runner->cancel(words.at(1)) == peal::launch::CancelResult::kCancelled;
    std::cout << (was_there ? "cancelled\n" : "nothing to cancel\n");
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(Words(words + 1, words + count));
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
