// A job's secret in memory: it is in no core file, and nothing of it stays in memory that was
// freed. Used wherever the secret is held for longer than a call.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace peal {

/// Copies share one text, which never changes. The text lies in a mapping of its own that core
/// files leave out (MADV_DONTDUMP). It is overwritten before the mapping ends.
/// Limits: a process that may read this one's memory (a debugger, root) finds the text. So does a
///   forked child, which has a copy of the mapping. The mapping may be swapped out. If the system
///   does not know MADV_DONTDUMP, a core file holds the text; that is not an error. Copies that a
///   caller makes of `text` are the caller's to wipe. Where the linker binds functions at their
///   first call, it saves the vector registers on the stack, and with them perhaps a piece of a
///   text that was just copied; programs linked with `-z now` do not.
/// Threads: as std::shared_ptr. Cost: a mapping for each text, none for a copy or an empty one.
class Secret final {
 public:
  /// No secret.
  Secret() = default;
  /// Errors: resource (no memory).
  explicit Secret(std::string_view text);

  bool empty() const { return page_ == nullptr; }
  /// Valid while this or a copy lives.
  std::string_view text() const;

  /// Whether the texts are equal, in a time that depends on them: not for what a stranger sends.
  friend bool operator==(const Secret& a, const Secret& b);

 private:
  class Page;
  std::shared_ptr<const Page> page_;
};

/// Overwrites the characters, which no optimization leaves out. The string is empty afterwards.
void wipe(std::string& text) noexcept;

/// Wipes a string at the end of the scope, for a text that has held a secret. The string must not
/// grow meanwhile: its former memory would keep the text.
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
