#include "peal/bench/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::bench {

SharedFile::SharedFile(const char* name, Bytes size) : fd_(::memfd_create(name, MFD_CLOEXEC)) {
  if (!fd_ || ::ftruncate(fd_.get(), size.value) != 0) {
    throw system_error("cannot make shared memory (memfd_create)", errno);
  }
}

std::string SharedFile::path() const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), fd_.get());
}

Mapping::Mapping(const std::string& path, Bytes size) : size_(size) {
  const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat file {};
  if (!fd || ::fstat(fd.get(), &file) != 0) throw system_error("cannot open " + path, errno);
  if (file.st_size < size.value && ::ftruncate(fd.get(), size.value) != 0) {
    throw system_error("cannot make shared memory larger", errno);
  }
  const auto length = static_cast<std::size_t>(size.value);
  void* const at = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) throw system_error("cannot map shared memory", errno);
  data_ = static_cast<std::byte*>(at);
  ::madvise(at, length, MADV_HUGEPAGE);  // fewer misses of the TLB where the system has them
}

Mapping::~Mapping() { ::munmap(data_, static_cast<std::size_t>(size_.value)); }

}  // namespace peal::bench
