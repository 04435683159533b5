// `peal why`: who caused a job to fail or to stand still, by the records that its ranks left.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace peal::cli {

/// What was asked for.
struct WhyRequest {
  std::vector<std::string> paths;  // of dumps, flights, and folders of them
  bool as_json = false;
};

class WhyCommand final {
 public:
  /// Adds `why` to the program. `app` must outlive this.
  explicit WhyCommand(CLI::App& app);
  WhyCommand(const WhyCommand&) = delete;

  bool was_asked_for() const { return why_->parsed(); }
  /// Without paths it is the folder of PEAL_FLIGHT_DIR. Throws Error(usage) where there is none.
  WhyRequest request() const;

 private:
  CLI::App* why_;  // CLI11 owns it
  WhyRequest request_;
};

/// Prints the answer, one sentence and below it the evidence, and returns the exit code.
/// Errors: those of observe::read_dumps.
int run(const WhyRequest& request);

}  // namespace peal::cli
