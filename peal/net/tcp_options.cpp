#include "peal/net/tcp_options.h"

// The kernel's header: the C library's header lacks fields that are newer than Linux 4.8.
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/system/fd.h"

namespace peal::net {
namespace {

/// The kernel's TCP_CA_NAME_MAX, including the zero byte at the end.
constexpr std::size_t kLongestName = 16;

/// From Linux 5.14 on; the C library may be older.
constexpr int kBufferLock = 72;  // SO_BUF_LOCK

std::string available() {
  std::string names;
  std::ifstream file("/proc/sys/net/ipv4/tcp_available_congestion_control");
  std::getline(file, names);
  return names.empty() ? "no list of them" : names;
}

}  // namespace

std::string congestion_control(int fd) {
  std::array<char, kLongestName> name{};
  socklen_t size = name.size() - 1;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) != 0) return "";
  return name.data();
}

void set_congestion_control(int fd, const std::string& name) {
  const auto size = static_cast<socklen_t>(name.size());
  if (::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), size) == 0) return;
  const int error_number = errno;
  throw Error(ErrorKind::kUsage,
              fmt::format("cannot use the congestion control {}: {}; the system has {}",
                          name,
                          std::generic_category().message(error_number),
                          available()));
}

void check_congestion_control(const std::string& name) {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd) throw system_error("cannot make a socket", errno);
  set_congestion_control(fd.get(), name);
}

void bound_send_buffer(int fd, Bytes size) {
  const int bytes = static_cast<int>(size.value);  // the kernel doubles it for its bookkeeping
  if (::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) != 0) {
    throw system_error("cannot set the size of a send buffer", errno);
  }
}

void unbound_send_buffer(int fd) {
  const int unlocked = 0;
  if (::setsockopt(fd, SOL_SOCKET, kBufferLock, &unlocked, sizeof unlocked) == 0) return;
  bound_send_buffer(fd, 1024_MiB);  // an older kernel reduces this to its largest size
}

Bytes unacknowledged(int fd) {
  int bytes = 0;
  return ::ioctl(fd, SIOCOUTQ, &bytes) == 0 ? Bytes(bytes) : 0_B;
}

Bytes unread(int fd) {
  int bytes = 0;
  return ::ioctl(fd, SIOCINQ, &bytes) == 0 ? Bytes(bytes) : 0_B;
}

void repeat_evenly(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof on);
}

Bytes line_capacity(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0_B;
  // Before the first round trip the kernel reports the largest 32-bit number.
  if (info.tcpi_min_rtt == ~__u32{0}) return 0_B;
  const double seconds = static_cast<double>(info.tcpi_min_rtt) * 1e-6;
  return Bytes(static_cast<std::int64_t>(static_cast<double>(info.tcpi_delivery_rate) * seconds));
}

}  // namespace peal::net
