// The only exception of the library. Its kind says what the caller can do about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "peal/base/units.h"

namespace peal {

/// The numbers are part of the wire format: append, never reorder.
enum class ErrorKind : unsigned char {
  kUsage = 0,    // the call or the configuration is wrong: fix the program
  kMismatch,     // ranks disagree about the operation: fix the program
  kPeerLost,     // a rank ended or became unreachable: start the job again
  kTimeout,      // a rank did not come in time: find the missing rank, or wait longer
  kUnsupported,  // a combination without a meaning, or one that this backend cannot do
  kResource,     // memory, descriptors, ports, permissions, damaged files: fix the machine
  kBug,          // peal is wrong: report it
  kAborted,      // a rank ended the group on purpose, by abort() or a signal: nothing to fix
};

/// The number of kinds. If you append a kind, name that kind here.
inline constexpr std::size_t kErrorKinds = static_cast<std::size_t>(ErrorKind::kAborted) + 1;

/// "usage", "mismatch", "peer_lost", "timeout", "unsupported", "resource", "bug", "aborted";
/// "invalid" for other numbers.
std::string_view name_of(ErrorKind kind);

/// The kind with this number on the wire; nothing if the number is unknown.
std::optional<ErrorKind> error_kind_of(std::uint8_t number);

/// Whether the kind means that a rank no longer takes part: peer_lost or aborted.
constexpr bool is_loss(ErrorKind kind) {
  return kind == ErrorKind::kPeerLost || kind == ErrorKind::kAborted;
}

/// What happened to the rank that an error names. The numbers are part of the wire format: append,
/// never reorder.
enum class ErrorCause : std::uint8_t {
  kUnknown = 0,
  kKilled,       // a signal killed its process
  kExited,       // its process exited
  kThrew,        // it left the group because of an exception
  kAborted,      // it called abort()
  kLeft,         // it left the group while other ranks still needed it
  kStopped,      // its process is stopped, by a signal or a debugger
  kUnreachable,  // its host does not answer, or the link to it is broken or damaged
  kMismatch,     // it is in a different operation
  kInterrupted,  // Ctrl-C, or a signal handler on that rank raised an exception
};

/// The number of causes. If you append a cause, name that cause here.
inline constexpr std::size_t kErrorCauses = static_cast<std::size_t>(ErrorCause::kInterrupted) + 1;

/// "unknown", "killed", "exited", "threw", "aborted", "left", "stopped", "unreachable", "mismatch",
/// "interrupted"; "invalid" for other numbers.
std::string_view name_of(ErrorCause cause);

/// The cause with this number on the wire; nothing if the number is unknown.
std::optional<ErrorCause> error_cause_of(std::uint8_t number);

/// The facts in an error's message, as far as they are known at the throw. Programs should read
/// these fields, not the message.
struct ErrorDetails {
  /// The rank that caused the error or that is missing, in the world.
  std::optional<Rank> rank = {};
  std::string host = {};       // of that rank
  std::string operation = {};  // that failed on this rank: "all_reduce #12 (sum of 1000 f32)"
  ErrorCause cause = ErrorCause::kUnknown;
  std::string reason = {};  // for kThrew, kAborted and kInterrupted: the text of the user's program

  friend bool operator==(const ErrorDetails&, const ErrorDetails&) = default;
};

/// `what()` reads "<kind>: <message>". The message says what happened, where, and what to do.
/// Copies share no data, so that each thread can have its own copy.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, ErrorDetails details = {});
  Error(const Error& other);
  Error& operator=(const Error& other);
  ~Error() override = default;

  ErrorKind kind() const { return kind_; }
  /// what() without the kind.
  std::string_view message() const;
  const ErrorDetails& details() const { return details_; }

 private:
  ErrorKind kind_;
  ErrorDetails details_;
};

/// A resource error for a failed system call: "<what>: <strerror(errno)>".
Error system_error(std::string_view what, int error_number);

/// Call in a catch block: converts the caught exception to an Error. An Error stays unchanged,
/// std::bad_alloc and std::system_error become resource, and all others become bug. `during` names
/// the activity.
Error current_error(std::string_view during);

/// The error with `operation` in its details, if they name no operation yet.
Error with_operation(const Error& error, const std::string& operation);

}  // namespace peal
