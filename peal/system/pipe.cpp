#include "peal/system/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "peal/base/error.h"

namespace peal {

Pipe make_pipe() {
  std::optional<Pipe> pipe = try_make_pipe();
  if (!pipe) throw system_error("cannot make a pipe", errno);
  return std::move(*pipe);
}

std::optional<Pipe> try_make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace peal
