// Memory that processes of one host share: a file without a name (memfd), so that nothing is left
// of it when the last process that maps it ends, however it ends. Used by host.cpp.
#pragma once

#include <optional>

#include "peal/base/error.h"
#include "peal/base/fd.h"
#include "peal/base/units.h"

namespace peal::transport {

/// A file of so many zeros that can grow but never shrink: no process can take memory away under
/// another. Costs memory only where it is touched. `name` shows in /proc. Throws Error(resource).
Fd make_shared_file(const char* name, Bytes size);

/// Why this process cannot make such files, as in a sandbox that forbids memfd_create; nothing
/// where it can. Cost: makes an empty one.
std::optional<Error> why_no_shared_files();

/// Makes the file at least `to` large, with memory behind every byte from `from` on, so that
/// touching them cannot fail. Throws Error(resource) when the system has none, or the file would be
/// larger than this process may make one.
void grow_shared_file(int fd, Bytes from, Bytes to);

/// Gives back the memory of whole pages: they read as zeros, and whoever touches them next makes
/// new ones. Where the system does not know it, nothing happens.
void empty_shared_file(int fd, Bytes from, Bytes to) noexcept;

/// Throws Error(mismatch) unless the file can never become smaller than `least`.
void check_shared_file(int fd, Bytes least);

}  // namespace peal::transport
