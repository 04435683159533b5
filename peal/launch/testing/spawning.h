// For the tests of spawn: real processes, forked from the test's own process.
#pragma once

#include <unistd.h>

#include <functional>

#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/scoped_variable.h"
#include "peal/launch/spawn.h"
#include "peal/observe/testing/flight_files.h"
#include "peal/system/pipe.h"

namespace peal {

/// Failed spawns leave their records in TMPDIR.
class SpawnTest : public ::testing::Test {
 private:
  const observe::TestFolder folder_;
  const ScopedVariable temporary_{"TMPDIR", folder_.path()};
};

inline SpawnError spawn_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const SpawnError& error) {
    return error;
  }
  return SpawnError(Error(ErrorKind::kBug, "nothing was thrown"), {});
}

/// A pipe whose end is reached when every process that has inherited the writer has ended.
class Lifeline {
 public:
  void write(char byte) { ASSERT_EQ(::write(pipe_.writer.get(), &byte, 1), 1); }
  void read(int count) {
    for (char byte = 0; count > 0; --count) ASSERT_EQ(::read(pipe_.reader.get(), &byte, 1), 1);
  }
  /// Returns whether all have ended; false if a process writes instead.
  bool wait_for_the_end() {
    pipe_.writer.reset();
    char byte = 0;
    return ::read(pipe_.reader.get(), &byte, 1) == 0;
  }

 private:
  Pipe pipe_ = make_pipe();
};

}  // namespace peal
