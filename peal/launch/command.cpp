#include "peal/launch/command.h"

#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

namespace peal::launch {
namespace {

enum class Found : unsigned char { kNothing, kDirectory, kNotExecutable, kProgram };

Found look_at(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) return Found::kNothing;
  if (std::filesystem::is_directory(status)) return Found::kDirectory;
  return ::access(path.c_str(), X_OK) == 0 ? Found::kProgram : Found::kNotExecutable;
}

bool is_a_line(const std::string& name) { return name.find(' ') != std::string::npos; }

std::string how_to_run_a_line(const std::string& line) {
  return fmt::format(
      "no program has that name; leave out the quotes, as in: {0}; or have a shell "
      "read it: sh -c '{0}'",
      line);
}

CommandLookup outcome(const std::string& path, Found found) {
  switch (found) {
    case Found::kProgram:
      return {.path = path};
    case Found::kDirectory:
      return {.exit_code = 126,
              .problem = fmt::format("cannot run \"{}\": it is a directory", path)};
    case Found::kNotExecutable:
      return {.exit_code = 126,
              .problem = fmt::format("cannot run \"{0}\": it is not executable; chmod +x {0}, or "
                                     "name its interpreter, as in: python3 {0}",
                                     path)};
    case Found::kNothing:
      break;
  }
  return {.exit_code = 127,
          .problem = fmt::format("cannot run \"{}\": {}",
                                 path,
                                 is_a_line(path) ? how_to_run_a_line(path) : "no such file")};
}

/// Explains why `name`, which has no slash, was not found.
std::string why_not_found(const std::string& name) {
  if (is_a_line(name)) return how_to_run_a_line(name);
  switch (look_at("./" + name)) {
    case Found::kProgram:
      return fmt::format("it is not in PATH; the one in this directory is ./{}", name);
    case Found::kNotExecutable:
      return fmt::format(
          "the one in this directory is not executable; chmod +x {0} and give "
          "./{0}, or name its interpreter, as in: python3 {0}",
          name);
    case Found::kNothing:
    case Found::kDirectory:
      break;
  }
  return "command not found; check its spelling and PATH, or give its path";
}

CommandLookup not_found(const std::string& name) {
  return {.exit_code = 127,
          .problem = fmt::format("cannot run \"{}\": {}", name, why_not_found(name))};
}

}  // namespace

CommandLookup find_command(const std::string& name, std::string_view search_path) {
  if (name.find('/') != std::string::npos) return outcome(name, look_at(name));
  CommandLookup best{.exit_code = 127};
  while (true) {
    const auto end = search_path.find(':');
    const std::string_view directory = search_path.substr(0, end);
    const std::string path = fmt::format("{}/{}", directory.empty() ? "." : directory, name);
    const Found found = look_at(path);
    if (found == Found::kProgram) return outcome(path, found);
    if (found == Found::kNotExecutable && best.problem.empty()) best = outcome(path, found);
    if (end == std::string_view::npos) break;
    search_path.remove_prefix(end + 1);
  }
  return best.problem.empty() ? not_found(name) : best;
}

CommandLookup find_command(const std::string& name, const Variables& environment) {
  const auto path = environment.find("PATH");
  return find_command(name,
                      path == environment.end() ? std::string_view("/usr/bin:/bin") : path->second);
}

std::vector<std::string> with_interpreter(std::vector<std::string> command) {
  if (!command.empty() && command.front().ends_with(".py") &&
      look_at(command.front()) == Found::kNotExecutable) {
    command.insert(command.begin(), "python3");
  }
  return command;
}

}  // namespace peal::launch
