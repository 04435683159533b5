// An environment variable of this process, for a part of a test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace peal {

/// Has the value while this lives, and what it was before that afterwards.
/// Threads: no other thread reads or writes the environment meanwhile.
class ScopedVariable final {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* former = std::getenv(name)) former_ = former;
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (former_) {
      ::setenv(name_, former_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> former_;
};

}  // namespace peal
