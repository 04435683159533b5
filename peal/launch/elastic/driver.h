// The driver of an elastic job: waits for what happens, and carries out what `decide` says. Called
// by run_elastic.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "peal/launch/elastic/decide.h"
#include "peal/launch/elastic/discovery_run.h"
#include "peal/launch/elastic/host_guard.h"
#include "peal/launch/elastic/mailroom.h"
#include "peal/launch/elastic/round_records.h"
#include "peal/launch/elastic/run_elastic.h"
#include "peal/launch/elastic/state.h"
#include "peal/launch/elastic/worker_command.h"
#include "peal/launch/elastic/worker_outputs.h"
#include "peal/launch/elastic/worker_processes.h"
#include "peal/launch/outer_stop_flag.h"
#include "peal/launch/screen.h"
#include "peal/launch/supervisor.h"

namespace peal::launch::elastic {

class Driver final {
 public:
  Driver(const LaunchOptions& options,
         const ElasticOptions& elastic,
         const JobContext& job,
         const RecordPlace& records,
         const HostGuardMaker& make_guard,
         const Variables& inherited,
         Target out,
         Target err,
         SignalReader& signals);
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
  void worker_lost(int worker);
  void end_worker(int worker, WorkerEnd how, ElasticEnd end);
  void handle_hosts();
  void host_is_ready(const HostEvent& event);
  void say_refusal(const HostEvent& event, const std::string& next);
  void say_loss(const HostEvent& event, const std::string& next);
  void note_refusals();
  void handle_requests();
  void refuse_lost_worker(const rendezvous::ElasticRequest& request);
  void worker_asks(int worker, std::int64_t number);
  void take_hosts(const DiscoveryRun::Result& result);

  // What the driver does.
  void act();
  void carry_out(const Decision& decision);
  void connect_host(const std::string& host);
  void leave_host(const std::string& host);
  void start_worker(const StartWorker& action);
  void begin_round(const BeginRound& action);
  void tell_changes(rendezvous::HostChanges changes);
  void stop_worker(int worker, const std::string& reason);
  void remove_worker(int worker, const std::string& reason);
  void answer(int worker, const rendezvous::ElasticAnswer& answer);
  void fail_meeting(const Worker& worker, const std::string& what, ErrorCause cause);
  void fail(const std::string& why);
  void end_badly(const std::string& why);
  void end();
  bool is_any_alive() const;
  void say(const std::string& text);
  void say_failures();
  double random() { return std::uniform_real_distribution(0.0, 1.0)(random_); }
  /// For how many seconds the host gets no new workers.
  int shown_pause_of(const std::string& host) const;

  Worker& worker(int number) { return state_.workers.at(static_cast<std::size_t>(number)); }

  const LaunchOptions& options_;
  const ElasticOptions& elastic_;
  const JobContext& job_;
  const TimePoint start_ = Clock::now();
  const TimePoint warning_time_ = warning_time(options_, start_);
  const std::optional<StopFlag> outer_flag_ = outer_stop_flag();
  bool has_warned_ = false;
  State state_;
  std::map<std::string, WorkerKit> kits_;  // of hosts that are or were ready
  std::map<int, std::int64_t> asks_;       // by worker: the request that waits for an answer
  int next_process_ = 0;                   // the guard's number for the next process
  std::string discovery_problem_;          // of the last run
  bool has_hosts_ = false;                 // whether a run has succeeded
  std::mt19937_64 random_{std::random_device{}()};
  std::map<std::string, std::string> problems_;     // of hosts, that have been reported
  std::set<int> refusals_;                          // the exit codes for hosts that refused
  std::string over_ = "the launcher ends the job";  // for workers that ask
  ElasticReport report_;
  RoundRecords records_;
  Screen screen_;
  WorkerOutputs outputs_;
  HostGuard* hosts_ = nullptr;  // the guard of the supervisor
  Supervisor supervisor_;
  WorkerProcesses processes_;
  DiscoveryRun discovery_;
  Mailroom mailroom_;  // has threads, so it comes after the guard
};

}  // namespace peal::launch::elastic
