#include "peal/cli/horovod_options.h"

#include <fmt/format.h>

namespace peal::cli {
namespace {

std::string with_short_first(const HorovodOption& option) {
  if (option.other_names.empty()) return std::string(option.name);
  return fmt::format("{},{}", option.name, option.other_names);
}

}  // namespace

HorovodOptions::HorovodOptions(CLI::App& command) : command_(command) {
  for (const HorovodOption& option : horovod_options()) {
    if (option.accepts == Accepts::kSwitch) {
      declare_switch(option);
    } else {
      declare_value(option);
    }
  }
}

void HorovodOptions::declare_switch(const HorovodOption& option) {
  const auto declare = [&](const std::string& names, const std::string& value, Shown shown) {
    CLI::Option* const made = command_.add_flag(names);
    made->description(std::string(option.meaning))->disable_flag_override();
    made->group(option.shown == shown ? std::string(option.heading) : "");
    declared_.emplace(made, Declared{&option, value});
  };
  declare(with_short_first(option), "true", Shown::kName);
  if (!option.opposite.empty()) declare(std::string(option.opposite), "false", Shown::kOpposite);
}

void HorovodOptions::declare_value(const HorovodOption& option) {
  CLI::Option* const made =
      command_.add_option(with_short_first(option), CLI::callback_t(), std::string(option.meaning));
  made->type_name(std::string(option.value))
      ->type_size(option.values)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(option.shown == Shown::kName ? std::string(option.heading) : "");
  declared_.emplace(made, Declared{&option, ""});
}

std::vector<GivenOption> HorovodOptions::given() const {
  std::vector<GivenOption> given;
  std::map<const CLI::Option*, std::size_t> taken;  // values of the option
  // An option is in the order once for each of its values.
  for (const CLI::Option* const parsed : command_.parse_order()) {
    const auto declared = declared_.find(parsed);
    if (declared == declared_.end()) continue;
    const auto& [option, value] = declared->second;
    if (!value.empty()) {
      given.push_back({option, {value}});
      continue;
    }
    const std::string& next = parsed->results().at(taken[parsed]);
    if (taken[parsed]++ % static_cast<std::size_t>(option->values) == 0) {
      given.push_back({option, {next}});
    } else {
      given.back().values.push_back(next);
    }
  }
  return given;
}

std::string with_two_hyphens(const CLI::App& command, const std::string& argument) {
  const bool has_one = argument.size() > 2 && argument.starts_with('-') && argument[1] != '-';
  if (!has_one) return argument;
  if (argument == "-cb") return "--check-build";
  const std::string name = "-" + argument.substr(0, argument.find('='));
  return command.get_option_no_throw(name) == nullptr ? argument : "-" + argument;
}

}  // namespace peal::cli
