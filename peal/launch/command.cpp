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
  return {.exit_code = 127, .problem = fmt::format("cannot run \"{}\": no such file", path)};
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
  if (best.problem.empty()) {
    const bool here = look_at("./" + name) == Found::kProgram;
    best.problem =
        fmt::format("cannot run \"{0}\": {1}",
                    name,
                    here ? fmt::format("it is not in PATH; the one in this directory is ./{}", name)
                         : "command not found; check its spelling and PATH, or give its path");
  }
  return best;
}

}  // namespace peal::launch
