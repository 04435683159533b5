// Turns existing pages of a process, like those of malloc, into pages of a shared file and back.
// The pages keep their addresses and contents. Used by window.cpp for memory that its user
// registers.
//
// No system call does this. The contents are copied into the file, and the file's pages are mapped
// over the old ones (decisions/0019). No thread may write to the pages meanwhile. Readers see the
// same bytes all the time.
#pragma once

#include <cstddef>
#include <span>

#include "peal/base/units.h"

namespace peal::transport {

Bytes page_size();

/// The whole pages inside `memory`; empty without any.
std::span<std::byte> whole_pages_in(std::span<std::byte> memory);

/// The pages of a shared file (shared_file.h) from `offset` on: the file, and the other place where
/// this process maps them.
struct FilePages {
  int file = -1;
  Bytes offset;
  std::byte* view = nullptr;
};

/// Throws unless every page that `memory` touches is private anonymous memory that is readable and
/// writable.
/// Errors: usage (nothing is mapped there, or a window shares it already), unsupported (another
///   kind of memory), resource (the mapped areas cannot be read).
/// Cost: reads /proc/self/maps.
void check_own_memory(std::span<const std::byte> memory);

/// Replaces `pages` by those of the file, which gets memory for them. Both begin and end at pages.
/// Errors: resource. The contents are then unchanged, but some pages may belong to the file.
///   `unshare_pages` reverts this, and may fail too, because it needs memory.
/// Cost: a copy, in steps; at most one step is in memory twice.
void share_pages(std::span<std::byte> pages, const FilePages& with);

/// What happens to the file's pages when they are not used any more.
enum class Emptied : unsigned char { kKept, kGivenBack };

/// Makes `pages` private memory again, as far as they still belong to the file: their owner may
/// have freed them, and other memory may have come to these addresses. Returns false if the system
/// has no memory for this or the mapped areas cannot be read. Then some pages may still belong to
/// the file, which must keep them.
bool unshare_pages(std::span<std::byte> pages, const FilePages& with, Emptied emptied) noexcept;

}  // namespace peal::transport
