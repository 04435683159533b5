// Copies files from the launcher to a host, before the agent looks for the commands of its ranks,
// which may be among the files. Used by agent_host.cpp (sends) and agent.cpp (writes).
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/launch/agents/agent_protocol.h"
#include "peal/system/fd.h"

namespace peal::launch::agents {

/// A file on the launcher's machine, and its path on the host, relative to Begin::directory.
struct FileToCopy {
  std::string from;
  std::string to;
  friend bool operator==(const FileToCopy&, const FileToCopy&) = default;
};

/// The regular files in the folder `from`, or the file itself; links to files count as files.
/// Errors: usage (`from` does not exist or cannot be read).
std::vector<FileToCopy> files_below(const std::string& from, const std::string& to);

/// Reads the files part by part. One for each host.
class FilePartReader final {
 public:
  explicit FilePartReader(std::vector<FileToCopy> files) : files_(std::move(files)) {}
  /// Nothing after the last part. Errors: resource (a file has disappeared or cannot be read).
  std::optional<FilePart> next();

 private:
  std::vector<FileToCopy> files_;
  std::size_t index_ = 0;
  Fd file_;
};

/// Writes the parts. A file appears as a whole, so that a host may copy files onto themselves, and
/// several hosts may share a folder. Makes missing folders. Removes an unfinished file.
class FilePartWriter final {
 public:
  explicit FilePartWriter(std::filesystem::path directory) : directory_(std::move(directory)) {}
  ~FilePartWriter();
  FilePartWriter(const FilePartWriter&) = delete;
  FilePartWriter& operator=(const FilePartWriter&) = delete;

  /// Errors: resource, which names the file.
  void take(const FilePart& part);

 private:
  const std::filesystem::path directory_;
  std::string unfinished_;  // the path of the file that is written
  Fd file_;
};

}  // namespace peal::launch::agents
