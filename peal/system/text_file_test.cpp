#include "peal/system/text_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/error_of.h"

namespace peal {
namespace {

std::string path_of(const std::string& name) {
  return testing::TempDir() + "peal_text_file_" + std::to_string(::getpid()) + "_" + name;
}

TEST(TextFileTest, TheWholeFileIsRead) {
  const std::string path = path_of("text");
  const std::string text = std::string(200'000, 'a') + "\nlast, without an end";
  std::ofstream(path) << text;
  EXPECT_EQ(read_text_file(path), text);
  EXPECT_EQ(read_text_file(path, Bytes(200'021)), text);
  std::ofstream(path, std::ios::trunc);
  EXPECT_EQ(read_text_file(path), "");
  ::unlink(path.c_str());
}

TEST(TextFileTest, AFileThatCannotBeReadIsAnErrorWithAReason) {
  struct Wrong {
    std::string path;
    std::string why;
  };
  for (const auto& [path, why] :
       {Wrong{"/no/such/file", "cannot be read: No such file or directory"},
        Wrong{"/", "cannot be read: Is a directory"},
        Wrong{"", "cannot be read: No such file or directory"},
        Wrong{"/dev/zero", "cannot be read: it holds more than 67108864 bytes"}}) {
    const Error error = error_of([&path = path] { read_text_file(path); });
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << path;
    EXPECT_EQ(error.message(), why);
  }
}

TEST(TextFileDeathTest, AFileWithoutPermissionIsAnErrorWithAReason) {
  const std::string path = path_of("locked");
  std::ofstream(path) << "text";
  ::chmod(path.c_str(), 0);
  const auto read_as_anybody = [&] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::seteuid(kNobody) != 0) ::_exit(1);  // root may read everything
    std::fputs(error_of([&] { read_text_file(path); }).what(), stderr);
    ::_exit(0);
  };
  EXPECT_EXIT(read_as_anybody(), testing::ExitedWithCode(0), "Permission denied");
  ::unlink(path.c_str());
}

TEST(TextFileTest, APipeWithoutAWriterIsEmpty) {
  const std::string path = path_of("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(read_text_file(path), "");
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace peal
