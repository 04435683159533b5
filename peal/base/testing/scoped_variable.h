// An environment variable of this process, for a part of a test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace peal {

/// Sets a variable, and restores its former value at the end of the scope.
/// Threads: no other thread may use the environment during that time.
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
