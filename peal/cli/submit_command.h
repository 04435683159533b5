// `peal submit`: converts a job file, gcloud's flags and arguments to a job and the way to start
// it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "peal/launch/job/gcloud_flags.h"
#include "peal/launch/job/job.h"
#include "peal/launch/job/process_plan.h"

namespace peal::cli {

struct SubmitRequest {
  launch::Job job;
  std::vector<std::string> notices{};       // for the user
  std::string folder{};                     // Job::files are relative to it
  std::vector<launch::JobHost> hosts{};     // of -H or --hostfile; may be empty
  std::string to{};                         // a name of kRunnerNames; empty: not given
  bool print = false;                       // show the job in peal's own form
  bool dry_run = false;                     // show the plan of its processes
  bool is_train_job = false;                // in Kubernetes: as a TrainJob of Kubeflow
  std::string peal_path{};                  // of the program peal on other hosts; empty: as here
  std::vector<std::string> command_line{};  // for the records
  bool stream_logs = false;  // follow the output, and end with the exit code of the job
};

class SubmitCommand final {
 public:
  /// Adds `submit` to the program. `app` must outlive this object.
  explicit SubmitCommand(CLI::App& app);
  SubmitCommand(const SubmitCommand&) = delete;

  /// Removes "--" and the arguments after it from `arguments` (those after "submit") before they
  /// are parsed: they belong to the program. Spells the options as declared. Errors: usage, for an
  /// option that does not exist; the error names the nearest.
  void take_program_arguments(std::vector<std::string>& arguments);
  bool was_asked_for() const { return submit_->parsed(); }
  /// Reads the file. Errors: usage.
  SubmitRequest request() const;

 private:
  void add_options();
  void add_gcloud_flags();
  std::vector<launch::GivenFlag> given_flags() const;

  CLI::App* submit_;  // CLI11 owns it
  std::string target_;
  std::string config_;
  std::string hosts_;
  std::string hostfile_;
  bool is_asynchronous_ = false;  // no effect, because this is the default of peal
  SubmitRequest request_;
  std::vector<std::string> arguments_;                          // of the program
  std::map<std::string_view, std::vector<std::string>> texts_;  // by the name of the flag
};

/// Shows what the request asks for. Returns the exit code.
/// Errors: usage, also if there are too few hosts.
int run(const SubmitRequest& request);

}  // namespace peal::cli
