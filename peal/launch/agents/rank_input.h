// The standard input of one rank on another host: the launcher's end, which reads, and the agent's
// end, which writes. The launcher sends the next bytes when the agent has written the previous
// ones. So at most kMostInput bytes wait, besides those in the pipe of the rank. Used by
// agent_guard.cpp and agent.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "peal/launch/agents/agent_protocol.h"
#include "peal/system/fd.h"

namespace peal::launch::agents {

/// The bytes of one kInput.
inline constexpr std::size_t kMostInput = 1 << 16;

/// The launcher's end.
class InputSource final {
 public:
  /// `fd`: a file, a pipe, a socket or a terminal, which must stay open. Its flags do not change,
  /// because other processes may share it.
  explicit InputSource(int fd);

  /// The descriptor that `try_next` waits for; -1: none.
  int waits_for() const;
  /// The bytes of the next kInput, empty at the end; nothing if none can be read or sent now. In
  /// the background of a terminal nothing is read, because the kernel would stop the launcher.
  std::optional<std::string> try_next();
  /// The agent has answered by kInputTaken.
  void take_answer() { is_answered_ = true; }
  void end() { has_ended_ = true; }

 private:
  const Fd own_;
  const int fd_;
  bool is_answered_ = true;
  bool has_ended_ = false;
};

/// The agent's end.
class InputSink final {
 public:
  /// Makes the pipe, and returns the end for the rank. Errors: resource.
  Fd open();
  /// The payload of kInput.
  void take(std::string bytes);
  /// The descriptor that `write_some` waits for; -1: none.
  int waits_for() const { return bytes_.empty() ? -1 : writer_.get(); }
  /// Writes without blocking. Returns the answer to the last kInput when all is written.
  std::optional<FrameKind> write_some();

 private:
  Fd writer_;
  std::string bytes_;
};

}  // namespace peal::launch::agents
