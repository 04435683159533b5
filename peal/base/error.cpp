#include "peal/base/error.h"

#include <system_error>
#include <utility>

namespace peal {

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kMismatch:
      return "mismatch";
    case ErrorKind::kPeerLost:
      return "peer_lost";
    case ErrorKind::kTimeout:
      return "timeout";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kResource:
      return "resource";
    case ErrorKind::kBug:
      return "bug";
    case ErrorKind::kAborted:
      return "aborted";
  }
  return "invalid";
}

std::optional<ErrorKind> error_kind_of(std::uint8_t number) {
  if (number >= kAllErrorKinds.size()) return std::nullopt;
  return kAllErrorKinds[number];
}

std::string_view name_of(ErrorCause cause) {
  switch (cause) {
    case ErrorCause::kUnknown:
      return "unknown";
    case ErrorCause::kKilled:
      return "killed";
    case ErrorCause::kExited:
      return "exited";
    case ErrorCause::kThrew:
      return "threw";
    case ErrorCause::kAborted:
      return "aborted";
    case ErrorCause::kLeft:
      return "left";
    case ErrorCause::kStopped:
      return "stopped";
    case ErrorCause::kUnreachable:
      return "unreachable";
    case ErrorCause::kMismatch:
      return "mismatch";
    case ErrorCause::kInterrupted:
      return "interrupted";
  }
  return "invalid";
}

std::optional<ErrorCause> error_cause_of(std::uint8_t number) {
  if (number >= kAllErrorCauses.size()) return std::nullopt;
  return kAllErrorCauses[number];
}

Error::Error(ErrorKind kind, const std::string& message, ErrorDetails details)
    : std::runtime_error(std::string(name_of(kind)) + ": " + message),
      kind_(kind),
      details_(std::move(details)) {}

Error::Error(const Error& other)
    : std::runtime_error(std::string(other.what())), kind_(other.kind_), details_(other.details_) {}

Error& Error::operator=(const Error& other) {
  if (this == &other) return *this;
  std::runtime_error::operator=(std::runtime_error(std::string(other.what())));
  kind_ = other.kind_;
  details_ = other.details_;
  return *this;
}

std::string_view Error::message() const {
  return std::string_view(what()).substr(name_of(kind_).size() + 2);
}

Error system_error(std::string_view what, int error_number) {
  return Error(ErrorKind::kResource,
               std::string(what) + ": " + std::generic_category().message(error_number));
}

Error current_error(std::string_view during) {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return Error(ErrorKind::kResource, "no memory left during " + std::string(during));
  } catch (const std::system_error& error) {
    return Error(ErrorKind::kResource, std::string(during) + ": " + error.what());
  } catch (const std::exception& exception) {
    return Error(ErrorKind::kBug, std::string(during) + " threw: " + exception.what());
  } catch (...) {
    return Error(ErrorKind::kBug,
                 std::string(during) + " threw something that is not an exception");
  }
}

}  // namespace peal
