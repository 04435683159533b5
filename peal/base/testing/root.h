// A folder in place of the root of a file system, for code that reads /proc and /sys.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace peal {

class Root final {
 public:
  Root() {
    std::string name = (std::filesystem::temp_directory_path() / "peal-root-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Root() { std::filesystem::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::filesystem::path& file, const std::string& text) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace peal
