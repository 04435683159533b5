// Which ranks of a group are on one host, by what their contacts say. Pure; asked while a group
// connects.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "peal/transport/contact.h"

namespace peal::transport {

/// How many neighbouring ranks each host has, where all have as many; 1 where that is not so. The
/// same for all ranks that ask.
std::size_t ranks_per_host(std::span<const Contact> contacts);

/// A number for each rank's host, from 0 on. Ranks that reach each other by TCP though they are on
/// one count as on hosts of their own.
std::vector<int> number_hosts(std::span<const Contact> contacts);

}  // namespace peal::transport
