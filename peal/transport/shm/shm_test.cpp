// Tests that need real processes: shared memory between processes, and the state after one ends.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/in_child.h"
#include "peal/base/testing/sanitized.h"
#include "peal/system/fd.h"
#include "peal/transport/link/connect.h"
#include "peal/transport/testing/testing.h"
#include "peal/transport/window/window.h"

namespace peal::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::bytes_of;
using testing::receive_all;
using testing::send_all;
using testing::stream_bytes;
using testing::test_deadline;

/// Two ranks. Rank 0 is this process. Rank 1 is a child that runs `body` and then exits without
/// notice.
class TwoProcesses {
 public:
  using Body = std::function<void(Transport& transport)>;

  explicit TwoProcesses(const Body& body) {
    const auto pending = open(options_of(0));
    std::vector<Contact> contacts = {pending->contact()};
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw system_error("pipe2", errno);
    const Fd reader(ends[0]);
    Fd writer(ends[1]);
    child_ = ::fork();
    if (child_ == 0) run_child(std::move(writer), std::move(contacts), body);
    writer.reset();
    contacts.push_back(contact_from(reader.get()));
    for (const Contact& contact : contacts) sockets_.push_back(contact.addresses.at(0));
    transport_ = pending->connect(contacts, test_deadline());
  }

  ~TwoProcesses() {
    ::kill(child_, SIGKILL);
    wait_for_child();
  }

  Transport& transport() { return *transport_; }
  Window& window() { return *transport_->window(); }
  pid_t child() const { return child_; }
  /// The sockets at which the two listened.
  const std::vector<net::Address>& sockets() const { return sockets_; }

  /// The child's exit status; -1 if a signal ended it.
  int wait_for_child() {
    int status = 0;
    if (::waitpid(child_, &status, 0) == child_) {
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    return status_;
  }

 private:
  static ConnectOptions options_of(Rank rank) {
    return {.rank = rank, .size = 2, .choice = TransportChoice::kShm, .arena = 64_MiB};
  }

  /// The child reports its address; the rest is known.
  Contact contact_from(int reader) const {
    std::string text;
    char byte = 0;
    while (::read(reader, &byte, 1) == 1) text.push_back(byte);
    Contact contact = own_contact();
    contact.choice = TransportChoice::kShm;
    contact.pid = child_;
    contact.addresses = {net::Address::parse(text)};
    return contact;
  }

  /// A forked child does not get the sockets of its parent, so the child opens its own.
  [[noreturn]] static void run_child(Fd writer, std::vector<Contact> contacts, const Body& body) {
    int status = 1;
    try {
      const auto pending = open(options_of(1));
      contacts.push_back(pending->contact());
      const std::string address = pending->contact().addresses.at(0).to_string();
      const auto size = static_cast<ssize_t>(address.size());
      if (::write(writer.get(), address.data(), address.size()) != size) ::_exit(1);
      writer.reset();
      const auto transport = pending->connect(contacts, test_deadline());
      body(*transport);
      status = 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    ::_exit(status);
  }

  pid_t child_ = -1;
  int status_ = -2;
  std::vector<net::Address> sockets_;
  std::unique_ptr<Transport> transport_;
};

/// Reads until the peer has ended.
/// Errors: timeout (the end of the peer is not noticed).
void receive_to_the_end(Channel& channel, Rank peer) {
  receive_all(channel, peer, 1 << 20, test_deadline());
}

[[noreturn]] void sleep_for_ever() {
  while (true) ::pause();
}

void say_ready(Transport& transport) {
  send_all(transport.mail(), 0, bytes_of("!"), test_deadline());
}

void await_ready(Transport& transport) { receive_all(transport.mail(), 1, 1, test_deadline()); }

/// Whether any process has bound a unix socket with this name.
bool is_bound(const net::Address& address) {
  const std::string name = address.to_string().substr(std::string("unix:").size());
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    if (line.ends_with(name)) return true;
  }
  return false;
}

/// Other processes' files come and go in /dev/shm; those of `peal bench` are ignored.
std::set<std::string> files_in_dev_shm() {
  std::set<std::string> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", error)) {
    const std::string name = entry.path().filename();
    if (name.find("peal") == std::string::npos || name.starts_with("peal-bench.")) continue;
    found.insert(name);
  }
  return found;
}

TEST(ShmTest, AKilledProcessCountsAsClosedAndLeavesNoFiles) {
  const std::set<std::string> before = files_in_dev_shm();
  std::vector<net::Address> sockets;
  {
    TwoProcesses ranks([](Transport& transport) {
      say_ready(transport);
      sleep_for_ever();
    });
    sockets = ranks.sockets();
    ASSERT_EQ(sockets.size(), 2u);
    await_ready(ranks.transport());
    ::kill(ranks.child(), SIGKILL);
    EXPECT_NO_THROW(receive_to_the_end(ranks.transport().mail(), 1));
    EXPECT_NO_THROW(receive_to_the_end(ranks.transport().data(), 1));
  }
  for (const net::Address& socket : sockets) EXPECT_FALSE(is_bound(socket));
  EXPECT_EQ(files_in_dev_shm(), before);
}

TEST(ShmTest, ARankListensUnderAnAbstractNameUntilItIsConnected) {
  const auto pending = open({.choice = TransportChoice::kShm, .arena = 1_MiB});
  const net::Address address = pending->contact().addresses.at(0);
  EXPECT_TRUE(is_bound(address));
  const auto transport = pending->connect(std::vector{pending->contact()}, test_deadline());
  EXPECT_FALSE(is_bound(address));
}

TEST(ShmTest, APollingPeerNoticesAKilledProcess) {
  TwoProcesses ranks([](Transport& transport) {
    say_ready(transport);
    sleep_for_ever();
  });
  await_ready(ranks.transport());
  ::kill(ranks.child(), SIGKILL);
  const Deadline deadline = test_deadline();
  std::array<std::byte, 1> into{};
  bool closed = false;
  while (!closed && !deadline.passed())
    closed = ranks.transport().data().try_receive(1, into).closed;
  EXPECT_TRUE(closed);
}

TEST(ShmTest, AKilledProcessIsNoticedThoughItsChildrenLiveOn) {
  std::array<int, 2> leash{};
  ASSERT_EQ(::pipe2(leash.data(), O_CLOEXEC), 0);
  const Fd held(leash[1]);
  const Fd end(leash[0]);
  TwoProcesses ranks([&](Transport& transport) {
    const pid_t own_child = ::fork();  // like a worker that loads data
    if (own_child == 0) {
      ::close(held.get());
      char byte = 0;
      while (::read(end.get(), &byte, 1) < 0) continue;  // until the test ends
      ::_exit(0);
    }
    say_ready(transport);
    sleep_for_ever();
  });
  await_ready(ranks.transport());
  ::kill(ranks.child(), SIGKILL);
  EXPECT_NO_THROW(receive_to_the_end(ranks.transport().data(), 1));
}

TEST(ShmTest, BytesSentBeforeAProcessEndedStillArrive) {
  TwoProcesses ranks([](Transport& transport) {
    send_all(transport.data(), 0, stream_bytes(1, 0, 0, 100'000), test_deadline());
  });
  EXPECT_EQ(ranks.wait_for_child(), 0);
  EXPECT_TRUE(receive_all(ranks.transport().data(), 1, 200'000, test_deadline()) ==
              stream_bytes(1, 0, 0, 100'000));
}

TEST(ShmTest, StreamsBetweenProcessesKeepEveryByte) {
  constexpr std::size_t kSize = 5'000'000;
  TwoProcesses ranks([](Transport& transport) {
    const auto got = receive_all(transport.data(), 0, kSize, test_deadline());
    send_all(transport.data(), 0, got, test_deadline());
  });
  const auto message = stream_bytes(0, 1, 0, kSize);
  send_all(ranks.transport().data(), 1, message, test_deadline());
  EXPECT_TRUE(receive_all(ranks.transport().data(), 1, kSize, test_deadline()) == message);
}

void wait_for_counter(Window& window, Rank rank, std::uint64_t value) {
  const Deadline deadline = test_deadline();
  while (window.counter(rank, 0) < value) {
    if (deadline.passed()) throw Error(ErrorKind::kTimeout, "counter");
    window.sleep_until(rank, 0, value, deadline);
  }
}

TEST(ShmTest, CountersAndStagesReachAcrossProcesses) {
  TwoProcesses ranks([](Transport& transport) {
    Window& window = *transport.window();
    for (std::uint64_t round = 1; round <= 200; ++round) {
      wait_for_counter(window, 0, round);
      window.stage(1)[0] = window.stage(0)[0];
      window.signal(0, round, {});
    }
  });
  int wrong = 0;
  for (std::uint64_t round = 1; round <= 200; ++round) {
    ranks.window().stage(0)[0] = static_cast<std::byte>(round);
    ranks.window().signal(0, round, {});
    wait_for_counter(ranks.window(), 1, round);
    wrong += ranks.window().stage(1)[0] != static_cast<std::byte>(round);
  }
  EXPECT_EQ(wrong, 0);
}

TEST(ShmTest, RegisteredMemoryThatGrowsIsReachedByTheOtherProcess) {
  TwoProcesses ranks([](Transport& transport) {
    Window& window = *transport.window();
    window.allocate(100_B);
    std::byte* const memory = window.allocate(30_MiB);
    std::memset(memory, 5, 30 << 20);
    Notice notice{1, {}};
    notice.body[0] = window.locate(memory, 30_MiB).value().offset.value;
    window.post(notice);
    window.signal(0, 1, {});
    wait_for_counter(window, 0, 1);
    if (memory[12345] != std::byte{6}) throw Error(ErrorKind::kBug, "the store did not arrive");
  });
  wait_for_counter(ranks.window(), 1, 1);
  const auto notice = ranks.window().notice(1, 1);
  ASSERT_TRUE(notice);
  std::byte* const memory = ranks.window().address(1, ArenaOffset{notice->body[0]}, 30_MiB);
  EXPECT_EQ(memory[0], std::byte{5});
  EXPECT_EQ(memory[(30 << 20) - 1], std::byte{5});
  memory[12345] = std::byte{6};
  ranks.window().signal(0, 1, {});
  EXPECT_EQ(ranks.wait_for_child(), 0);
}

TEST(ShmTest, FullMemoryIsAnErrorAndNotASignal) {
  TwoProcesses ranks([](Transport&) {});
  try {
    ranks.window().allocate(65_MiB);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kResource);
  }
}

TEST(ShmTest, AProcessWithLittleAddressSpaceSharesLess) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take terabytes of address space";
  EXPECT_TRUE(holds_in_child([] {
    const rlimit limit{1 << 30, 1 << 30};
    ::setrlimit(RLIMIT_AS, &limit);
    const auto pending = open({.choice = TransportChoice::kShm});
    const auto transport = pending->connect(std::vector{pending->contact()}, test_deadline());
    transport->window()->allocate(1_MiB)[0] = std::byte{1};
    return true;
  }));
}

}  // namespace
}  // namespace peal::transport
