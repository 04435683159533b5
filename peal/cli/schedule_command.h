// `peal schedule`: prints the schedule of an operation with its cost and its proof, or proves the
// schedule in a file.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace peal::cli {

/// The arguments, unparsed.
struct ScheduleRequest {
  std::string operation;
  int ranks = 2;
  int hosts = 1;
  std::string bytes = "1M";
  std::string dtype = "f32";
  int root = 0;
  std::string algorithm;  // empty: chosen as in a job
  bool in_place = false;
  std::string registered;  // "all", or ranks: "0,2"; empty: none
  int rank = -1;           // the rank whose steps are printed; -1: all ranks
  std::string file;        // to verify
};

class ScheduleCommand final {
 public:
  /// Adds `schedule` to the program. `app` must outlive this object.
  explicit ScheduleCommand(CLI::App& app);
  ScheduleCommand(const ScheduleCommand&) = delete;

  bool was_asked_for() const { return schedule_->parsed(); }
  const ScheduleRequest& request() const { return request_; }

 private:
  CLI::App* schedule_;  // CLI11 owns it
  ScheduleRequest request_;
};

/// Prints the answer and returns the exit code: 1 if the schedule is not right.
/// Errors: usage, which names the option, or the line of the file.
int run(const ScheduleRequest& request);

}  // namespace peal::cli
