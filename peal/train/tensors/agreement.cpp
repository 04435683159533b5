#include "peal/train/tensors/agreement.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "peal/base/error.h"
#include "peal/base/split.h"
#include "peal/train/tensors/texts.h"

namespace peal::train {
namespace {

constexpr std::int64_t kAgreed = std::numeric_limits<std::int64_t>::max();

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

/// The inverse of `joined`.
std::vector<std::string> lines_of(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '\n');
  return {parts.begin(), parts.end() - 1};  // each line has its '\n', so the last part is empty
}

std::string line_or_nothing(const std::vector<std::string>& lines, std::size_t index) {
  return index < lines.size() ? lines[index] : "nothing";
}

}  // namespace

void require_agreement(ProcessGroup& group,
                       const Subject& subject,
                       const std::vector<std::string>& lines,
                       Timeout timeout) {
  const std::vector<std::string> reference =
      lines_of(broadcast_text(group, joined(lines), 0, timeout));
  const auto differ = std::mismatch(lines.begin(), lines.end(), reference.begin(), reference.end());
  const bool same = differ.first == lines.end() && differ.second == reference.end();

  // The first line that differs on any rank, and the smallest rank with that difference.
  const std::int64_t line = differ.second - reference.begin();
  std::vector<std::int64_t> first = {same ? kAgreed : line * group.size() + group.rank()};
  group.all_reduce(first, {.op = ReduceOp::kMin, .timeout = timeout});
  if (first[0] == kAgreed) return;

  const auto other = static_cast<Rank>(first[0] % group.size());
  const auto index = static_cast<std::size_t>(first[0] / group.size());
  const std::string theirs = broadcast_text(group, line_or_nothing(lines, index), other, timeout);
  throw Error(ErrorKind::kMismatch,
              "ranks do not have the same " + std::string(subject.what) + ": number " +
                  std::to_string(index) + " is " + line_or_nothing(reference, index) +
                  " on rank 0 and " + theirs + " on rank " + std::to_string(other) + "; " +
                  std::string(subject.advice));
}

}  // namespace peal::train
