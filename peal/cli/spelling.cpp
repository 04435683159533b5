#include "peal/cli/spelling.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::cli {
namespace {

/// The part before "=", if there is one, with - instead of _.
std::string name_in(const std::string& option) {
  std::string name = option.substr(0, option.find('='));
  if (name.starts_with("--")) std::ranges::replace(name, '_', '-');
  return name;
}

bool names_rank_count(const std::string& name) {
  return name == "-n" || name == "-np" || name == "--np" || name == "--num-proc" ||
         name == "--nproc-per-node";
}

}  // namespace

std::string as_declared(const std::string& option) {
  const std::string name = name_in(option);
  const std::string rest = option.substr(name.size());
  if (!names_rank_count(name)) return name + rest;
  return rest.empty() ? "-n" : "-n" + rest.substr(1);
}

void spell_as_declared(std::vector<std::string>& arguments) {
  for (std::string& argument : arguments) {
    if (argument.starts_with('-')) argument = as_declared(argument);
  }
}

void refuse_empty_values(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (!argument.starts_with("--") || argument.find('=') != argument.size() - 1) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{} has no value: write the value after the =", argument));
  }
}

bool is_rank_count(const std::string& option) {
  if (names_rank_count(name_in(option))) return true;
  return option.size() > 2 && option.starts_with("-n") &&
         option.find_first_not_of("0123456789", 2) == std::string::npos;
}

}  // namespace peal::cli
