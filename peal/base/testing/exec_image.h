// The program that a test's child process executes.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace peal {

/// A program, its arguments and its environment, made before fork. A child of a process with
/// threads must not allocate between fork and exec: another thread may have held the allocator's
/// lock.
class ExecImage final {
 public:
  /// The environment is this process's, with `added` and without `removed`.
  ExecImage(std::string program,
            std::vector<std::string> arguments,
            const std::map<std::string, std::string>& added,
            const std::vector<std::string>& removed = {})
      : program_(std::move(program)),
        arguments_(std::move(arguments)),
        environment_(environment_with(added, removed)),
        argument_pointers_(pointers_to(arguments_)),
        environment_pointers_(pointers_to(environment_)) {}
  ExecImage(const ExecImage&) = delete;
  ExecImage& operator=(const ExecImage&) = delete;

  /// Call in the child. Executes the program, or exits with `failure` if that fails.
  /// Async-signal-safe.
  [[noreturn]] void become(int failure) const {
    ::execve(program_.c_str(), argument_pointers_.data(), environment_pointers_.data());
    ::_exit(failure);
  }

 private:
  static std::vector<std::string> environment_with(const std::map<std::string, std::string>& added,
                                                   const std::vector<std::string>& removed) {
    std::map<std::string, std::string> variables;
    for (char** entry = ::environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      const std::size_t equals = text.find('=');
      if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
    }
    for (const auto& [name, value] : added) variables[name] = value;
    for (const std::string& name : removed) variables.erase(name);
    std::vector<std::string> entries;
    for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
    return entries;
  }

  static std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  std::string program_;
  std::vector<std::string> arguments_;
  std::vector<std::string> environment_;
  std::vector<char*> argument_pointers_;
  std::vector<char*> environment_pointers_;
};

}  // namespace peal
