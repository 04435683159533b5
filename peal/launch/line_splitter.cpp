#include "peal/launch/line_splitter.h"

namespace peal::launch {

void LineSplitter::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (last_ == Last::kReturn) {
      // Only now is it known whether the return belongs to a "\r\n".
      last_ = Last::kOther;
      const bool newline = bytes.front() == '\n';
      complete(newline ? LineEnd::kNewline : LineEnd::kReturn, {});
      if (newline) bytes.remove_prefix(1);
      continue;
    }
    const auto end = bytes.find_first_of("\r\n");
    if (end == std::string_view::npos) return begin_more(bytes);
    if (bytes[end] == '\n') {
      complete(LineEnd::kNewline, bytes.substr(0, end));
    } else {
      begin_more(bytes.substr(0, end));
      last_ = Last::kReturn;
    }
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::finish() {
  if (!begun_.empty()) complete(LineEnd::kNewline, {});
}

void LineSplitter::begin_more(std::string_view bytes) {
  while (begun_.size() + bytes.size() > kLongestLine) {
    const auto fits = kLongestLine - begun_.size();
    begun_ += bytes.substr(0, fits);
    take_(LineEnd::kNewline, begun_);
    begun_.clear();
    bytes.remove_prefix(fits);
  }
  begun_ += bytes;
}

void LineSplitter::complete(LineEnd end, std::string_view rest) {
  if (begun_.size() + rest.size() > kLongestLine) {
    begin_more(rest);
    rest = {};
  }
  if (begun_.empty()) {
    if (end == LineEnd::kNewline || !rest.empty()) take_(end, rest);
    return;
  }
  begun_ += rest;
  take_(end, begun_);
  begun_.clear();
}

}  // namespace peal::launch
