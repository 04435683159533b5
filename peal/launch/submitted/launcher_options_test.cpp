#include "peal/launch/submitted/launcher_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch::submitted {
namespace {

TEST(LauncherOptionsTest, TextsAreReadBack) {
  const LauncherOptions options{.hosts = {{"a", 2}, {"fe80::1", 1}}, .peal = "/opt/my peal/peal"};
  EXPECT_THAT(encode(options),
              testing::ElementsAre("--hosts=a:2,[fe80::1]:1", "--peal-path=/opt/my peal/peal"));
  EXPECT_EQ(decode_launcher_options(encode(options)), options);
  EXPECT_EQ(decode_launcher_options(encode({})), LauncherOptions());
}

TEST(LauncherOptionsTest, TextsOfANewerPealAreIgnored) {
  const std::vector<std::string> texts = {"--later=1", "--hosts=a:1"};
  EXPECT_EQ(decode_launcher_options(texts), (LauncherOptions{.hosts = {{"a", 1}}}));
}

}  // namespace
}  // namespace peal::launch::submitted
