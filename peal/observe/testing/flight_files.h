// Files of flights for tests: a folder of its own for each test, and the bytes of a small record.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "peal/base/text_file.h"
#include "peal/observe/flight_folder.h"
#include "peal/observe/flight_recorder.h"

namespace peal::observe {

/// Removed at the end with all that is in it.
class TestFolder final {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "peal-flight.XXXXXX").string();
    path_ = ::mkdtemp(pattern.data()) != nullptr ? pattern : "";
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A rank of a job of two, whose record is in the folder and has room for little.
inline RecorderOptions small_record(const std::string& folder, Rank rank = 0) {
  return {.rank = rank,
          .world_size = 2,
          .job = "test",
          .algorithms = {"inline", "ring"},
          .path = flight_file_in(folder, rank),
          .groups = 2,
          .operations = 8};
}

/// "sum of f32 in the world"
inline OperationKind sum_in(std::uint8_t group) {
  return {.group = group,
          .operation = Operation::kAllReduce,
          .dtype = DType::kF32,
          .reduce = ReduceOp::Kind::kSum,
          .algorithm = 1};
}

}  // namespace peal::observe
