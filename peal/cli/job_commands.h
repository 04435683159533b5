// `peal status`, `peal logs`, `peal cancel` and `peal jobs`: the commands for submitted jobs.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "peal/cli/submitted_job.h"

namespace peal::cli {

class JobCommands final {
 public:
  /// Adds the commands to the program. `app` must outlive this object.
  explicit JobCommands(CLI::App& app);
  JobCommands(const JobCommands&) = delete;

  bool were_asked_for() const;
  /// Returns the exit code: 0; of `logs` also 130 after Ctrl-C.
  /// Errors: usage (an unknown id, rank or attempt), resource (the engine does not answer).
  int run() const;

 private:
  /// With --to, by the engine of that runner, otherwise by the records of this machine.
  SubmittedJob find(const std::string& text) const;
  int show_status() const;
  int show_logs() const;
  int cancel() const;
  int list() const;

  CLI::App* status_;  // CLI11 owns these
  CLI::App* logs_;
  CLI::App* cancel_;
  CLI::App* jobs_;
  std::string id_;
  std::vector<std::string> ids_;
  std::string to_;
  bool as_json_ = false;
  bool follows_ = false;
  std::string rank_;
  std::string attempt_;
  std::string remove_after_;
};

}  // namespace peal::cli
