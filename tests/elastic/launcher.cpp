// The launcher of an elastic job, for the tests in this folder:
//   launcher DISCOVERY_SCRIPT MIN MAX LOW HIGH TIMEOUT RESET_LIMIT COMMAND...
// MAX or RESET_LIMIT 0: no limit. LOW, HIGH: the range of the cool-down; TIMEOUT: for min_ranks;
// all in seconds. Prints the report, and ends with its exit code.
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "peal/base/error.h"
#include "peal/launch/agents/agents.h"
#include "peal/launch/agents/elastic_guard.h"
#include "peal/launch/elastic/round_records.h"
#include "peal/launch/elastic/run_elastic.h"
#include "peal/launch/flights.h"
#include "peal/launch/job_context.h"

int main(int count, char** arguments) {
  using namespace peal::launch;
  const std::vector<std::string> words(arguments + 1, arguments + count);
  const auto number = [&](std::size_t i) { return std::stoi(words.at(i)); };
  const auto limit = [&](std::size_t i) {
    return number(i) > 0 ? std::optional(number(i)) : std::nullopt;
  };
  ElasticOptions elastic;
  elastic.discovery_script = words.at(0);
  elastic.min_ranks = number(1);
  elastic.max_ranks = limit(2);
  elastic.cooldown = Cooldown{std::chrono::seconds(number(3)), std::chrono::seconds(number(4))};
  elastic.timeout = std::chrono::seconds(number(5));
  elastic.reset_limit = limit(6);
  LaunchOptions options;
  options.command = {words.begin() + 7, words.end()};
  try {
    const Variables variables = process_variables();
    const Flights flights(variables);
    const JobContext job = make_job_context().job;
    SignalReader signals;
    agents::Agents agents({}, signals);  // all hosts are this machine
    ElasticReport report = run_elastic(
        options,
        elastic,
        job,
        flights.place(),
        [&](GuardDuty duty) {
          return std::make_unique<agents::ElasticGuard>(
              agents, agents::LauncherFacts{options.command, variables}, std::move(duty));
        },
        variables,
        target_of(STDOUT_FILENO),
        target_of(STDERR_FILENO),
        signals);
    report.post_mortem = examine(report, flights.place(), job.id, options);
    std::cout << describe(report) << "the report ends" << std::endl;
    return exit_code(report);
  } catch (const peal::Error& error) {
    std::cout << "launcher: " << error.what() << std::endl;
    return 2;
  }
}
