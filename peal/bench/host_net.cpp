#include "peal/bench/host_net.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "peal/base/error.h"
#include "peal/base/split.h"
#include "peal/bench/subprocess.h"
#include "peal/system/private_folder.h"

namespace peal::bench {
namespace {

constexpr Timeout kCommandLimit = std::chrono::seconds(10);
constexpr const char* kHostPrefix = "peal-bench-";  // peal-bench-PID-INDEX, a host name too
constexpr const char* kBridgePrefix = "pealb";      // pealbPID; interface names must be short

/// Runs one program. The words of `command` are the program and its first arguments; `more` are
/// further arguments, which may contain spaces.
Finished run(const std::string& command, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words;
  for (const std::string_view word : split(command, ' ')) words.emplace_back(word);
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words, Deadline::after(kCommandLimit));
}

template <class... Parts>
void run_or_throw(fmt::format_string<Parts...> format, Parts&&... parts) {
  const std::string command = fmt::format(format, std::forward<Parts>(parts)...);
  const Finished finished = run(command);
  if (finished.status == 0) return;
  throw Error(ErrorKind::kResource, fmt::format("{} failed: {}", command, finished.output));
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code missing;
  for (std::filesystem::directory_iterator entry(folder, missing), end; !missing && entry != end;
       entry.increment(missing)) {
    names.push_back(entry->path().filename());
  }
  return names;
}

/// The name of a host's interface at the bridge.
std::string port_of(int index) { return fmt::format("pealv{}.{}", ::getpid(), index); }

/// Runs at the same time have different subnets, if their process numbers differ enough.
std::string subnet_prefix() {
  const int process = ::getpid();
  return fmt::format("10.{}.{}", 100 + process / 250 % 100, process % 250);
}

nlohmann::json first_of(const std::string& command) {
  const Finished finished = run(command);
  const auto parsed = nlohmann::json::parse(finished.output, nullptr, false);
  if (finished.status != 0 || !parsed.is_array() || parsed.empty()) {
    throw Error(ErrorKind::kResource,
                fmt::format("cannot read the counters of a host: {}", finished.output));
  }
  return parsed.front();
}

std::int64_t interface_bytes(const Host& host) {
  return first_of(fmt::format("ip -n {} -s -j link show dev {}", host.name, kHostInterface))
      .at("stats64")
      .at("tx")
      .at("bytes");
}

std::int64_t qdisc_bytes(const Host& host) {
  return first_of(fmt::format("tc -n {} -s -j qdisc show dev {}", host.name, kHostInterface))
      .at("bytes");
}

}  // namespace

void remove_hosts_of_ended_processes() {
  for (const std::string& name : names_in("/run/netns")) {
    if (is_of_an_ended_process(name, kHostPrefix)) run("ip netns del", {name});
  }
  for (const std::string& name : names_in("/sys/class/net")) {
    if (is_of_an_ended_process(name, kBridgePrefix)) run("ip link del", {name});
  }
}

HostNet::HostNet(const HostOptions& options)
    : options_(options),
      bridge_(fmt::format("{}{}", kBridgePrefix, ::getpid())),
      subnet_(subnet_prefix() + ".0/24") {
  if (::geteuid() != 0) {
    throw Error(ErrorKind::kUsage,
                "--hosts-netns makes network namespaces: run `peal bench` as root");
  }
  if (!find_program("ip") || !find_program("tc")) {
    throw Error(ErrorKind::kUsage, "--hosts-netns needs `ip` and `tc`: install iproute2");
  }
  try {
    lay_bridge();
    for (int index = 0; index < options.hosts; ++index) add_host(index);
  } catch (...) {
    remove();
    throw;
  }
}

HostNet::~HostNet() { remove(); }

void HostNet::remove() const noexcept try {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    // Without this, the system removes the interface some time after its namespace.
    run("ip link del " + port_of(static_cast<int>(i)));
    run("ip netns del " + hosts_[i].name);
  }
  run("ip link del " + bridge_);
} catch (const std::exception&) {  // the next run removes the hosts
}

void HostNet::lay_bridge() {
  run_or_throw("ip link add {} type bridge", bridge_);
  run_or_throw("ip link set {} up", bridge_);
}

void HostNet::add_host(int index) {
  const Host host{fmt::format("{}{}-{}", kHostPrefix, ::getpid(), index),
                  fmt::format("{}.{}", subnet_prefix(), index + 1)};
  const std::string port = port_of(index);
  run_or_throw("ip netns add {}", host.name);
  hosts_.push_back(host);
  run_or_throw("ip link add {} type veth peer name {} netns {}", port, kHostInterface, host.name);
  run_or_throw("ip link set {} master {} up", port, bridge_);
  run_or_throw("ip -n {} address add {}/24 dev {}", host.name, host.address, kHostInterface);
  run_or_throw("ip -n {} link set lo up", host.name);
  run_or_throw("ip -n {} link set {} up", host.name, kHostInterface);
  if (!options_.rate.empty()) limit(host);
  if (!options_.congestion.empty()) choose_congestion(host);
}

void HostNet::limit(const Host& host) const {
  const std::string command = fmt::format(
      "tc -n {} qdisc add dev {} root tbf burst 128k latency 50ms rate", host.name, kHostInterface);
  const Finished limited = run(command, {options_.rate});
  if (limited.status == 0) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("--rate \"{}\": tc rejects it ({}); pass a rate such as 1gbit",
                          options_.rate,
                          limited.output.substr(0, limited.output.find('\n'))));
}

void HostNet::choose_congestion(const Host& host) const {
  const std::string settings = "/proc/sys/net/ipv4/tcp_";
  const std::string script = "printf %s \"$1\" > \"$0\"";
  const Finished chosen = run(fmt::format("ip netns exec {} sh -c", host.name),
                              {script, settings + "congestion_control", options_.congestion});
  if (chosen.status == 0) return;
  std::string allowed;
  std::getline(std::ifstream(settings + "allowed_congestion_control"), allowed);
  throw Error(ErrorKind::kUsage,
              fmt::format("--congestion \"{}\" is not allowed in namespaces: use one of {} (see "
                          "sysctl net.ipv4.tcp_allowed_congestion_control)",
                          options_.congestion,
                          allowed));
}

void HostNet::disconnect_host(std::size_t host) const {
  run_or_throw("ip link set {} nomaster", port_of(static_cast<int>(host)));
}

void HostNet::connect_host(std::size_t host) const {
  run_or_throw("ip link set {} master {}", port_of(static_cast<int>(host)), bridge_);
}

std::vector<Traffic> HostNet::traffic() const {
  std::vector<Traffic> all;
  for (const Host& host : hosts_) {
    Traffic& traffic = all.emplace_back(Traffic{.interface_bytes = interface_bytes(host)});
    if (!options_.rate.empty()) traffic.qdisc_bytes = qdisc_bytes(host);
  }
  return all;
}

}  // namespace peal::bench
