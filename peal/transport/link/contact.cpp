#include "peal/transport/link/contact.h"

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

/// The inode number by which the kernel identifies this namespace; 0 if unknown.
std::int64_t own_namespace(const char* kind) {
  struct stat status {};
  const std::string path = fmt::format("/proc/self/ns/{}", kind);
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::int64_t>(status.st_ino) : 0;
}

}  // namespace

bool is_visible(const Contact& contact, const Contact& own) {
  return machine_of(contact.host_id) == machine_of(own.host_id) && own.pid_namespace != 0 &&
         contact.pid_namespace == own.pid_namespace;
}

std::string name_of(Rank rank, const Contact& contact) {
  return fmt::format("rank {} (pid {} on host {})", rank, contact.pid, contact.hostname);
}

std::string own_host_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty()) boot = own_hostname();
  return fmt::format("{}/{}/{}", boot, ::geteuid(), own_namespace("net"));
}

std::string_view machine_of(std::string_view host_id) {
  return host_id.substr(0, host_id.find('/'));
}

Contact own_contact() {
  return {.host_id = own_host_id(),
          .hostname = own_hostname(),
          .pid = ::getpid(),
          .pid_namespace = own_namespace("pid"),
          .addresses = {}};
}

}  // namespace peal::transport
