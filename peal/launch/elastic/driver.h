// The driver of an elastic job: waits for what happens, and carries out what `decide` says. Called
// by run_elastic.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "peal/launch/cores.h"
#include "peal/launch/elastic/decide.h"
#include "peal/launch/elastic/discovery_run.h"
#include "peal/launch/elastic/mailroom.h"
#include "peal/launch/elastic/run_elastic.h"
#include "peal/launch/elastic/starter.h"
#include "peal/launch/elastic/state.h"
#include "peal/launch/elastic/worker_command.h"
#include "peal/launch/elastic/worker_outputs.h"
#include "peal/launch/guard.h"
#include "peal/launch/process_tree.h"
#include "peal/launch/screen.h"
#include "peal/launch/signals.h"

namespace peal::launch::elastic {

class Driver final {
 public:
  Driver(const LaunchOptions& options,
         const ElasticOptions& elastic,
         const Job& job,
         const std::string& program,
         const Variables& inherited,
         Target out,
         Target err);
  ElasticReport run();

 private:
  enum class Stage : unsigned char {
    kRunning,
    kFailing,    // the job has failed, and its workers may end by themselves
    kStopping,   // the launcher ends the workers
    kGone,       // all processes have ended; their output remains to be shown
    kAbandoned,  // as kGone, but the remaining output is dropped
  };

  /// What the driver knows of a worker beside its state.
  struct Process {
    int number = -1;                   // of the guard
    std::optional<std::size_t> share;  // of the cores
    std::optional<std::int64_t> asks;  // the request that waits for an answer
    TimePoint killed_from = TimePoint::max();
  };

  bool is_over() const;
  Timeout longest_wait() const;
  void wait_and_handle();

  // What happens.
  void handle_signals();
  void end_by_signal(SignalReader::Taken taken);
  void handle_events();
  void handle(const GuardEvent& event);
  void process_ended(const GuardEvent& event);
  void worker_process_ended(int worker, const GuardEvent& event);
  void not_started(const GuardEvent& event);
  void handle_requests();
  void worker_asks(int worker, std::int64_t number);
  void take_hosts(DiscoveryRun::Result result);
  void guard_is_lost();

  // What the driver does.
  void act();
  bool carry_out(const Decision& decision);
  void start_worker(const StartWorker& action);
  void begin_round(const BeginRound& action);
  void stop_worker(int worker, const std::string& reason);
  void answer(int worker, const rendezvous::ElasticAnswer& answer);
  void fail_meeting(const Worker& worker, const std::string& what, ErrorCause cause);
  void fail(const std::string& why);
  void stop(int signal, SignalOrigin origin);
  void kill_late_workers(TimePoint now);
  CoreShare take_share(Process& process);
  void say(const std::string& text);

  Worker& worker(int number) { return state_.workers.at(static_cast<std::size_t>(number)); }
  Process& process(int worker) { return processes_.at(static_cast<std::size_t>(worker)); }
  bool is_any_alive() const;

  const LaunchOptions& options_;
  const ElasticOptions& elastic_;
  const TimePoint start_ = Clock::now();
  WorkerKit kit_;
  State state_;
  std::vector<Process> processes_;        // by worker
  std::map<int, int> worker_of_process_;  // by the guard's number
  int next_process_ = 0;
  std::vector<CoreShare> shares_;
  std::set<std::size_t> used_shares_;
  std::map<std::string, bool> is_here_;  // whether a host is this machine
  std::string discovery_problem_;        // of the last run
  bool has_hosts_ = false;               // whether a run has succeeded
  std::mt19937_64 random_{std::random_device{}()};
  Stage stage_ = Stage::kRunning;
  TimePoint stopping_from_ = TimePoint::max();
  std::string over_;  // why the job ends, for workers that ask
  ElasticReport report_;
  const std::set<pid_t> children_before_;  // of the program, with their descendants
  Screen screen_;
  WorkerOutputs outputs_;
  const OrphanAdoption adoption_;
  SignalReader signals_;
  Guard guard_;
  LocalStarter starter_;
  DiscoveryRun discovery_;
  Mailroom mailroom_;  // has threads, so it comes after the guard
};

}  // namespace peal::launch::elastic
