// Memory that processes of one host share: a file without a name (memfd). Nothing is left of it
// once the last process that maps it ends, however that process ends. Used by the windows of ranks
// (transport) and by the workers of `peal bench`.
#pragma once

#include <optional>
#include <string>

#include "peal/base/error.h"
#include "peal/base/units.h"
#include "peal/system/fd.h"

namespace peal {

/// Makes a file of `size` zeros that can grow but never shrink, so no process can remove memory
/// that another uses. Only touched pages cost memory. `name` shows in /proc. Throws
/// Error(resource).
Fd make_shared_file(const char* name, Bytes size);

/// While `file` is open in this process, processes of the same user can open it at this path.
std::string path_of_shared_file(const Fd& file);

/// Opens a shared file at its path, and enlarges the file to `size` if it is smaller. Throws
/// Error(resource).
Fd open_shared_file(const std::string& path, Bytes size);

/// Why this process cannot make such files, for example in a sandbox that forbids memfd_create;
/// empty if it can.
/// Cost: makes an empty file.
std::optional<Error> why_no_shared_files();

/// Makes the file at least `to` large, with memory behind every byte from `from` on, so that
/// touching the bytes cannot fail. Throws Error(resource) if the system has no memory, or the file
/// would exceed this process's limit.
void grow_shared_file(int fd, Bytes from, Bytes to);

/// Releases the memory of whole pages. They read as zeros, and the next access allocates new ones.
/// Does nothing if the system does not support this.
void empty_shared_file(int fd, Bytes from, Bytes to) noexcept;

/// Throws Error(mismatch) unless the file can never become smaller than `least`.
void check_shared_file(int fd, Bytes least);

}  // namespace peal
