#include "peal/launch/kubernetes/names.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "peal/base/fnv.h"

namespace peal::launch::kubernetes {
namespace {

constexpr std::string_view kDigits = "0123456789abcdefghijklmnopqrstuv";
constexpr std::size_t kHashLength = 10;              // of five bits each
constexpr std::size_t kEndLength = kHashLength + 2;  // "-x" before the hash
constexpr std::size_t kLongestPodBase = 58;          // five characters of Kubernetes follow
constexpr std::size_t kSeparators = 3;               // job-role-index-

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool ends_like_a_changed_name(std::string_view text) {
  if (text.size() < kEndLength) return false;
  const std::string_view end = text.substr(text.size() - kEndLength);
  return end.starts_with("-x") && std::ranges::all_of(end.substr(2), [](char c) {
           return kDigits.find(c) != std::string_view::npos;
         });
}

bool is_safe(std::string_view text, std::size_t limit) {
  return !text.empty() && text.size() <= limit && is_letter(text.front()) && text.back() != '-' &&
         std::ranges::all_of(text,
                             [](char c) { return is_letter(c) || is_digit(c) || c == '-'; }) &&
         !ends_like_a_changed_name(text);
}

std::string end_of_changed_name(std::string_view text) {
  std::uint64_t bits = fnv(text) >> (64 - kHashLength * 5);
  std::string end = "-x";
  for (std::size_t i = 0; i < kHashLength; ++i, bits >>= 5) end += kDigits[bits % 32];
  return end;
}

/// The text with only safe characters, without a "-" at its ends or beside another.
std::string readable_part(std::string_view text, std::size_t limit) {
  std::string part;
  for (const char c : text) {
    const char next = lower(c);
    if (is_letter(next) || is_digit(next)) {
      part += next;
    } else if (!part.empty() && part.back() != '-') {
      part += '-';
    }
  }
  if (part.empty() || !is_letter(part.front())) part.insert(0, "j");
  part.resize(std::min(part.size(), limit));
  while (part.back() == '-') part.pop_back();  // ends at the letter in front
  return part;
}

}  // namespace

std::string safe_name(std::string_view text, std::size_t limit) {
  if (is_safe(text, limit)) return std::string(text);
  return readable_part(text, limit - kEndLength) + end_of_changed_name(text);
}

std::string job_name(std::string_view id) { return safe_name(id, kLongestJobName); }

std::string role_job_name(std::string_view id, std::string_view role, int nodes) {
  const std::size_t digits = fmt::format("{}", nodes - 1).size();
  const std::size_t limit = kLongestPodBase - kLongestJobName - kSeparators - digits;
  return fmt::format("{}-{}", job_name(id), safe_name(role, limit));
}

std::string host_name(std::string_view id, std::string_view role, int nodes, int index) {
  return fmt::format("{}-{}.{}", role_job_name(id, role, nodes), index, job_name(id));
}

}  // namespace peal::launch::kubernetes
