// A job for the scheduler to explore: the ranks of a group, each with several threads that send,
// receive and reduce. Every operation has its counterpart, so the job always ends.
#pragma once

#include <cstdint>

namespace peal::explore {

/// Runs one job under the scheduler; everything about it follows from the seed. Throws if an
/// operation fails or delivers wrong data.
void run_job(std::uint64_t seed, bool remembers_stacks);

}  // namespace peal::explore
