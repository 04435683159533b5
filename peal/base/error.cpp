#include "peal/base/error.h"

#include <array>
#include <system_error>
#include <utility>

namespace peal {

namespace {

// In the order of the enums: the number is the index.
constexpr auto kKindNames = std::to_array<std::string_view>(
    {"usage", "mismatch", "peer_lost", "timeout", "unsupported", "resource", "bug", "aborted"});
constexpr auto kCauseNames = std::to_array<std::string_view>({"unknown",
                                                              "killed",
                                                              "exited",
                                                              "threw",
                                                              "aborted",
                                                              "left",
                                                              "stopped",
                                                              "unreachable",
                                                              "mismatch",
                                                              "interrupted"});
static_assert(kKindNames.size() == kErrorKinds && kCauseNames.size() == kErrorCauses);

template <std::size_t N>
std::string_view name_at(const std::array<std::string_view, N>& names, std::size_t number) {
  return number < N ? names[number] : "invalid";
}

}  // namespace

std::string_view name_of(ErrorKind kind) {
  return name_at(kKindNames, static_cast<std::size_t>(kind));
}

std::string_view name_of(ErrorCause cause) {
  return name_at(kCauseNames, static_cast<std::size_t>(cause));
}

std::optional<ErrorKind> error_kind_of(std::uint8_t number) {
  return number < kErrorKinds ? std::optional(ErrorKind{number}) : std::nullopt;
}

std::optional<ErrorCause> error_cause_of(std::uint8_t number) {
  return number < kErrorCauses ? std::optional(ErrorCause{number}) : std::nullopt;
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

Error with_operation(const Error& error, const std::string& operation) {
  ErrorDetails details = error.details();
  if (details.operation.empty()) details.operation = operation;
  return Error(error.kind(), std::string(error.message()), std::move(details));
}

}  // namespace peal
