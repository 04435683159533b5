// The contents of a core file of a rank: the job's secret from PEAL_SECRET_FILE is not in it, while
// the group is connected or later. The ranks are threads of this process, which searches its own
// memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/secret.h"
#include "peal/base/testing/scoped_variable.h"
#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/init/init.h"
#include "peal/net/proof.h"
#include "peal/net/testing/reserved_port.h"
#include "peal/store/memory_store.h"
#include "peal/system/fd.h"

#include "tests/support/processes.h"
#include "tests/support/ranks.h"

namespace peal::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 2;

/// A part of this process's memory, as /proc/self/smaps lists it.
struct MemoryArea {
  std::string title;  // its first line there
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool is_readable = false;
  bool is_used = false;    // some of it is in memory or swapped out
  bool is_dumped = false;  // not marked by MADV_DONTDUMP
};

/// All areas of memory. The system may omit some from core files for other reasons, such as
/// coredump_filter; this test ignores that.
std::vector<MemoryArea> memory_areas() {
  std::vector<MemoryArea> all;
  std::ifstream lines("/proc/self/smaps");
  for (std::string line; std::getline(lines, line);) {
    MemoryArea area{.title = line};
    std::array<char, 5> rights{};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &area.begin, &area.end, rights.data()) == 3) {
      area.is_readable = rights[0] == 'r';
      all.push_back(area);
    } else if (line.starts_with("Rss:") || line.starts_with("Swap:")) {
      all.back().is_used |= !line.ends_with(" 0 kB");
    } else if (line.starts_with("VmFlags:")) {
      all.back().is_dumped = (line + " ").find(" dd ") == std::string::npos;
    }
  }
  return all;
}

/// Memory that core files leave out. A search reads into it, and so does not find itself.
class HiddenMemory final {
 public:
  explicit HiddenMemory(std::size_t size)
      : size_(size),
        start_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (start_ == MAP_FAILED) throw system_error("mmap", errno);
    ::madvise(start_, size_, MADV_DONTDUMP);
  }
  ~HiddenMemory() { ::munmap(start_, size_); }
  HiddenMemory(const HiddenMemory&) = delete;
  HiddenMemory& operator=(const HiddenMemory&) = delete;

  /// Whether the system supports this.
  bool is_hidden() const {
    const auto start = reinterpret_cast<std::uintptr_t>(start_);
    return std::ranges::any_of(memory_areas(), [&](const MemoryArea& area) {
      return area.begin <= start && start < area.end && !area.is_dumped;
    });
  }
  std::span<char> bytes() { return {static_cast<char*>(start_), size_}; }

 private:
  std::size_t size_;
  void* start_;
};

/// Why this process cannot be searched; empty if it can be.
std::string obstacle() {
  if (!HiddenMemory(1).is_hidden()) return "this system has no MADV_DONTDUMP";
  const char* const binding = std::getenv("LD_BIND_NOW");
  if (binding == nullptr || *binding == '\0') {
    return "without LD_BIND_NOW=1 the linker may leave a piece of the secret on the stack";
  }
  return "";
}

/// Whether the text contains a whole piece of the secret. The allocator may overwrite the first
/// bytes of freed memory.
bool has_piece_of(const Secret& secret, std::string_view text) {
  constexpr std::size_t kPiece = 16;
  bool has_piece = false;
  for (std::size_t i = 0; i + kPiece <= secret.text().size(); i += kPiece) {
    has_piece |= text.find(secret.text().substr(i, kPiece)) != std::string_view::npos;
  }
  return has_piece;
}

/// Searches the memory that a core file holds; pages that nothing was written to are left out.
class Search final {
 public:
  /// The areas that have a piece of the secret, a line for each; empty without such an area.
  std::string places_of(const Secret& secret) {
    std::string places;
    std::size_t searched = 0;
    for (const MemoryArea& area : memory_areas()) {
      if (!area.is_readable || !area.is_used || !area.is_dumped) continue;
      ++searched;
      if (has_secret(area, secret)) places += area.title + "\n";
    }
    return searched > 0 ? places : "nothing could be searched";
  }

 private:
  /// The windows overlap by a page, so that no window cuts a piece.
  bool has_secret(const MemoryArea& area, const Secret& secret) {
    for (std::uintptr_t at = area.begin; at < area.end; at += window_.bytes().size() - page_) {
      const std::size_t size = std::min(window_.bytes().size(), area.end - at);
      if (!is_present(at, size)) continue;
      const std::string_view text = read(at, size);
      if (has_piece_of(secret, text)) return true;
      if (at + size == area.end) break;
    }
    return false;
  }

  /// Whether a page of the range is in memory or swapped out. Reading other pages would allocate
  /// them.
  bool is_present(std::uintptr_t at, std::size_t size) {
    constexpr std::uint64_t kPresent = std::uint64_t{3} << 62;
    std::vector<std::uint64_t> pages(size / page_);
    const auto bytes = std::as_writable_bytes(std::span(pages));
    const auto offset = static_cast<off_t>(at / page_ * sizeof(std::uint64_t));
    const ssize_t got = ::pread(pagemap_.get(), bytes.data(), bytes.size(), offset);
    if (got != static_cast<ssize_t>(bytes.size())) return true;
    return std::ranges::any_of(pages, [](std::uint64_t page) { return (page & kPresent) != 0; });
  }

  /// The readable part of the range; another thread may just have unmapped it.
  std::string_view read(std::uintptr_t at, std::size_t size) {
    const auto window = window_.bytes();
    const ssize_t got = ::pread(memory_.get(), window.data(), size, static_cast<off_t>(at));
    return {window.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }

  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  HiddenMemory window_{256 * page_};
  Fd memory_{::open("/proc/self/mem", O_RDONLY | O_CLOEXEC)};
  Fd pagemap_{::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)};
};

/// A fresh secret. The dynamic linker binds no function of a rank for it, because a function that
/// is bound already would hide a fault.
Secret make_needle() {
  HiddenMemory memory(64);
  const auto digits = memory.bytes();
  EXPECT_EQ(::getrandom(digits.data(), digits.size(), 0), static_cast<ssize_t>(digits.size()));
  for (char& digit : digits) digit = "0123456789abcdef"[static_cast<unsigned char>(digit) % 16];
  return Secret({digits.data(), digits.size()});
}

/// The place where the ranks meet.
enum class Placement : unsigned char { kPort, kGivenStore };

struct Way {
  std::string name;
  Placement place;
  std::string tls;
};

class CoreFileTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "PEAL_JOB", "PEAL_SECRET"}) {
      ::unsetenv(name);
    }
    if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  }

  /// Puts the secret into a file, without a copy of it in memory.
  std::string file_of(const Secret& secret) const {
    const std::string path = folder_.path() + "/secret";
    const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    const auto text = secret.text();
    EXPECT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return path;
  }

  InitOptions options(Rank rank) const {
    InitOptions options;
    options.rank = rank;
    options.world_size = kRanks;
    options.timeout = std::chrono::minutes(2);
    if (GetParam().place == Placement::kGivenStore) {
      options.store = store_;
      options.is_whole_job = false;
    } else {
      options.init_method = "tcp://127.0.0.1:" + port_.text();
    }
    return options;
  }

  const TemporaryFolder folder_;
  const net::ReservedPort port_;
  const std::shared_ptr<store::Store> store_ = store::make_memory_store();
};

TEST_P(CoreFileTest, ACoreFileHoldsNoPartOfASecretFromAFile) {
  const Secret secret = make_needle();
  const std::string path = file_of(secret);
  const ScopedVariable transport("PEAL_TRANSPORT", "tcp");
  const ScopedVariable tls("PEAL_TLS", GetParam().tls);
  const ScopedVariable file("PEAL_SECRET_FILE", path);
  ASSERT_TRUE(config_from(process_environment()).secret == secret);
  const auto outcomes = on_ranks(kRanks, [&](Rank rank) {
    const ProcessGroupPtr group = init_process_group(options(rank));
    std::vector<float> values(1000, 1.0F);
    group->all_reduce(values);
    const std::string places = rank == 0 ? Search().places_of(secret) : "";
    group->barrier();
    group->destroy();
    return places;
  });
  EXPECT_EQ(complaints(outcomes), "");
  EXPECT_EQ(Search().places_of(secret), "") << "after the group's end";
}

INSTANTIATE_TEST_SUITE_P(Ways,
                         CoreFileTest,
                         ::testing::Values(Way{"plain", Placement::kPort, "off"},
                                           Way{"tls", Placement::kPort, "on"},
                                           Way{"given_store_plain", Placement::kGivenStore, "off"},
                                           Way{"given_store_tls", Placement::kGivenStore, "on"}),
                         [](const auto& way) { return way.param.name; });

/// Shows that the search finds a secret, so the tests above can fail.
TEST(CoreFileSearchTest, TheSearchFindsASecretInAStringUntilTheStringIsWiped) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  const Secret secret = net::make_secret();
  EXPECT_EQ(Search().places_of(secret), "");
  std::string copy(secret.text());
  EXPECT_THAT(Search().places_of(secret), HasSubstr("rw"));
  std::fill_n(copy.begin(), 24, 'x');
  EXPECT_THAT(Search().places_of(secret), HasSubstr("rw")) << "a part of the secret is left";
  wipe(copy);
  EXPECT_EQ(Search().places_of(secret), "");
}

/// docs/security.md documents this limit.
TEST(CoreFileSearchTest, TheSearchFindsASecretInTheEnvironment) {
  if (const std::string why = obstacle(); !why.empty()) GTEST_SKIP() << why;
  const Secret secret = net::make_secret();
  EXPECT_EQ(Search().places_of(secret), "");
  std::string text(secret.text());
  const ScopedVariable variable("PEAL_SECRET", text);
  wipe(text);
  EXPECT_THAT(Search().places_of(secret), HasSubstr("rw"));
}

}  // namespace
}  // namespace peal::testing
