#include "peal/launch/process_name.h"

#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <string_view>

namespace peal::launch {

ProcessName::ProcessName() {
  std::array<char, 16> name{};
  ::prctl(PR_GET_NAME, name.data());
  name_ = name.data();
  std::ifstream file("/proc/self/cmdline");
  const std::string words((std::istreambuf_iterator<char>(file)), {});
  // The words lie where glibc's program_invocation_name points, unless a program has moved it.
  if (words.c_str() == std::string_view(::program_invocation_name)) words_ = words;
}

void ProcessName::replace(const std::string& name) const {
  ::prctl(PR_SET_NAME, name.c_str());
  if (words_.size() <= name.size()) return;
  char* const begin = ::program_invocation_name;
  std::fill(std::copy(name.begin(), name.end(), begin), begin + words_.size(), '\0');
}

void ProcessName::restore() const {
  ::prctl(PR_SET_NAME, name_.c_str());
  std::copy(words_.begin(), words_.end(), ::program_invocation_name);
}

}  // namespace peal::launch
