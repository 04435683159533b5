// Tests that only the file store needs: remains of crashed runs, removal of the file, and files
// that are not stores. store_conformance_test.cpp tests the operations of Store.
#include "peal/store/file_store.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"
#include "peal/base/testing/soon.h"
#include "peal/store/file_lock.h"
#include "peal/system/fd.h"

namespace peal::store {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class FileStoreTest : public ::testing::Test {
 protected:
  FileStoreTest() { std::filesystem::create_directory(folder_); }
  ~FileStoreTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Store> open(FileStoreOptions options = {}, Deadline deadline = soon()) const {
    return open_file_store(path_, options, deadline);
  }

  bool exists() const { return std::filesystem::exists(path_); }

  void write(const std::string& text, std::ios::openmode mode = std::ios::out) const {
    std::ofstream(path_, mode | std::ios::binary) << text;
  }

  std::string contents() const {
    std::ostringstream text;
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return text.str();
  }

  std::string folder_ = ::testing::TempDir() + "peal-file-store-" + std::to_string(::getpid());
  std::string path_ = folder_ + "/store";
};

/// A process that runs `body` and then waits. The destructor kills and reaps it.
class Child {
 public:
  explicit Child(const std::function<void()>& body) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error("pipe2", errno);
    pid_ = ::fork();
    if (pid_ == 0) {
      body();
      if (::write(ends[1], "x", 1) == 1) ::pause();
      ::_exit(1);
    }
    const Fd reader(ends[0]);
    ::close(ends[1]);
    char ready = 0;
    if (::read(reader.get(), &ready, 1) != 1) throw Error(ErrorKind::kBug, "the child failed");
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

TEST_F(FileStoreTest, TheLastHandleRemovesTheFile) {
  auto first = open();
  auto second = open();
  first.reset();
  EXPECT_TRUE(exists());
  second->set("key", "value");
  second.reset();
  EXPECT_FALSE(exists());
}

TEST_F(FileStoreTest, AKilledRunLeavesNoValues) {
  std::unique_ptr<Store> keep;  // in the children, where no destructor runs
  const auto crash = [&] {
    keep = open();
    keep->add("claims", 1);
  };
  Child a(crash);
  Child b(crash);
  a.kill();
  EXPECT_EQ(open()->try_get("claims"), "2");  // child b still lives
  b.kill();
  EXPECT_TRUE(exists());
  const auto store = open();
  EXPECT_EQ(store->try_get("claims"), std::nullopt);
  EXPECT_EQ(store->add("claims", 1), 1);
}

TEST_F(FileStoreTest, RanksThatStartAtOnceOnAnOldFileShareOneStore) {
  constexpr int kRanks = 6;
  for (int round = 0; round < 10; ++round) {
    std::unique_ptr<Store> keep;
    Child([&] {
      keep = open();
      keep->add("n", 100);
    }).kill();
    std::vector<std::future<std::string>> ranks;
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.push_back(std::async(std::launch::async, [&] {
        const auto store = open({.members = kRanks});
        const std::int64_t n = store->add("n", 1);
        if (n == kRanks) store->set("all", std::to_string(n));
        std::string all = store->get("all", soon());
        if (store->add("seen", 1) == kRanks) store->set("done", "");
        store->get("done", soon());  // no rank leaves before all have read "all"
        return all;
      }));
    }
    for (auto& rank : ranks) EXPECT_EQ(rank.get(), std::to_string(kRanks));
    EXPECT_FALSE(exists());
  }
}

TEST_F(FileStoreTest, HandlesThatOpenAndCloseNeverUseARemovedFile) {
  std::vector<std::future<int>> threads;
  for (int t = 0; t < 4; ++t) {
    threads.push_back(std::async(std::launch::async, [&] {
      int good = 0;
      for (int i = 0; i < 25; ++i) {
        const auto a = open();
        const auto b = open();
        const std::string key = "key" + std::to_string(::gettid());
        a->set(key, std::to_string(i));
        if (b->get(key, soon()) == std::to_string(i)) ++good;
      }
      return good;
    }));
  }
  for (auto& thread : threads) EXPECT_EQ(thread.get(), 25);
  EXPECT_FALSE(exists());
}

TEST_F(FileStoreTest, TheLastOfHandlesThatCloseAtOnceRemovesTheFile) {
  constexpr int kRanks = 4;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::unique_ptr<Store>> stores;
    for (int rank = 0; rank < kRanks; ++rank) stores.push_back(open());
    std::barrier all_ready(kRanks);
    std::vector<std::future<void>> leaving;
    for (auto& store : stores) {
      leaving.push_back(std::async(std::launch::async, [&] {
        all_ready.arrive_and_wait();
        store.reset();
      }));
    }
    for (auto& one : leaving) one.get();
    ASSERT_FALSE(exists()) << "in round " << round;
  }
}

TEST_F(FileStoreTest, ALateRankJoins) {
  const auto early = open({.members = 2});
  early->set("key", "value");
  const auto late = open({.members = 2});
  EXPECT_EQ(late->get("key", soon()), "value");
}

TEST_F(FileStoreTest, AHandleWaitsForTheEndOfACompleteJob) {
  auto first = open({.members = 2});
  auto second = open({.members = 2});
  first->set("key", "of the first job");
  const Error error = error_of([&] { open({.members = 2}, Deadline::after(milliseconds(20))); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.what(), HasSubstr(path_));
  auto next = std::async(std::launch::async, [&] { return open({.members = 2}); });
  first.reset();
  EXPECT_EQ(next.wait_for(milliseconds(30)), std::future_status::timeout);
  second.reset();
  EXPECT_EQ(next.get()->try_get("key"), std::nullopt);
}

TEST_F(FileStoreTest, HalfARecordOfACrashedWriterIsIgnored) {
  const auto a = open();
  const auto b = open();
  a->set("key", "value");
  const std::string whole = contents();
  a->set("next", "half");
  const std::string record = contents().substr(whole.size());
  a->erase("next");
  for (std::size_t size = 1; size < record.size(); ++size) {
    write(record.substr(0, size), std::ios::app);
    EXPECT_EQ(b->try_get("next"), std::nullopt) << size;
    EXPECT_EQ(a->add("n", 1), static_cast<std::int64_t>(size));
  }
  EXPECT_EQ(open()->get("key", soon()), "value");
}

TEST_F(FileStoreTest, AHalfWrittenBeginningIsIgnored) {
  open()->set("key", "value");
  for (const char* text : {"", "p", "peal store 2"}) {
    write(text);
    EXPECT_EQ(open()->add("n", 1), 1) << text;
  }
}

TEST_F(FileStoreTest, TheLastWillOfAKilledProcessIsCarriedOut) {
  Child child([&] {
    static std::unique_ptr<Store> held = open();
    held->set_will("will", "the child has gone");
  });
  const auto store = open();
  EXPECT_EQ(store->try_get("will"), std::nullopt);
  child.kill();
  EXPECT_EQ(store->get("will", soon()), "the child has gone");
}

TEST_F(FileStoreTest, AFileThatIsNotAStoreIsNotChanged) {
  for (const char* text : {"precious data", "peal store 1\n"}) {
    write(text);
    const Error error = error_of([&] { open(); });
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(), HasSubstr(path_));
    EXPECT_EQ(contents(), text);
  }
}

TEST_F(FileStoreTest, TheErrorNamesAPathThatCannotBeOpened) {
  const Error error = error_of([&] { open_file_store(folder_ + "/no/such", {}, soon()); });
  EXPECT_EQ(error.kind(), ErrorKind::kResource);
  EXPECT_THAT(error.what(), HasSubstr(folder_ + "/no/such"));
  EXPECT_EQ(error_of([&] { open_file_store(folder_, {}, soon()); }).kind(), ErrorKind::kResource);
}

TEST_F(FileStoreTest, OpenMakesAFileThatOthersCanReadPrivate) {
  std::ofstream(path_).flush();
  std::filesystem::permissions(path_, std::filesystem::perms::all);
  const auto store = open();
  EXPECT_EQ(std::filesystem::status(path_).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(FileStoreTest, AFileThatIsNotAStoreKeepsItsContentsAndItsMode) {
  std::ofstream(path_) << "a file that others read";
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  EXPECT_EQ(error_of([&] { open(); }).kind(), ErrorKind::kUsage);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644U);
  EXPECT_EQ(status.st_size, std::ssize(std::string("a file that others read")));
}

TEST_F(FileStoreTest, OpenRejectsALinkAndAFileOfAnotherUser) {
  std::filesystem::create_symlink(path_ + ".elsewhere", path_);
  EXPECT_EQ(error_of([&] { open(); }).kind(), ErrorKind::kResource);
  std::filesystem::remove(path_);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  std::ofstream(path_).flush();
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  const Error error = error_of([&] { open(); });
  EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("belongs to another user"));
}

TEST_F(FileStoreTest, AHandleThatStopsWithTheLockCausesATimeoutThatNamesTheFile) {
  const auto store = open({.timeout = milliseconds(30)});
  store->set("key", "value");
  const Fd other(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(try_lock(other.get(), LockByte::kChange, LockKind::kAlone));
  const Error error = error_of([&] { store->set("key", "another"); });
  EXPECT_EQ(error.kind(), ErrorKind::kTimeout);
  EXPECT_THAT(error.what(), HasSubstr(path_));
  EXPECT_FALSE(store->answers(Deadline::after(milliseconds(30))));
  unlock(other.get(), LockByte::kChange);
  EXPECT_EQ(store->try_get("key"), "value");
}

TEST_F(FileStoreTest, ADamagedFileIsAnErrorAndNotACrash) {
  const auto store = open();
  store->set("key", "value");
  write(std::string("\xff\xff\xff\xff", 4), std::ios::app);
  EXPECT_EQ(error_of([&] { store->try_get("key"); }).kind(), ErrorKind::kUsage);
}

TEST_F(FileStoreTest, OpenRejectsAFolderAndAPipe) {
  const auto refused = [](const std::string& path) {
    return std::string(error_of([&] { open_file_store(path, {}, soon()); }).what());
  };
  EXPECT_THAT(refused(folder_), HasSubstr("Is a directory"));
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refused(pipe), HasSubstr("pipe is not a regular file"));
  EXPECT_TRUE(std::filesystem::exists(pipe));
}

}  // namespace
}  // namespace peal::store
