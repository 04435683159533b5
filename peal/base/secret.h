// A job's secret in memory: no core file contains it, and no part of it stays in freed memory. Used
// wherever the secret is held for longer than a call.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace peal {

/// Copies share one text, which never changes. The text has a separate mapping, which core files
/// omit (MADV_DONTDUMP). The text is overwritten before the mapping ends.
/// Limits: a process that may read this process's memory (a debugger, root) finds the text. A
///   forked child has a copy of the mapping. The mapping may be swapped out. If the system does not
///   know MADV_DONTDUMP, a core file contains the text; that is not an error. A caller that copies
///   `text` must wipe the copy. With lazy binding, the dynamic linker saves the vector registers on
///   the stack at the first call of a function, perhaps with a piece of a text that was just
///   copied. Programs linked with `-z now` do not have this problem.
/// Threads: as std::shared_ptr.
/// Cost: a mapping for each text, none for a copy or an empty text.
class Secret final {
 public:
  /// No secret.
  Secret() = default;
  /// Errors: resource (no memory).
  explicit Secret(std::string_view text);

  bool empty() const { return page_ == nullptr; }
  /// Valid while this object or a copy lives.
  std::string_view text() const;

  /// Compares the texts, in a time that depends on them: do not use it on data of strangers.
  friend bool operator==(const Secret& a, const Secret& b);

 private:
  class Page;
  std::shared_ptr<const Page> page_;
};

/// Overwrites the characters; the optimizer cannot remove this. The string is empty afterwards.
void wipe(std::string& text) noexcept;

/// Wipes a string that holds a secret at the end of the scope. The string must not grow meanwhile,
/// because its old memory would keep the text.
class Wiped final {
 public:
  explicit Wiped(std::string& text) noexcept : text_(text) {}
  ~Wiped() { wipe(text_); }
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;

 private:
  std::string& text_;
};

}  // namespace peal
