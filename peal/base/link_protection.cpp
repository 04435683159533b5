#include "peal/base/link_protection.h"

namespace peal {

std::string_view name_of(LinkProtection protection) {
  switch (protection) {
    case LinkProtection::kPlain:
      return "plain";
    case LinkProtection::kChecked:
      return "checked";
    case LinkProtection::kEncrypted:
      return "encrypted";
  }
  return "invalid";
}

std::string_view settings_of(LinkProtection protection) {
  switch (protection) {
    case LinkProtection::kPlain:
      return "PEAL_TLS=off and PEAL_INTEGRITY=none";
    case LinkProtection::kChecked:
      return "PEAL_TLS=off and PEAL_INTEGRITY=crc";
    case LinkProtection::kEncrypted:
      return "PEAL_TLS=on";
  }
  return "a setting that this version of peal does not know";
}

}  // namespace peal
