#include "peal/bench/worker_file.h"

#include <filesystem>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::bench {

std::string worker_file(std::string_view name) {
  const std::filesystem::path bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::filesystem::path file = bin.parent_path() / "share/peal/bench" / name;
  if (!std::filesystem::exists(file)) {
    throw Error(ErrorKind::kResource,
                fmt::format("{} is missing: install peal again", file.string()));
  }
  return file;
}

}  // namespace peal::bench
