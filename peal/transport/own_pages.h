// Pages that a process has already, as malloc gave them, made pages of a shared file and back: they
// keep their addresses and what they hold. Used by window.cpp for memory that its user registers.
//
// No system call does it. The contents are copied into the file, and the file's pages are mapped
// over those that were there (decisions/0019). Nobody may write to the pages meanwhile; who reads
// them sees the same all the time.
#pragma once

#include <cstddef>
#include <span>

#include "peal/base/units.h"

namespace peal::transport {

Bytes page_size();

/// The whole pages inside `memory`; none where there are none.
std::span<std::byte> whole_pages_in(std::span<std::byte> memory);

/// The pages of a shared file (shared_file.h) from `offset` on: the file, and where else this
/// process maps them.
struct FilePages {
  int file = -1;
  Bytes offset;
  std::byte* view = nullptr;
};

/// Throws unless all that `memory` touches is private anonymous memory that may be read and
/// written: Error(usage) where nothing is mapped or it is shared by a window already,
/// Error(unsupported), and Error(resource) where the system does not say what is mapped.
/// Cost: reads /proc/self/maps.
void check_own_memory(std::span<const std::byte> memory);

/// `pages` become those of the file, which gets memory for them. Both begin and end at pages.
/// Throws Error(resource): they hold what they held, but some may be the file's. `unshare_pages` is
/// the way back, and not sure to succeed: it needs memory too.
/// Cost: a copy, in steps; no more than one of them is in memory twice.
void share_pages(std::span<std::byte> pages, const FilePages& with);

/// What becomes of the file's pages when they are not used any more.
enum class Emptied : unsigned char { kKept, kGivenBack };

/// `pages` become private memory again, as far as they are still those of the file: others may have
/// come to these addresses if their owner has freed them. Returns false where the system has no
/// memory for it or does not say what is mapped: then some may still be the file's, which has to
/// keep them.
bool unshare_pages(std::span<std::byte> pages, const FilePages& with, Emptied emptied) noexcept;

}  // namespace peal::transport
