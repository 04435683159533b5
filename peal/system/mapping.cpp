#include "peal/system/mapping.h"

#include <errno.h>
#include <sys/mman.h>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal {
namespace {

std::span<std::byte> map(Bytes size, int flags, int fd) {
  const auto length = static_cast<std::size_t>(size.value);
  void* const memory =
      ::mmap(nullptr, length, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED) {
    throw system_error(
        fmt::format("cannot map {} bytes of address space (see ulimit -v)", size.value), errno);
  }
  return {static_cast<std::byte*>(memory), length};
}

}  // namespace

Mapping Mapping::anonymous(Bytes size) {
  return Mapping(map(size, MAP_PRIVATE | MAP_ANONYMOUS, -1));
}

Mapping Mapping::of_file(int fd, Bytes size) { return Mapping(map(size, MAP_SHARED, fd)); }

bool can_map(Bytes size) {
  const auto length = static_cast<std::size_t>(size.value);
  void* const memory =
      ::mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory != MAP_FAILED && ::munmap(memory, length) == 0;
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace peal
