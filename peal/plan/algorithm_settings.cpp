#include "peal/plan/algorithm_settings.h"

#include <string>

#include "peal/base/error.h"
#include "peal/plan/choose.h"

namespace peal::plan {
namespace {

/// Calls `read`, and adds the source of the text to its errors.
template <class Read>
auto read_from(const std::string& source, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.kind(), source + ": " + std::string(error.message()));
  }
}

}  // namespace

Table rows_of(const Config& config) {
  const std::string source =
      config.tune_file.empty() ? "PEAL_TUNE" : "PEAL_TUNE=@" + config.tune_file;
  return read_from(source, [&] { return parse_table(config.tune); });
}

const Algorithm* forced_by(const Config& config) {
  if (config.algorithm.empty()) return nullptr;
  return read_from("PEAL_ALGORITHM", [&] { return &algorithm_named(config.algorithm); });
}

AlgorithmSettings::AlgorithmSettings(const Config& config)
    : table_(tuned(rows_of(config))), forced_(forced_by(config)) {}

const Algorithm& AlgorithmSettings::choose(const schedule::Problem& problem, Bytes element) const {
  if (forced_ != nullptr && forced_->applies(problem)) return *forced_;
  return plan::choose(table_, problem, element);
}

}  // namespace peal::plan
