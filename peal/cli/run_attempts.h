// Runs a job whose number of ranks is fixed during an attempt: on this machine or on other hosts,
// and again after a failure if the user allows it. Called by run_job.cpp.
#pragma once

#include <string>
#include <string_view>

#include "peal/cli/run_job.h"
#include "peal/cli/say.h"
#include "peal/config/environment.h"
#include "peal/launch/allocation_end.h"
#include "peal/launch/attempt_loop.h"
#include "peal/launch/rank_command.h"
#include "peal/launch/signals.h"

namespace peal::cli {

/// A job whose user reads the stderr of this process.
class TerminalJob : public launch::AttemptedJob {
 public:
  explicit TerminalJob(launch::SignalReader& signals) : signals_(signals) {}
  void tell(const std::string& sentence) override { say("peal: " + sentence + "\n"); }
  bool is_preempted() override { return launch::is_preempted(process_environment()); }

 protected:
  void say(std::string_view text) const { cli::say(text, signals_); }
  launch::SignalReader& signals() const { return signals_; }

 private:
  launch::SignalReader& signals_;
};

/// The environment of the ranks, as far as the user and this process's environment give it.
launch::Variables given_variables(const RunRequest& request, launch::Variables inherited);

/// Prints the report of each attempt, and returns the exit code of the last one. `inherited`: the
/// environment of this process. Errors: resource.
int run_attempts(const RunRequest& request,
                 const launch::Variables& inherited,
                 launch::SignalReader& signals);

}  // namespace peal::cli
