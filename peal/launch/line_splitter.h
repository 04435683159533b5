// Splits the output of a rank into lines. Pure: bytes in, lines out. Called by RankStream.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace peal::launch {

enum class LineEnd : unsigned char {
  kNewline,  // "\n" or "\r\n", or the end of the output, or the line was too long
  kReturn,   // "\r": the next line replaces this one, as in progress bars
};

class LineSplitter final {
 public:
  /// Longer lines are cut, so that a rank that writes no newline cannot fill the memory.
  static constexpr std::size_t kLongestLine = 1 << 20;

  /// `take` gets each line without its end. Empty lines that end in a return are omitted.
  using Take = std::function<void(LineEnd, std::string_view line)>;
  explicit LineSplitter(Take take) : take_(std::move(take)) {}

  /// Cost: copies only lines that are not whole within `bytes`.
  void feed(std::string_view bytes);
  /// The output has ended: an unfinished line counts as a line.
  void finish();
  /// The unfinished line.
  std::string_view unfinished() const { return begun_; }

 private:
  void begin_more(std::string_view bytes);
  void complete(LineEnd end, std::string_view rest);

  Take take_;
  std::string begun_;
  enum class Last : unsigned char { kOther, kReturn } last_ = Last::kOther;
};

}  // namespace peal::launch
