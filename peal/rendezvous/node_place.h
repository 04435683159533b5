// The place of this node in a job whose nodes another launcher starts, such as Kubernetes or srun:
// a value. Made by read_node_place.h, used by `peal run`.
#pragma once

#include <cstdint>
#include <string>

namespace peal::rendezvous {

/// Node `node` of `nodes`. A node is a host, or a part of a host, with one `peal run`.
struct NodePlace {
  int nodes = 1;
  int node = 0;
  std::string master{};    // the host of rank 0; empty: this machine
  std::uint16_t port = 0;  // where the ranks meet on that host; 0: a free port of this machine
  std::string job{};       // the name that the launcher of the nodes gives the job; may be empty
  std::string source{};    // which options or variables gave the place, for texts

  bool is_only() const { return nodes == 1; }
  friend bool operator==(const NodePlace&, const NodePlace&) = default;
};

}  // namespace peal::rendezvous
