#include "tests/elastic/elastic_job.h"

#include <stdio.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/number_after.h"

namespace peal::testing {
namespace {

constexpr auto kLook = std::chrono::milliseconds(20);

}  // namespace

ElasticJob::ElasticJob() { set_hosts(""); }

void ElasticJob::set_hosts(const std::string& hosts) const {
  const std::string path = folder_.path() + "/hosts";
  {
    std::ofstream file(path + ".new");
    std::istringstream words(hosts);
    for (std::string word; words >> word;) file << word << "\n";
  }
  std::filesystem::rename(path + ".new", path);
}

std::string ElasticJob::discovery_script() const { return "cat " + folder_.path() + "/hosts"; }

std::string ElasticJob::mark() const { return "PEAL_TEST_ELASTIC=" + folder_.path(); }

void ElasticJob::start(const std::vector<std::string>& command,
                       const ElasticSettings& settings,
                       const std::string& script) {
  std::vector<std::string> words = {PEAL_ELASTIC_LAUNCHER,
                                    script.empty() ? discovery_script() : script};
  for (const int number : {settings.min_ranks,
                           settings.max_ranks,
                           settings.cooldown,
                           settings.cooldown,
                           settings.timeout,
                           settings.reset_limit}) {
    words.push_back(std::to_string(number));
  }
  words.emplace_back(PEAL_ELASTIC_WORKER_PROGRAM);
  words.insert(words.end(), command.begin(), command.end());
  Processes::Variables variables = {
      {"PEAL_TEST_ELASTIC", folder_.path()},
      {"PEAL_TIMEOUT", settings.peal_timeout},
      {"TMPDIR", folder_.path()},  // also for the dump of a failed job
  };
  if (!settings.records.empty()) variables["PEAL_FLIGHT_DIR"] = settings.records;
  processes_.start(words, variables);
}

void ElasticJob::finish() const { std::ofstream(folder_.path() + "/finish"); }

bool ElasticJob::wait_for(const std::string& text) {
  return processes_.wait_for_output(0, text, Deadline::after(kLimit));
}

std::vector<RoundLine> ElasticJob::rounds() {
  std::vector<RoundLine> rounds;
  std::istringstream lines(output());
  for (std::string line; std::getline(lines, line);) {
    RoundLine round;
    round.pid = static_cast<pid_t>(number_after(line, "pid "));
    round.round = static_cast<int>(number_after(line, ": round "));
    if (round.round < 0 || round.pid <= 0 || number_after(line, ", step ") < 0) continue;
    round.rank = static_cast<int>(number_after(line, ", rank "));
    round.size = static_cast<int>(number_after(line, " of "));
    round.step = number_after(line, ", step ");
    const auto begin = line.find(" on ") + 4;
    round.where = line.substr(begin, line.find(", step") - begin);
    rounds.push_back(round);
  }
  return rounds;
}

bool ElasticJob::wait_for_round(int round, int size) {
  const Deadline deadline = Deadline::after(kLimit);
  while (!deadline.passed()) {
    int count = 0;
    for (const RoundLine& line : rounds()) {
      count += line.round == round && line.size == size ? 1 : 0;
    }
    if (count == size) return true;
    if (processes_.wait_for_end(0, Deadline::after(Timeout(0)))) break;
    std::this_thread::sleep_for(kLook);
  }
  ADD_FAILURE() << "round " << round << " did not begin with " << size << " workers:\n" << output();
  return false;
}

pid_t ElasticJob::pid_of(int round, int rank) {
  pid_t pid = -1;
  for (const RoundLine& line : rounds()) {
    if (line.round == round && line.rank == rank) pid = line.pid;
  }
  return pid;
}

Processes::Ended ElasticJob::wait() {
  const Deadline deadline = Deadline::after(kLimit);
  // Looks again and again, because workers come and go.
  while (!processes_.wait_for_end(0, Deadline::after(kLook)) && !deadline.passed()) {
    const Leftovers now = belongings_of(mark());
    belongings_.sockets.insert(now.sockets.begin(), now.sockets.end());
    belongings_.memory.insert(now.memory.begin(), now.memory.end());
  }
  const auto ended = processes_.wait(Deadline::after(kLimit)).front();
  const Deadline to_vanish = Deadline::after(std::chrono::seconds(20));
  Leftovers left;
  do {
    left = left_of(belongings_, mark());
    if (left == Leftovers{}) break;
    std::this_thread::sleep_for(kLook);
  } while (!to_vanish.passed());
  EXPECT_EQ(left, Leftovers{}) << ended.output;
  EXPECT_TRUE(ended.in_time) << ended.output;
  return ended;
}

}  // namespace peal::testing
