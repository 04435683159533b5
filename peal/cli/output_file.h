// A file for the results of a run. The file keeps its old content until there are results, since a
// run may be a mistake, or be interrupted.
#pragma once

#include <string>
#include <string_view>

#include "peal/system/fd.h"

namespace peal::cli {

class OutputFile final {
 public:
  /// Creates the file if it is missing. An empty path means no file; then no function has an
  /// effect.
  /// Errors: resource, if the file cannot be written.
  explicit OutputFile(std::string path);
  /// Removes a file that this object has created, if nothing was written.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Appends the text; the first call replaces the old content. A text that cannot be written whole
  /// is not written at all. Errors: resource.
  void append(std::string_view text);

 private:
  enum class State : unsigned char { kFound, kMade, kWritten };

  std::string path_;
  State state_ = State::kFound;
  Fd fd_;
};

}  // namespace peal::cli
