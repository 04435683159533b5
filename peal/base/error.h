// The one exception of the library. Its kind says what the caller can do about it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace peal {

/// The numbers are part of the wire format: append, never reorder.
enum class ErrorKind : unsigned char {
  kUsage = 0,    // the call or the configuration is wrong: mend the program
  kMismatch,     // ranks disagree about the operation: mend the program
  kPeerLost,     // a rank ended or became unreachable: restart it, or go on without it
  kTimeout,      // somebody did not come in time: look for who is missing, or wait longer
  kUnsupported,  // a combination that has no meaning, or that this backend cannot do
  kResource,     // memory, descriptors, ports, permissions: mend the machine
  kBug,          // peal is wrong: report it
};

inline constexpr std::array kAllErrorKinds = {ErrorKind::kUsage,
                                              ErrorKind::kMismatch,
                                              ErrorKind::kPeerLost,
                                              ErrorKind::kTimeout,
                                              ErrorKind::kUnsupported,
                                              ErrorKind::kResource,
                                              ErrorKind::kBug};

/// "usage", "mismatch", "peer_lost", "timeout", "unsupported", "resource", "bug"; "invalid" for
/// none.
std::string_view name_of(ErrorKind kind);

/// The kind that was sent as this number; nothing where no kind has it.
std::optional<ErrorKind> error_kind_of(std::uint8_t number);

/// `what()` reads "<kind>: <message>", and the message says what happened, where, and what to do.
/// Copies share nothing, so that each thread can have one of its own.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message);
  Error(const Error& other);
  Error& operator=(const Error& other);
  ~Error() override = default;

  ErrorKind kind() const { return kind_; }
  /// what() without the kind.
  std::string_view message() const;

 private:
  ErrorKind kind_;
};

/// A resource error for a failed system call: "<what>: <strerror(errno)>".
Error system_error(std::string_view what, int error_number);

/// In a catch block: what was caught, as an Error. Itself if it is one; resource for want of memory
/// and for what the system refuses; bug for anything else. `during` says what was going on.
Error current_error(std::string_view during);

}  // namespace peal
