// A file for the results of a run. Until there are any, what the file has held stays there: a run
// may turn out to be a mistake, or be interrupted.
#pragma once

#include <string>
#include <string_view>

#include "peal/base/fd.h"

namespace peal::cli {

class OutputFile final {
 public:
  /// An empty path stands for no file; all is done then by doing nothing. Makes the file if there
  /// is none. Throws Error(resource) if it cannot be written.
  explicit OutputFile(std::string path);
  /// Removes what it has made, if nothing was written.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// In place of what the file has held, if this is the first call. What cannot be written whole is
  /// not there at all. Throws Error(resource).
  void append(std::string_view text);

 private:
  enum class State : unsigned char { kFound, kMade, kWritten };

  std::string path_;
  State state_ = State::kFound;
  Fd fd_;
};

}  // namespace peal::cli
