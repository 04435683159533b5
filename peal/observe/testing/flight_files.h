// Flight files for tests: a separate folder for each test, and a small record.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "peal/observe/flight_folder.h"
#include "peal/observe/flight_recorder.h"
#include "peal/system/text_file.h"

namespace peal::observe {

/// A temporary folder. The destructor removes it with its content.
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

/// Options for a rank of a job of two ranks, with a small record in the folder.
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
