#include "peal/launch/command.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace peal::launch {
namespace {

using testing::HasSubstr;

/// A temporary folder with a program, a plain file and a folder in it.
class CommandTest : public testing::Test {
 protected:
  CommandTest() {
    std::string name = (std::filesystem::temp_directory_path() / "peal-command-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    make("program", 0755);
    make("plain", 0644);
    std::filesystem::create_directory(folder_ + "/folder");
  }
  ~CommandTest() override { std::filesystem::remove_all(folder_); }

  void make(const std::string& name, mode_t mode) const {
    std::ofstream(folder_ + "/" + name) << "#!/bin/sh\n";
    ::chmod((folder_ + "/" + name).c_str(), mode);
  }

  std::string folder_;
};

TEST_F(CommandTest, ANameIsSearchedInEachDirectoryOfThePath) {
  EXPECT_EQ(find_command("program", "/nowhere:" + folder_ + ":/bin").path, folder_ + "/program");
}

TEST_F(CommandTest, ANameWithASlashIsAPath) {
  EXPECT_EQ(find_command(folder_ + "/program", "").path, folder_ + "/program");
}

TEST_F(CommandTest, AMissingProgramIs127) {
  for (const std::string& name : {std::string("nosuch"), folder_ + "/nosuch"}) {
    const CommandLookup lookup = find_command(name, folder_);
    EXPECT_EQ(lookup.path, "");
    EXPECT_EQ(lookup.exit_code, 127);
    EXPECT_THAT(lookup.problem, HasSubstr(name));
  }
}

TEST_F(CommandTest, AFileThatIsNotExecutableIs126AndTheErrorSaysWhatToDo) {
  for (const std::string& name : {std::string("plain"), folder_ + "/plain"}) {
    const CommandLookup lookup = find_command(name, folder_);
    EXPECT_EQ(lookup.path, "");
    EXPECT_EQ(lookup.exit_code, 126);
    EXPECT_THAT(lookup.problem, HasSubstr("chmod +x"));
  }
  const CommandLookup folder = find_command(folder_ + "/folder", "");
  EXPECT_EQ(folder.exit_code, 126);
  EXPECT_THAT(folder.problem, HasSubstr("directory"));
}

TEST_F(CommandTest, TheErrorNamesAProgramInThisFolderThatIsNotInThePath) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  const CommandLookup program = find_command("program", "/nowhere");
  const CommandLookup plain = find_command("plain", "/nowhere");
  std::filesystem::current_path(before);
  EXPECT_EQ(program.exit_code, 127);
  EXPECT_THAT(program.problem, HasSubstr("the one in this directory is ./program"));
  EXPECT_EQ(plain.exit_code, 127);
  EXPECT_THAT(plain.problem, HasSubstr("chmod +x plain and give ./plain"));
}

TEST_F(CommandTest, ACommandLineInQuotesIsExplained) {
  for (const std::string& line : {std::string("program --fast"), folder_ + "/program --fast"}) {
    const CommandLookup lookup = find_command(line, folder_);
    EXPECT_EQ(lookup.exit_code, 127);
    EXPECT_THAT(lookup.problem, HasSubstr("leave out the quotes, as in: " + line));
  }
  make("a program", 0755);
  EXPECT_EQ(find_command("a program", folder_).path, folder_ + "/a program");
}

TEST_F(CommandTest, AProgramLaterInThePathWinsOverAPlainFile) {
  std::filesystem::create_directory(folder_ + "/folder/bin");
  make("folder/bin/plain", 0755);
  EXPECT_EQ(find_command("plain", folder_ + ":" + folder_ + "/folder/bin").path,
            folder_ + "/folder/bin/plain");
}

TEST_F(CommandTest, APythonScriptThatIsNotExecutableRunsUnderPython) {
  make("script.py", 0644);
  make("program.py", 0755);
  const std::string script = folder_ + "/script.py";
  EXPECT_EQ(with_interpreter({script, "1"}), (std::vector<std::string>{"python3", script, "1"}));
  for (const std::string& other : {folder_ + "/program.py", folder_ + "/plain", script + "x"}) {
    EXPECT_EQ(with_interpreter({other}), std::vector<std::string>{other});
  }
}

}  // namespace
}  // namespace peal::launch
