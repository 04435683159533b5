// The driver of an elastic job: waits for what happens, and carries out what `decide` says. Called
// by run_elastic.
#pragma once

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "peal/launch/elastic/decide.h"
#include "peal/launch/elastic/discovery_run.h"
#include "peal/launch/elastic/mailroom.h"
#include "peal/launch/elastic/round_records.h"
#include "peal/launch/elastic/run_elastic.h"
#include "peal/launch/elastic/starter.h"
#include "peal/launch/elastic/state.h"
#include "peal/launch/elastic/worker_command.h"
#include "peal/launch/elastic/worker_outputs.h"
#include "peal/launch/elastic/worker_processes.h"
#include "peal/launch/screen.h"
#include "peal/launch/supervisor.h"

namespace peal::launch::elastic {

class Driver final {
 public:
  Driver(const LaunchOptions& options,
         const ElasticOptions& elastic,
         const JobContext& job,
         const RecordPlace& records,
         const std::string& program,
         const Variables& inherited,
         Target out,
         Target err);
  ElasticReport run();

 private:
  bool runs() const { return supervisor_.stage() == Stage::kRunning; }
  bool is_over() const;
  bool waits_for_last_output() const;
  void wait_and_handle();

  // What happens.
  void handle(const GuardEvent& event);
  void not_started(const GuardEvent& event);
  void process_ended(const GuardEvent& event);
  void worker_process_ended(int worker, const GuardEvent& event);
  void handle_requests();
  void worker_asks(int worker, std::int64_t number);
  void take_hosts(DiscoveryRun::Result result);
  bool is_usable(const std::string& host);
  void take_first_hosts(const std::vector<HostSlots>& hosts);

  // What the driver does.
  void act();
  bool carry_out(const Decision& decision);
  void start_worker(const StartWorker& action);
  void begin_round(const BeginRound& action);
  void stop_worker(int worker, const std::string& reason);
  void remove_worker(int worker, const std::string& reason);
  void answer(int worker, const rendezvous::ElasticAnswer& answer);
  void fail_meeting(const Worker& worker, const std::string& what, ErrorCause cause);
  void fail(const std::string& why);
  void end();
  bool is_any_alive() const;
  void say(const std::string& text);
  void say_failures();

  Worker& worker(int number) { return state_.workers.at(static_cast<std::size_t>(number)); }

  const ElasticOptions& elastic_;
  const TimePoint start_ = Clock::now();
  WorkerKit kit_;
  State state_;
  std::map<int, std::int64_t> asks_;  // by worker: the request that waits for an answer
  int next_process_ = 0;              // the guard's number for the next process
  std::string discovery_problem_;     // of the last run
  bool has_hosts_ = false;            // whether a run has succeeded
  std::mt19937_64 random_{std::random_device{}()};
  std::set<std::string> unusable_hosts_;            // that have been reported
  std::string over_ = "the launcher ends the job";  // for workers that ask
  ElasticReport report_;
  RoundRecords records_;
  Screen screen_;
  WorkerOutputs outputs_;
  Supervisor supervisor_;
  LocalStarter starter_;
  WorkerProcesses processes_;
  DiscoveryRun discovery_;
  Mailroom mailroom_;  // has threads, so it comes after the guard
};

}  // namespace peal::launch::elastic
