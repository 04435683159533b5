// The name and the option by which the user has called the launcher. Error texts and the help
// repeat them.
#pragma once

#include <string>

namespace peal::launch {

struct Wording {
  std::string program = "peal run";  // or "horovodrun"
  std::string count = "-n";          // the option for the number of ranks; or "-np"

  /// "peal run -n 2 ./train"
  std::string example() const { return program + " " + count + " 2 ./train"; }
  friend bool operator==(const Wording&, const Wording&) = default;
};

}  // namespace peal::launch
