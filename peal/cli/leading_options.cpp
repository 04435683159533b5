#include "peal/cli/leading_options.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "peal/base/difference.h"
#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/cli/horovod_options.h"
#include "peal/cli/spelling.h"

namespace peal::cli {
namespace {

/// Up to this difference a word may be a misspelled option. Long names often share words.
constexpr double kNearOption = 0.3;

Error refusal(const launch::Wording& wording, const std::string& what) {
  return Error(ErrorKind::kUsage, fmt::format("{}; see {} --help", what, wording.program));
}

/// "--hostfile" for "-hostfil" and for "--hostf"; empty if no option is near.
std::string nearest_option(const CLI::App& command, std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string nearest;
  double least = kNearOption;
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      const double here = name.starts_with(word) ? 0 : difference(word, name);
      if (here > least) continue;
      least = here;
      nearest = "--" + name;
    }
  }
  return nearest;
}

Error unknown_option(const CLI::App& command,
                     const launch::Wording& wording,
                     const std::string& name) {
  const std::string nearest = nearest_option(command, name);
  const std::string what = fmt::format("there is no option {}", printable(name));
  if (nearest.empty()) return refusal(wording, what);
  return Error(ErrorKind::kUsage, fmt::format("{}; did you mean {}?", what, nearest));
}

/// An option as it is written: "-n2", "--grace=5", "--verbose".
struct Written {
  const CLI::Option* option = nullptr;
  bool has_value = false;  // in the same argument
};

Written find_option(const CLI::App& command,
                    const launch::Wording& wording,
                    const std::string& argument) {
  const auto equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  if (const CLI::Option* const option = command.get_option_no_throw(name)) {
    return {option, equals != std::string::npos};
  }
  if (argument.size() > 2 && argument[1] != '-') {
    const CLI::Option* const option = command.get_option_no_throw(argument.substr(0, 2));
    if (option != nullptr && option->get_items_expected_min() > 0) return {option, true};
  }
  throw unknown_option(command, wording, name);
}

void check_values(const CLI::App& command,
                  const launch::Wording& wording,
                  const std::string& typed,
                  const CLI::Option& option,
                  const std::vector<std::string>& arguments,
                  std::size_t first) {
  const auto wanted = static_cast<std::size_t>(option.get_items_expected_min());
  for (std::size_t i = first; i < first + wanted; ++i) {
    const bool is_missing = i >= arguments.size();
    const bool is_option =
        !is_missing && arguments[i].starts_with("--") &&
        command.get_option_no_throw(as_declared(arguments[i].substr(0, arguments[i].find('=')))) !=
            nullptr;
    if (!is_missing && !is_option) continue;
    throw refusal(wording,
                  fmt::format("{} needs {} ({}){}",
                              typed,
                              wanted == 1 ? "a value" : fmt::format("{} values", wanted),
                              option.get_type_name(),
                              is_option ? ", but " + arguments[i] + " follows" : ""));
  }
}

}  // namespace

std::size_t spell_leading_options(const CLI::App& command,
                                  const launch::Wording& wording,
                                  std::vector<std::string>& arguments) {
  std::size_t i = 0;
  while (i < arguments.size() && arguments[i].starts_with('-') && arguments[i] != "--") {
    const std::string typed = arguments[i];
    arguments[i] = with_two_hyphens(command, as_declared(typed));
    const auto [option, has_value] = find_option(command, wording, arguments[i]);
    const int values = option->get_items_expected_min();
    ++i;
    if (values == 0 && has_value) {
      throw refusal(wording, fmt::format("{} takes no value", typed.substr(0, typed.find('='))));
    }
    if (has_value) continue;
    check_values(command, wording, typed, *option, arguments, i);
    i += static_cast<std::size_t>(values);
  }
  return i;
}

}  // namespace peal::cli
