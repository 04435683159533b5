// Which ranks of a group are on one host, by their contacts. Pure; called while a group connects.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "peal/transport/link/contact.h"

namespace peal::transport {

/// How many neighbouring ranks each host has, if all hosts have equally many; otherwise 1. The same
/// on all ranks.
std::size_t ranks_per_host(std::span<const Contact> contacts);

/// A number for each rank's host, from 0 on. Ranks that reach each other by TCP count as ranks of
/// different hosts, even on one host.
std::vector<int> number_hosts(std::span<const Contact> contacts);

}  // namespace peal::transport
