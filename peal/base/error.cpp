#include "peal/base/error.h"

#include <system_error>

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
  }
  return "invalid";
}

std::optional<ErrorKind> error_kind_of(std::uint8_t number) {
  if (number >= kAllErrorKinds.size()) return std::nullopt;
  return kAllErrorKinds[number];
}

Error::Error(ErrorKind kind, const std::string& message)
    : std::runtime_error(std::string(name_of(kind)) + ": " + message), kind_(kind) {}

Error::Error(const Error& other)
    : std::runtime_error(std::string(other.what())), kind_(other.kind_) {}

Error& Error::operator=(const Error& other) {
  if (this == &other) return *this;
  std::runtime_error::operator=(std::runtime_error(std::string(other.what())));
  kind_ = other.kind_;
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
    return Error(ErrorKind::kBug, std::string(during) + " threw what is no exception");
  }
}

}  // namespace peal
