// Cuts what a rank writes into lines. Pure: bytes in, lines out. Called by RankStream.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace peal::launch {

enum class LineEnd : unsigned char {
  kNewline,  // "\n" or "\r\n", or the end of the output, or the line was too long
  kReturn,   // "\r": the next line is to be shown in its place, as progress bars do
};

class LineSplitter final {
 public:
  /// Lines longer than this are cut, so that a rank which writes no newline cannot fill the memory.
  static constexpr std::size_t kLongestLine = 1 << 20;

  /// `take` gets each line without its end. Empty lines that end in a return are left out.
  using Take = std::function<void(LineEnd, std::string_view line)>;
  explicit LineSplitter(Take take) : take_(std::move(take)) {}

  /// Cost: copies only what is not a whole line within `bytes`.
  void feed(std::string_view bytes);
  /// The output has ended: what was begun is a line too.
  void finish();
  /// The line that was begun.
  std::string_view unfinished() const { return begun_; }

 private:
  void begin_more(std::string_view bytes);
  void complete(LineEnd end, std::string_view rest);

  Take take_;
  std::string begun_;
  enum class Last : unsigned char { kOther, kReturn } last_ = Last::kOther;
};

}  // namespace peal::launch
