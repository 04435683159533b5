// A folder in place of the root of a file system, for code that reads /proc and /sys.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "peal/base/testing/temporary_folder.h"

namespace peal {

class Root final {
 public:
  const std::filesystem::path& path() const { return folder_.path(); }
  void write(const std::filesystem::path& file, const std::string& text) const {
    std::filesystem::create_directories((path() / file).parent_path());
    std::ofstream(path() / file) << text;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace peal
