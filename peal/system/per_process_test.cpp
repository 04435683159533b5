#include "peal/system/per_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "peal/base/guarded.h"

namespace peal {
namespace {

/// The wait status of the child; the child is killed if it does not end.
int status_of_child(int (*child)()) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(20);
    ::_exit(child());
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

constinit PerProcess<Guarded<int>> number;

TEST(PerProcessTest, TheValueIsTheSameWithinAProcess) {
  Guarded<int>* const first = &number.get();
  EXPECT_EQ(&number.get(), first);
}

TEST(PerProcessTest, AChildThatIsForkedWhileTheValueIsLockedHasANewValue) {
  const int status = number.get().with([](int& of_parent) {
    of_parent = 7;
    return status_of_child([] { return number.get().with([](int& own) { return own++; }); });
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(number.get().with([](const int& own) { return own; }), 7);
}

TEST(PerProcessTest, EachForkStartsANewGeneration) {
  static const int before = generation();
  EXPECT_EQ(status_of_child([] {
              if (generation() != before + 1) return 1;
              return status_of_child([] { return generation() == before + 2 ? 0 : 1; });
            }),
            0);
  EXPECT_EQ(generation(), before);
}

}  // namespace
}  // namespace peal
