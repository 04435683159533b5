// References to variables, as in Kubernetes and Vertex AI: $(NAME). A pool's command, its
// args and the values of its variables may contain them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace peal::launch {

/// Limits, so that variables which repeat each other cannot take all memory.
inline constexpr std::size_t kLongestExpansion = 1 << 20;  // bytes of a text
inline constexpr int kDeepestReference = 50;

/// The value of a variable; nothing if it is not set.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

/// `text` with each $(NAME) replaced by its value. An unknown name stays as it is. $$ stands for $,
/// so that $$(NAME) is not replaced. Errors: usage, for a result that is too long.
std::string expand_references(std::string_view text, const Lookup& lookup);

/// `text` with $$(NAME) for each reference $(NAME) for which `is_later` returns true. Such a
/// variable is set after the variable with this text, so the service does not replace the
/// reference.
std::string escape_references(std::string_view text,
                              const std::function<bool(const std::string& name)>& is_later);

/// The variables with all references replaced, by other variables of the map or by `outer`.
/// A reference in a circle stays as it is. Errors: usage, for more than the limits.
std::map<std::string, std::string> expand_variables(const std::map<std::string, std::string>& env,
                                                    const Lookup& outer);

}  // namespace peal::launch
