// An environment variable of this process, for a part of a test.
#pragma once

#include <cstdlib>
#include <string>

namespace peal::testing {

/// Set while this lives, and not set afterwards.
class Set final {
 public:
  Set(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Set() { ::unsetenv(name_); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  const char* name_;
};

}  // namespace peal::testing
