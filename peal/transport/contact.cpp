#include "peal/transport/contact.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include <fmt/format.h>

namespace peal::transport {
namespace {

std::string own_hostname() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown host";
  return name.data();
}

}  // namespace

std::string name_of(Rank rank, const Contact& contact) {
  return fmt::format("rank {} (pid {} on host {})", rank, contact.pid, contact.hostname);
}

std::string own_host_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty()) boot = own_hostname();
  struct stat network {};
  const bool known = ::stat("/proc/self/ns/net", &network) == 0;
  return fmt::format("{}/{}/{}", boot, ::geteuid(), known ? network.st_ino : 0);
}

std::string_view machine_of(std::string_view host_id) {
  return host_id.substr(0, host_id.find('/'));
}

Contact own_contact() {
  return {.host_id = own_host_id(), .hostname = own_hostname(), .pid = ::getpid(), .addresses = {}};
}

}  // namespace peal::transport
