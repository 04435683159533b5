// Memory that the processes of a benchmark share, with a path by which they find it and no file
// that could be left behind. Made by the coordinator, mapped by the workers.
#pragma once

#include <cstddef>
#include <string>

#include "peal/base/fd.h"
#include "peal/base/units.h"

namespace peal::bench {

/// Anonymous memory, zeroed. While it lives, processes of the same user can open `path()`.
class SharedFile final {
 public:
  /// Errors: resource.
  SharedFile(const char* name, Bytes size);
  std::string path() const;

 private:
  Fd fd_;
};

/// A shared file mapped into this process.
class Mapping final {
 public:
  /// Makes the file larger where it is smaller than `size`. Errors: resource.
  Mapping(const std::string& path, Bytes size);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  Bytes size_;
};

}  // namespace peal::bench
