#include "peal/cli/config_command.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/cli/exit_codes.h"
#include "peal/cli/unknown_variables.h"
#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/net/tcp_options.h"
#include "peal/plan/algorithm_settings.h"
#include "peal/plan/choose.h"
#include "peal/plan/plan.h"
#include "peal/rendezvous/url.h"

namespace peal::cli {
namespace {

std::string or_none(const std::string& value) { return value.empty() ? "none" : value; }

/// Describes a wrong value, with the meaning of the variable; empty if the value is right.
template <class AnyVariable>
std::string describe_wrong(const AnyVariable& variable, const ConfigReading& reading) {
  const auto wrong = std::ranges::find(reading.wrong, variable.name, &WrongValue::name);
  if (wrong == reading.wrong.end()) return "";
  return fmt::format("\n! {}\n    {}\n", wrong->problem, variable.meaning);
}

/// "PEAL_TIMEOUT = 300 (default)", with the meaning.
std::string describe(const Variable& variable,
                     const ConfigReading& reading,
                     const launch::Variables& set) {
  if (std::string wrong = describe_wrong(variable, reading); !wrong.empty()) return wrong;
  const std::string value = variable.print(reading.config);
  const bool is_set = set.contains(std::string(variable.name));
  const bool is_default = !is_set && value == variable.print(Config());
  return fmt::format("\n{} = {}{}\n    {}\n    It takes {}.\n",
                     variable.name,
                     or_none(value),
                     is_default ? " (default)" : "",
                     variable.meaning,
                     variable.value);
}

/// "PEAL_JOB = mine", with the meaning.
std::string describe(const OtherVariable& variable,
                     const ConfigReading& reading,
                     const Environment& environment) {
  if (std::string wrong = describe_wrong(variable, reading); !wrong.empty()) return wrong;
  const auto value = environment(std::string(variable.name));
  return fmt::format(
      "\n{} = {}\n    {}\n", variable.name, or_none(value.value_or("")), variable.meaning);
}

void check_port(const std::string& text) {
  if (rendezvous::parse_port(text)) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("PEAL_MASTER_PORT: \"{}\" is not a port, from 1 to 65535", text));
}

void check_congestion(const std::string& name) {
  if (name.empty()) return;
  try {
    net::check_congestion_control(name);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("PEAL_CONGESTION: {}", error.message()));
  }
}

/// Also checks algorithms, congestion controls and ports, which peal/config cannot check.
ConfigReading read_all(const Environment& environment) {
  ConfigReading reading = read_config(environment);
  const auto check = [&](const char* name, auto&& read) {
    try {
      read();
    } catch (const Error& error) {
      reading.wrong.push_back({name, std::string(error.message())});
    }
  };
  check("PEAL_TUNE", [&] { plan::rows_of(reading.config); });
  check("PEAL_ALGORITHM", [&] { plan::forced_by(reading.config); });
  check("PEAL_CONGESTION", [&] { check_congestion(reading.config.congestion); });
  if (const auto port = environment("PEAL_MASTER_PORT")) {
    check("PEAL_MASTER_PORT", [&] { check_port(*port); });
  }
  return reading;
}

std::vector<std::string> unknown_in(const launch::Variables& variables) {
  std::vector<std::string> names;
  for (const auto& [name, value] : variables) names.push_back(name);
  std::vector<std::string> texts;
  for (const UnknownVariable& unknown : unknown_variables(names)) {
    texts.push_back(unknown.nearest.empty()
                        ? unknown.name
                        : fmt::format("{} (did you mean {}?)", unknown.name, unknown.nearest));
  }
  return texts;
}

/// Prints the rows, one a line. Marks rows that never apply with a comment, as PEAL_TUNE allows.
void print_rows(const plan::Table& table, Bytes stage) {
  for (const plan::Row& row : table.rows) {
    const std::string mark =
        plan::may_count(row, stage)
            ? ""
            : fmt::format("   # never applies: {} cannot do this operation here",
                          row.algorithm->name);
    fmt::print("{}{}\n", plan::to_text(row), mark);
  }
}

}  // namespace

int show_config(const launch::Variables& variables) {
  const Environment environment = fixed_environment(variables);
  const ConfigReading reading = read_all(environment);
  std::string text = "The environment variables that peal reads, and their values here:\n";
  for (const Variable& variable : peal::variables()) text += describe(variable, reading, variables);
  for (const OtherVariable& variable : other_variables()) {
    text += describe(variable, reading, environment);
  }
  const std::vector<std::string> unknown = unknown_in(variables);
  if (!unknown.empty()) text += "\nSet here, but unknown to peal:\n";
  for (const std::string& name : unknown) text += fmt::format("    {}\n", name);
  if (!reading.wrong.empty()) {
    text += fmt::format("\n! {} of these values cannot be read.\n", reading.wrong.size());
  }
  std::fputs(text.c_str(), stdout);  // main reports a failure; fmt::print would throw its own
  return reading.wrong.empty() ? 0 : kUsage;
}

int show_choices(const launch::Variables& variables) {
  const ConfigReading reading = read_all(fixed_environment(variables));
  for (const WrongValue& wrong : reading.wrong) fmt::print("! {}\n", wrong.problem);
  if (!reading.wrong.empty()) return kUsage;
  const plan::Table own = plan::rows_of(reading.config);
  fmt::print("# The first row that fits, and whose algorithm can do the operation, is used.\n");
  if (!reading.config.algorithm.empty()) {
    fmt::print("# Before all rows, where it can do the operation: PEAL_ALGORITHM={}\n",
               reading.config.algorithm);
  }
  if (!own.rows.empty()) fmt::print("\n# PEAL_TUNE\n");
  print_rows(own, reading.config.stage);
  fmt::print("\n# built in\n");
  print_rows(plan::built_in_choices(), reading.config.stage);
  fmt::print("\n# If no row fits: pairwise.\n");
  return 0;
}

Config checked_config(const launch::Variables& variables) {
  ConfigReading reading = read_all(fixed_environment(variables));
  if (reading.wrong.empty()) return std::move(reading.config);
  std::vector<std::string> problems;
  for (WrongValue& wrong : reading.wrong) problems.push_back(std::move(wrong.problem));
  throw Error(ErrorKind::kUsage, fmt::format("{}", fmt::join(problems, "; ")));
}

std::string warn_of_unknown(const launch::Variables& variables) {
  const std::vector<std::string> unknown = unknown_in(variables);
  if (unknown.empty()) return "";
  return fmt::format("peal: warning: peal does not read {}; see peal config\n",
                     fmt::join(unknown, ", "));
}

}  // namespace peal::cli
