#include "peal/launch/dump_place.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/system/private_folder.h"

namespace peal::launch {
namespace {

using testing::HasSubstr;

namespace fs = std::filesystem;

fs::path folder_in(const fs::path& parent) { return parent / fmt::format("peal-{}", ::geteuid()); }

std::string refusal(const fs::path& parent) {
  try {
    place_for_dump("", "f00d", parent);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(DumpPlaceTest, ALogDirectoryHoldsTheDump) {
  EXPECT_EQ(place_for_dump("logs", "f00d", "/no/such/folder"), "logs/peal.dump");
}

TEST(DumpPlaceTest, NodesThatShareAFolderHaveDifferentDumps) {
  const rendezvous::NodePlace node{.nodes = 2, .node = 1};
  EXPECT_EQ(place_for_dump("logs", "f00d", "/no/such/folder", node), "logs/peal.node-1.dump");
  const PrivateFolder parent("peal-test.");
  const std::string first = place_for_dump("", "f00d", parent.path(), node);
  EXPECT_THAT(first, HasSubstr("/node-1."));
  EXPECT_NE(place_for_dump("", "f00d", parent.path(), node), first);
}

TEST(DumpPlaceTest, WithoutLogsTheDumpIsInAPrivateFolder) {
  const PrivateFolder parent("peal-test.");
  EXPECT_EQ(place_for_dump("", "f00d", parent.path()), folder_in(parent.path()) / "f00d.dump");
  EXPECT_EQ(fs::status(folder_in(parent.path())).permissions(), fs::perms::owner_all);
  EXPECT_EQ(refusal(parent.path()), "");  // the folder exists now
}

TEST(DumpPlaceTest, AFolderThatOthersCanReachAndALinkAreRejected) {
  const PrivateFolder parent("peal-test.");
  const fs::path folder = folder_in(parent.path());
  fs::create_directory(folder);
  ::chmod(folder.c_str(), 0777);
  EXPECT_THAT(refusal(parent.path()), HasSubstr("is not a folder that only this user can reach"));
  fs::remove(folder);
  fs::create_directory(parent.path() / "other");
  fs::create_directory_symlink(parent.path() / "other", folder);
  EXPECT_THAT(refusal(parent.path()), HasSubstr("is not a folder that only this user can reach"));
  EXPECT_THAT(refusal("/no/such/folder"), HasSubstr("cannot make"));
}

TEST(DumpPlaceTest, TheOldestDumpsAreRemovedForANewOne) {
  const PrivateFolder parent("peal-test.");
  const fs::file_time_type start = fs::file_time_type::clock::now();
  for (std::size_t i = 0; i < kDumpsKept + 3; ++i) {
    const fs::path dump = place_for_dump("", fmt::format("{}", i), parent.path());
    std::ofstream(dump) << "dump";
    fs::last_write_time(dump, start + std::chrono::seconds(i));
  }
  const fs::path folder = folder_in(parent.path());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()),
            static_cast<std::ptrdiff_t>(kDumpsKept));
  EXPECT_FALSE(fs::exists(folder / "2.dump"));
  EXPECT_TRUE(fs::exists(folder / "3.dump"));
}

TEST(DumpPlaceTest, ADumpOfAnEarlierLaunchIsRemovedFromTheLogs) {
  const PrivateFolder logs("peal-test.");
  logs.write("peal.dump", "old");
  logs.write("rank-0.out", "new");
  remove_former_dump(logs.path());
  EXPECT_FALSE(fs::exists(logs.path() / "peal.dump"));
  EXPECT_TRUE(fs::exists(logs.path() / "rank-0.out"));
}

}  // namespace
}  // namespace peal::launch
