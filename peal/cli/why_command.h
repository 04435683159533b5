// `peal why`: names the rank that caused a job to fail or to hang, by the records of its ranks.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace peal::cli {

struct WhyRequest {
  std::vector<std::string> paths;  // of dumps, flights, and folders of them
  bool as_json = false;
};

class WhyCommand final {
 public:
  /// Adds `why` to the program. `app` must outlive this object.
  explicit WhyCommand(CLI::App& app);
  WhyCommand(const WhyCommand&) = delete;

  bool was_asked_for() const { return why_->parsed(); }
  /// The paths default to the folder in PEAL_FLIGHT_DIR. Of an elastic job, only the last round.
  /// Errors: usage, if that is not set either.
  WhyRequest request() const;

 private:
  CLI::App* why_;  // CLI11 owns it
  WhyRequest request_;
};

/// Prints the answer, one sentence and below it the evidence. Returns the exit code.
/// Errors: those of observe::read_dumps.
int run(const WhyRequest& request);

}  // namespace peal::cli
