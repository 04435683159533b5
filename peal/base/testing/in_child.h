// Code of a test that must run in a child process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace peal {

/// Runs `body` in a forked child process, and returns its result, an exit status from 0 to 255.
/// Returns -1 if `body` throws, or if the system ends the child after two minutes.
template <class Body>
[[nodiscard]] int in_child(const Body& body) {
  const pid_t child = ::fork();
  if (child < 0) return -1;
  if (child == 0) {
    ::alarm(120);
    try {
      ::_exit(static_cast<int>(body()));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    } catch (...) {
      std::fprintf(stderr, "child: an exception of an unknown type\n");
    }
    ::abort();
  }
  int status = 0;
  const bool has_exited = ::waitpid(child, &status, 0) == child && WIFEXITED(status);
  return has_exited ? WEXITSTATUS(status) : -1;
}

/// Whether `body` returns true in a forked child process.
template <class Body>
[[nodiscard]] bool holds_in_child(const Body& body) {
  return in_child([&] { return body() ? 0 : 1; }) == 0;
}

}  // namespace peal
