#include "peal/bench/host_net.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "peal/base/error.h"
#include "peal/bench/subprocess.h"
#include "peal/system/private_folder.h"

namespace peal::bench {
namespace {

constexpr Timeout kCommandLimit = std::chrono::seconds(10);
constexpr const char* kHostPrefix = "peal-bench-";  // peal-bench-PID-INDEX, a host name too
constexpr const char* kBridgePrefix = "pealb";      // pealbPID; interface names must be short

Finished run(const std::vector<std::string>& words) {
  return run_program(words, Deadline::after(kCommandLimit));
}

void must(const std::vector<std::string>& words) {
  const Finished finished = run(words);
  if (finished.status == 0) return;
  std::string command;
  for (const std::string& word : words) command += word + " ";
  throw Error(ErrorKind::kResource, fmt::format("{}failed: {}", command, finished.output));
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

nlohmann::json first_of(const std::vector<std::string>& words) {
  const Finished finished = run(words);
  const auto parsed = nlohmann::json::parse(finished.output, nullptr, false);
  if (finished.status != 0 || !parsed.is_array() || parsed.empty()) {
    throw Error(ErrorKind::kResource,
                fmt::format("cannot read the counters of a host: {}", finished.output));
  }
  return parsed.front();
}

std::int64_t interface_bytes(const Host& host) {
  return first_of({"ip", "-n", host.name, "-s", "-j", "link", "show", "dev", kHostInterface})
      .at("stats64")
      .at("tx")
      .at("bytes");
}

std::int64_t qdisc_bytes(const Host& host) {
  return first_of({"tc", "-n", host.name, "-s", "-j", "qdisc", "show", "dev", kHostInterface})
      .at("bytes");
}

}  // namespace

void remove_hosts_of_ended_processes() {
  for (const std::string& name : names_in("/run/netns")) {
    if (is_of_an_ended_process(name, kHostPrefix)) run({"ip", "netns", "del", name});
  }
  for (const std::string& name : names_in("/sys/class/net")) {
    if (is_of_an_ended_process(name, kBridgePrefix)) run({"ip", "link", "del", name});
  }
}

HostNet::HostNet(const HostOptions& options)
    : options_(options),
      bridge_(fmt::format("{}{}", kBridgePrefix, ::getpid())),
      subnet_(subnet_prefix() + ".0/24") {
  if (::geteuid() != 0) {
    throw Error(ErrorKind::kUsage, "--hosts-netns makes network namespaces, so it must be root");
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

HostNet::~HostNet() {
  try {
    remove();
  } catch (const std::exception&) {  // the next run removes the hosts
  }
}

void HostNet::remove() const {
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    run({"ip",
         "link",
         "del",
         port_of(static_cast<int>(i))});  // the removal with its namespace would be delayed
    run({"ip", "netns", "del", hosts_[i].name});
  }
  run({"ip", "link", "del", bridge_});
}

void HostNet::lay_bridge() {
  must({"ip", "link", "add", bridge_, "type", "bridge"});
  must({"ip", "link", "set", bridge_, "up"});
}

void HostNet::add_host(int index) {
  const Host host{fmt::format("{}{}-{}", kHostPrefix, ::getpid(), index),
                  fmt::format("{}.{}", subnet_prefix(), index + 1)};
  const std::string port = port_of(index);
  must({"ip", "netns", "add", host.name});
  hosts_.push_back(host);
  must({"ip",
        "link",
        "add",
        port,
        "type",
        "veth",
        "peer",
        "name",
        kHostInterface,
        "netns",
        host.name});
  must({"ip", "link", "set", port, "master", bridge_, "up"});
  must({"ip", "-n", host.name, "address", "add", host.address + "/24", "dev", kHostInterface});
  must({"ip", "-n", host.name, "link", "set", "lo", "up"});
  must({"ip", "-n", host.name, "link", "set", kHostInterface, "up"});
  if (!options_.rate.empty()) limit(host);
  if (!options_.congestion.empty()) choose_congestion(host);
}

void HostNet::limit(const Host& host) const {
  const Finished limited = run({"tc",
                                "-n",
                                host.name,
                                "qdisc",
                                "add",
                                "dev",
                                kHostInterface,
                                "root",
                                "tbf",
                                "rate",
                                options_.rate,
                                "burst",
                                "128k",
                                "latency",
                                "50ms"});
  if (limited.status == 0) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("--rate \"{}\": tc rejects it ({}); pass a rate such as 1gbit",
                          options_.rate,
                          limited.output.substr(0, limited.output.find('\n'))));
}

void HostNet::choose_congestion(const Host& host) const {
  const std::string settings = "/proc/sys/net/ipv4/tcp_";
  const Finished chosen = run({"ip",
                               "netns",
                               "exec",
                               host.name,
                               "sh",
                               "-c",
                               "printf %s \"$1\" > \"$0\"",
                               settings + "congestion_control",
                               options_.congestion});
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
  must({"ip", "link", "set", port_of(static_cast<int>(host)), "nomaster"});
}

void HostNet::connect_host(std::size_t host) const {
  must({"ip", "link", "set", port_of(static_cast<int>(host)), "master", bridge_});
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
