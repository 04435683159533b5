#include "peal/launch/outcome.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "peal/base/error_bytes.h"
#include "peal/base/serialize.h"
#include "peal/base/stack_frames.h"
#include "peal/system/file_size.h"
#include "peal/system/private_folder.h"
#include "peal/system/shared_file.h"

namespace peal::launch {
namespace {

constexpr std::string_view kWhatFor = "the result of a rank";

enum class Tag : std::uint8_t { kReturned = 1, kThrew, kThrewAfterAnother };

/// Whether the error of rank `self` says that another rank has failed.
bool blames_another(const Error& error, Rank self) {
  const std::optional<Rank>& cause = error.details().rank;
  if (is_loss(error.kind())) return cause != self;
  const bool ranks_may_blame_each_other =
      error.kind() == ErrorKind::kMismatch || error.kind() == ErrorKind::kTimeout;
  return !ranks_may_blame_each_other && cause.value_or(self) != self;
}

/// Whether an error of another rank caused the exception.
FailedBy failed_by(const std::exception& exception, Rank rank) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) {
    if (blames_another(*error, rank)) return FailedBy::kAnotherRank;
  }
  try {
    std::rethrow_if_nested(exception);
  } catch (const std::exception& inner) {
    return failed_by(inner, rank);
  } catch (...) {
    // An exception of another type does not report the error of a rank.
  }
  return FailedBy::kItself;
}

Error thrown_error(ErrorKind kind, Rank rank, std::string_view what) {
  const std::string text = without_stack_frames(what);
  return Error(kind, text, {.rank = rank, .cause = ErrorCause::kThrew, .reason = text});
}

/// peal's own errors may quote an exception of LibTorch.
Error without_frames_of_torch(const Error& error) {
  ErrorDetails details = error.details();
  details.reason = without_stack_frames(details.reason);
  return Error(error.kind(), without_stack_frames(error.message()), std::move(details));
}

/// The kind for an exception of the program: as if the rank had called abort() with its text.
ErrorKind kind_of(const std::exception& exception) {
  const bool is_resource = dynamic_cast<const std::bad_alloc*>(&exception) != nullptr ||
                           dynamic_cast<const std::system_error*>(&exception) != nullptr;
  return is_resource ? ErrorKind::kResource : ErrorKind::kAborted;
}

Fd make_outcome_file() {
  if (!why_no_shared_files()) return make_shared_file("peal outcome", 0_B);
  const auto folder = folder_of_the_system();
  Fd file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file) throw system_error("cannot make a file in " + folder.string(), errno);
  return file;
}

std::string bytes_of_outcome(const Outcome& outcome) {
  ByteWriter writer;
  if (!outcome.error) {
    writer.put_u8(static_cast<std::uint8_t>(Tag::kReturned)).put_u64(outcome.result.size());
    writer.put_raw(outcome.result);
  } else {
    const bool itself = outcome.failed_by == FailedBy::kItself;
    writer.put_u8(static_cast<std::uint8_t>(itself ? Tag::kThrew : Tag::kThrewAfterAnother));
    put(writer, *outcome.error);
  }
  return std::move(writer).take();
}

}  // namespace

Outcome outcome_of(const std::function<std::string(Rank)>& function, Rank rank) {
  try {
    return {.result = function(rank)};
  } catch (const Error& error) {
    return {.error = without_frames_of_torch(error), .failed_by = failed_by(error, rank)};
  } catch (const std::exception& exception) {
    return {.error = thrown_error(kind_of(exception), rank, exception.what()),
            .failed_by = failed_by(exception, rank)};
  } catch (...) {
    return {.error = thrown_error(
                ErrorKind::kAborted, rank, "an exception that is not a std::exception")};
  }
}

OutcomeFile::OutcomeFile() : file_(make_outcome_file()) {}

void OutcomeFile::write(const Outcome& outcome) const {
  const std::string bytes = bytes_of_outcome(outcome);
  check_file_size(Bytes(static_cast<std::int64_t>(bytes.size())), kWhatFor);
  for (std::size_t done = 0; done < bytes.size();) {
    const auto written =
        ::pwrite(file_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error("cannot store the result of a rank", errno);
    done += static_cast<std::size_t>(written);
  }
}

std::optional<Outcome> OutcomeFile::read() const {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0 || status.st_size == 0) return std::nullopt;
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const auto got =
        ::pread(file_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    done += static_cast<std::size_t>(got);
  }
  try {
    ByteReader reader(bytes, "outcome of a rank");
    const auto tag = static_cast<Tag>(reader.get_u8());
    if (tag == Tag::kReturned) {
      const auto size = static_cast<std::int64_t>(reader.get_u64());
      return Outcome{.result = std::string(reader.get_raw(Bytes(size)))};
    }
    return Outcome{.error = get_error(reader),
                   .failed_by = tag == Tag::kThrew ? FailedBy::kItself : FailedBy::kAnotherRank};
  } catch (const Error&) {
    return std::nullopt;  // the rank was killed while it wrote
  }
}

}  // namespace peal::launch
