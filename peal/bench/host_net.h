// Several hosts on this machine: network namespaces, each with an interface into one bridge. For
// measuring what goes between hosts without having any. Called by `peal bench --hosts-netns`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace peal::bench {

/// A host: the namespace to start its processes in, and where others reach it.
struct Host {
  std::string name;     // as `ip netns exec` takes it
  std::string address;  // "10.123.45.1"
};

/// What a host has sent since it was made.
struct Traffic {
  std::int64_t interface_bytes = 0;              // by the interface's counter
  std::optional<std::int64_t> qdisc_bytes = {};  // by `tc -s qdisc`, where the rate is limited
};

struct HostOptions {
  int hosts = 0;  // 0: none, all ranks are on this machine
  int ranks_per_host = 1;
  /// Of each host's sending, as `tc` takes it ("1gbit"), by a token bucket filter (burst 128k,
  /// latency 50ms) on the interface inside the namespace; empty: no limit. What comes to a host is
  /// limited by what others send.
  std::string rate;
  /// Of all TCP on the hosts; empty: as on this machine.
  std::string congestion;
};

/// The interface that every host has.
inline constexpr const char* kHostInterface = "eth0";

/// Removes the hosts of runs that were killed. Takes root. Cost: nothing where there are none.
void remove_hosts_of_the_dead();

class HostNet final {
 public:
  /// Errors: usage (not root, no `ip`, a rate or a congestion control that the system does not
  /// take), resource.
  explicit HostNet(const HostOptions& options);
  /// Removes all of it.
  ~HostNet();
  HostNet(const HostNet&) = delete;
  HostNet& operator=(const HostNet&) = delete;

  const HostOptions& options() const { return options_; }
  const std::vector<Host>& hosts() const { return hosts_; }
  /// "10.123.45.0/24"
  const std::string& subnet() const { return subnet_; }
  /// Of each host. Cost: two short programs for each.
  std::vector<Traffic> traffic() const;

  /// From now on nothing comes to this host or from it, and nobody is told: as when a cable is cut
  /// somewhere on the way; or again. Errors: resource.
  void unplug(std::size_t host) const;
  void plug_in(std::size_t host) const;

 private:
  void lay_bridge();
  void remove() const;
  void add_host(int index);
  void limit(const Host& host) const;
  void choose_congestion(const Host& host) const;

  HostOptions options_;
  std::string bridge_, subnet_;
  std::vector<Host> hosts_;
};

}  // namespace peal::bench
