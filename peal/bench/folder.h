// The private folder of one run of a benchmark: its socket, and the workers that it writes out.
#pragma once

#include <filesystem>
#include <string>

namespace peal::bench {

/// Made for this user alone, removed at the end with all that is in it. Those that runs have left
/// which were killed are removed by the next one: their names carry the process.
class Folder final {
 public:
  /// Errors: resource.
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file into it and returns where it is. Errors: resource.
  std::string write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

/// The process whose number stands in `name` after `prefix`, as in "peal-bench.123.Xy", is gone, or
/// has ended without anybody having asked how.
bool is_left_by_the_dead(const std::string& name, const std::string& prefix);

}  // namespace peal::bench
