#include "peal/observe/operation_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/dtype.h"

namespace peal::observe {
namespace {

constexpr std::size_t kNamesShown = 3;

std::string describe_message(const OperationKind& kind, std::uint64_t tag, Elements count) {
  const std::string peer = kind.root == kAnySource ? "any rank" : fmt::format("rank {}", kind.root);
  const auto number = static_cast<std::int32_t>(tag);
  if (number < 0) return "monitored_barrier with " + peer;  // tags of users are not negative
  return fmt::format("{} of {} {} {} {}, tag {}",
                     name_of(kind.operation),
                     count.value,
                     name_of(kind.dtype),
                     kind.operation == Operation::kSend ? "to" : "from",
                     peer,
                     number);
}

}  // namespace

std::string describe(const OperationKind& kind, std::uint64_t sequence, Elements count) {
  if (is_message(kind.operation)) return describe_message(kind, sequence, count);
  std::string name = fmt::format("{} #{}", name_of(kind.operation), sequence);
  if (kind.operation == Operation::kBarrier) return name;
  const std::string op = reduces(kind.operation) ? fmt::format("{} of ", name_of(kind.reduce)) : "";
  const std::string root = has_root(kind.operation) ? fmt::format(", root {}", kind.root) : "";
  return fmt::format("{} ({}{} {}{})", name, op, count.value, name_of(kind.dtype), root);
}

std::string names_text(std::span<const std::string> names) {
  if (names.size() <= kNamesShown) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {}{} more",
                     fmt::join(names.first(kNamesShown), ", "),
                     names.size() == kNames ? "at least " : "",  // the table was full
                     names.size() - kNamesShown);
}

}  // namespace peal::observe
