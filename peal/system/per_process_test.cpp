#include "peal/system/per_process.h"

#include <gtest/gtest.h>

#include "peal/base/guarded.h"
#include "peal/base/testing/in_child.h"

namespace peal {
namespace {

constinit PerProcess<Guarded<int>> number;

TEST(PerProcessTest, TheValueIsTheSameWithinAProcess) {
  Guarded<int>* const first = &number.get();
  EXPECT_EQ(&number.get(), first);
}

TEST(PerProcessTest, AChildThatIsForkedWhileTheValueIsLockedHasANewValue) {
  const int status = number.get().with([](int& of_parent) {
    of_parent = 7;
    return in_child([] { return number.get().with([](int& own) { return own++; }); });
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(number.get().with([](const int& own) { return own; }), 7);
}

TEST(PerProcessTest, EachForkStartsANewGeneration) {
  static const int before = generation();
  EXPECT_EQ(in_child([] {
              if (generation() != before + 1) return 1;
              return in_child([] { return generation() == before + 2 ? 0 : 1; });
            }),
            0);
  EXPECT_EQ(generation(), before);
}

}  // namespace
}  // namespace peal
