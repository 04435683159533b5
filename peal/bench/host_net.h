// Several hosts on this machine: network namespaces, each with an interface into one bridge.
// Measures operations between hosts on a single machine. Called by `peal bench --hosts-netns`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace peal::bench {

/// A host: the namespace of its processes, and its address.
struct Host {
  std::string name;     // for `ip netns exec`
  std::string address;  // "10.123.45.1"
};

/// The bytes that a host has sent since it was made.
struct Traffic {
  std::int64_t interface_bytes = 0;              // by the interface's counter
  std::optional<std::int64_t> qdisc_bytes = {};  // by `tc -s qdisc`, if the rate is limited
};

struct HostOptions {
  int hosts = 0;  // 0: all ranks are on this machine
  int ranks_per_host = 1;
  /// The limit for sending of each host, in the syntax of `tc` ("1gbit"). A token bucket filter
  /// (burst 128k, latency 50ms) on the interface inside the namespace enforces it; empty: no limit.
  /// Receiving is limited only by the senders.
  std::string rate;
  /// The congestion control of all TCP on the hosts; empty: as on this machine.
  std::string congestion;
};

/// The name of each host's interface.
inline constexpr const char* kHostInterface = "eth0";

/// Removes the hosts of runs that were killed. Needs root. Cost: nothing if no hosts remain.
void remove_hosts_of_ended_processes();

class HostNet final {
 public:
  /// Errors: usage (not root, `ip` is missing, a rate or congestion control that the system
  ///   rejects), resource.
  explicit HostNet(const HostOptions& options);
  /// Removes the hosts and the bridge.
  ~HostNet();
  HostNet(const HostNet&) = delete;
  HostNet& operator=(const HostNet&) = delete;

  const HostOptions& options() const { return options_; }
  const std::vector<Host>& hosts() const { return hosts_; }
  /// "10.123.45.0/24"
  const std::string& subnet() const { return subnet_; }
  /// The traffic of each host. Cost: starts two short programs for each host.
  std::vector<Traffic> traffic() const;

  /// For drills. disconnect_host cuts the host's connection without notice, as if a cable were cut
  /// somewhere on the way. connect_host restores the connection. Errors: resource.
  void disconnect_host(std::size_t host) const;
  void connect_host(std::size_t host) const;

 private:
  void lay_bridge();
  void remove() const noexcept;
  void add_host(int index);
  void limit(const Host& host) const;
  void choose_congestion(const Host& host) const;

  HostOptions options_;
  std::string bridge_, subnet_;
  std::vector<Host> hosts_;
};

}  // namespace peal::bench
