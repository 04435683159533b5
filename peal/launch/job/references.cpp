#include "peal/launch/job/references.h"

#include <cstddef>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::launch {
namespace {

/// A piece of a text with references.
struct Piece {
  enum class Kind : unsigned char { kText, kDollars, kReference };
  Kind kind = Kind::kText;
  std::string_view text;  // of a reference: with $( and )
  std::string name() const { return std::string(text.substr(2, text.size() - 3)); }
};

/// The piece at the beginning of `text`, which is not empty.
Piece front_of(std::string_view text) {
  if (text.starts_with("$$")) return {Piece::Kind::kDollars, text.substr(0, 2)};
  if (text.starts_with("$(")) {
    const std::size_t end = text.find(')');
    if (end != std::string_view::npos) return {Piece::Kind::kReference, text.substr(0, end + 1)};
  }
  const std::size_t next = text.find('$', 1);
  return {Piece::Kind::kText, text.substr(0, next)};
}

/// Replaces the variables of one map by each other.
class Expansion final {
 public:
  Expansion(const std::map<std::string, std::string>& env, const Lookup& outer)
      : env_(env), outer_(outer) {}

  std::optional<std::string> value(const std::string& name) {
    const auto raw = env_.find(name);
    if (raw == env_.end()) return outer_(name);
    const auto known = done_.find(name);
    if (known != done_.end()) return known->second;
    if (!open_.insert(name).second) return std::nullopt;  // a circle
    if (open_.size() > kDeepestReference) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("the variable {}: references $(NAME) are nested more than {} deep",
                              name,
                              kDeepestReference));
    }
    std::string expanded =
        expand_references(raw->second, [this](const std::string& inner) { return value(inner); });
    open_.erase(name);
    return done_[name] = std::move(expanded);
  }

 private:
  const std::map<std::string, std::string>& env_;
  const Lookup& outer_;
  std::map<std::string, std::string> done_{};
  std::set<std::string> open_{};
};

}  // namespace

std::string expand_references(std::string_view text, const Lookup& lookup) {
  std::string result;
  while (!text.empty()) {
    const Piece piece = front_of(text);
    text.remove_prefix(piece.text.size());
    if (piece.kind == Piece::Kind::kDollars) {
      result += '$';
    } else if (piece.kind == Piece::Kind::kReference) {
      result += lookup(piece.name()).value_or(std::string(piece.text));
    } else {
      result += piece.text;
    }
    if (result.size() > kLongestExpansion) {
      throw Error(ErrorKind::kUsage, "a value with its references $(NAME) is longer than 1 MiB");
    }
  }
  return result;
}

std::string escape_references(std::string_view text,
                              const std::function<bool(const std::string& name)>& is_later) {
  std::string result;
  while (!text.empty()) {
    const Piece piece = front_of(text);
    text.remove_prefix(piece.text.size());
    if (piece.kind == Piece::Kind::kReference && is_later(piece.name())) result += '$';
    result += piece.text;
  }
  return result;
}

std::map<std::string, std::string> expand_variables(const std::map<std::string, std::string>& env,
                                                    const Lookup& outer) {
  Expansion expansion(env, outer);
  std::map<std::string, std::string> result;
  for (const auto& [name, value] : env) result[name] = expansion.value(name).value_or(value);
  return result;
}

}  // namespace peal::launch
