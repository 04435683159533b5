#include "peal/cli/say.h"

#include <cstdio>

namespace peal::cli {

void say(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

void say_notices(std::span<const std::string> notices) {
  for (const std::string& notice : notices) say("peal: " + notice + "\n");
}

}  // namespace peal::cli
