// How the function of a rank has ended, and the file by which the rank tells the caller. Used by
// `peal::spawn`.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "peal/base/error.h"
#include "peal/base/units.h"
#include "peal/system/fd.h"

namespace peal::launch {

/// Whether a rank failed because another rank had failed.
enum class FailedBy : unsigned char { kItself, kAnotherRank };

struct Outcome {
  std::string result{};          // the bytes of the result; empty if the function threw
  std::optional<Error> error{};  // the exception
  FailedBy failed_by = FailedBy::kItself;
};

/// Calls `function(rank)`. An exception that is not an Error becomes an Error with its text and the
/// cause kThrew. The kind of this Error is resource for std::bad_alloc and std::system_error, and
/// aborted for all others. Stack frames of LibTorch are removed from the texts.
///
/// A rank failed because of another rank if its Error reports the loss of a rank, or names another
/// rank as the cause. A mismatch or a timeout does not count, because ranks may name each other.
/// Such an Error is also found below an exception that std::throw_with_nested has made.
Outcome outcome_of(const std::function<std::string(Rank)>& function, Rank rank);

/// Memory that the caller shares with one rank. What a killed rank has written is kept.
class OutcomeFile final {
 public:
  /// Errors: resource.
  OutcomeFile();

  /// Errors: resource.
  void write(const Outcome& outcome) const;
  /// Nothing if no whole outcome was written.
  std::optional<Outcome> read() const;

 private:
  Fd file_;
};

}  // namespace peal::launch
