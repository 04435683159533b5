#include "peal/train/checkpoint/values.h"

#include "peal/base/error.h"

namespace peal::train {

const std::string& Values::text(const std::string& name) const {
  const auto found = texts.find(name);
  if (found != texts.end()) return found->second;
  throw Error(ErrorKind::kUsage, "there is no value \"" + name + "\"");
}

void Values::refuse(const std::string& name, const std::string& text) {
  throw Error(ErrorKind::kUsage,
              "the value \"" + name + "\" is \"" + text + "\", not a number of the expected type");
}

}  // namespace peal::train
