#include "peal/transport/window/own_pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/system/shared_file.h"

namespace peal::transport {
namespace {

/// Pages move in steps, so that at most one step of a large piece is in memory twice.
constexpr std::size_t kStep = 16 << 20;

std::uintptr_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

/// A line of /proc/self/maps, cut to the requested range.
struct Area {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::string rights;  // "rw-p"
  std::uint64_t offset = 0;
  std::uint64_t inode = 0;
  std::string name;

  bool is_anonymous() const {
    return inode == 0 && (name.empty() || name == "[heap]" || name.starts_with("[anon"));
  }
  bool is_shared_by_peal() const { return name.starts_with("/memfd:peal "); }
};

/// The areas that are mapped in [begin, end), in order. Throws Error(resource) if they cannot be
/// read, because the process has no free descriptor, or the system no free memory: unread areas
/// must not count as unmapped.
std::vector<Area> areas_in(std::uintptr_t begin, std::uintptr_t end) {
  constexpr const char* kWhat = "cannot read what memory is mapped, in /proc/self/maps";
  std::vector<Area> areas;
  std::ifstream maps("/proc/self/maps");
  if (!maps) throw system_error(kWhat, errno);
  for (std::string line; std::getline(maps, line);) {
    Area area;
    std::array<char, 5> rights{};
    int name_at = 0;
    if (std::sscanf(line.c_str(),
                    "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %*s %" SCNu64 " %n",
                    &area.begin,
                    &area.end,
                    rights.data(),
                    &area.offset,
                    &area.inode,
                    &name_at) != 5 ||
        area.end <= begin) {
      continue;
    }
    if (area.begin >= end) break;
    if (area.begin < begin) {
      area.offset += begin - area.begin;
      area.begin = begin;
    }
    area.end = std::min(area.end, end);
    area.rights = rights.data();
    area.name = line.substr(static_cast<std::size_t>(name_at));
    areas.push_back(std::move(area));
  }
  if (maps.bad()) throw system_error(kWhat, errno);
  return areas;
}

Error unmapped(std::uintptr_t at) {
  return Error(ErrorKind::kUsage,
               fmt::format("cannot register the memory at {:#x}: nothing is mapped there", at));
}

void check(const Area& area) {
  if (area.is_shared_by_peal()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the memory at {:#x} is shared already: it is registered with this "
                            "group or another, or a group has allocated it",
                            area.begin));
  }
  if (area.rights == "rw-p" && area.is_anonymous()) return;
  throw Error(
      ErrorKind::kUnsupported,
      fmt::format("the memory at {:#x} ({} {}) cannot be registered: it must be private memory "
                  "that is readable, writable and not from a file, like that of malloc; use memory "
                  "of ProcessGroup::allocate",
                  area.begin,
                  area.rights,
                  area.name.empty() ? "without a name" : area.name));
}

/// Maps the file's pages over the existing ones.
bool map_over(std::span<std::byte> pages, const FilePages& with) {
  return ::mmap(pages.data(),
                pages.size(),
                PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_FIXED | MAP_NORESERVE | MAP_POPULATE,
                with.file,
                with.offset.value) != MAP_FAILED;
}

FilePages further(const FilePages& pages, std::size_t by) {
  return {pages.file, pages.offset + Bytes(static_cast<std::int64_t>(by)), pages.view + by};
}

/// Copies `area`, which belongs to the file, to new private pages, and moves these to its place.
bool make_private(std::span<std::byte> area, const FilePages& with, Emptied emptied) {
  void* const fresh = ::mmap(nullptr,
                             area.size(),
                             PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                             -1,
                             0);
  if (fresh == MAP_FAILED) return false;
  auto* const from = static_cast<std::byte*>(fresh);
  for (std::size_t done = 0; done < area.size(); done += kStep) {
    const std::size_t size = std::min(kStep, area.size() - done);
    std::memcpy(from + done, area.data() + done, size);
    if (::mremap(from + done, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, area.data() + done) ==
        MAP_FAILED) {
      ::munmap(from + done, area.size() - done);
      return false;
    }
    if (emptied == Emptied::kKept) continue;
    const Bytes begin = further(with, done).offset;
    empty_shared_file(with.file, begin, begin + Bytes(static_cast<std::int64_t>(size)));
  }
  return true;
}

}  // namespace

Bytes page_size() { return Bytes(::sysconf(_SC_PAGESIZE)); }

std::span<std::byte> whole_pages_in(std::span<std::byte> memory) {
  const auto page = static_cast<std::uintptr_t>(page_size().value);
  const std::uintptr_t begin = (address_of(memory.data()) + page - 1) / page * page;
  const std::uintptr_t end = (address_of(memory.data()) + memory.size()) / page * page;
  if (end <= begin) return {};
  return memory.subspan(begin - address_of(memory.data()), end - begin);
}

void check_own_memory(std::span<const std::byte> memory) {
  std::uintptr_t at = address_of(memory.data());
  const std::uintptr_t end = at + memory.size();
  for (const Area& area : areas_in(at, end)) {
    if (area.begin != at) break;
    check(area);
    at = area.end;
  }
  if (at != end) throw unmapped(at);
}

void share_pages(std::span<std::byte> pages, const FilePages& with) {
  for (std::size_t done = 0; done < pages.size(); done += kStep) {
    const std::span<std::byte> step = pages.subspan(done, std::min(kStep, pages.size() - done));
    const FilePages target = further(with, done);
    grow_shared_file(with.file, target.offset, further(target, step.size()).offset);
    std::memcpy(target.view, step.data(), step.size());
    if (!map_over(step, target)) {
      throw system_error(fmt::format("cannot register {} bytes of memory", pages.size()), errno);
    }
  }
}

bool unshare_pages(std::span<std::byte> pages, const FilePages& with, Emptied emptied) noexcept {
  try {
    struct stat file {};
    if (::fstat(with.file, &file) != 0) return false;
    const std::uintptr_t begin = address_of(pages.data());
    bool all = true;
    for (const Area& area : areas_in(begin, begin + pages.size())) {
      const std::size_t from = area.begin - begin;
      const FilePages part = further(with, from);
      if (area.inode != file.st_ino || !area.is_shared_by_peal() ||
          area.offset != static_cast<std::uint64_t>(part.offset.value)) {
        continue;
      }
      all &= make_private(pages.subspan(from, area.end - area.begin), part, emptied);
    }
    return all;
  } catch (const std::exception&) {
    return false;  // the mapped areas are unknown
  }
}

}  // namespace peal::transport
