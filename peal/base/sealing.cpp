#include "peal/base/sealing.h"

namespace peal {

std::string_view name_of(Sealing sealing) {
  switch (sealing) {
    case Sealing::kPlain:
      return "plain";
    case Sealing::kChecked:
      return "checked";
    case Sealing::kEncrypted:
      return "encrypted";
  }
  return "invalid";
}

std::string_view settings_of(Sealing sealing) {
  switch (sealing) {
    case Sealing::kPlain:
      return "PEAL_TLS=off and PEAL_INTEGRITY=none";
    case Sealing::kChecked:
      return "PEAL_TLS=off and PEAL_INTEGRITY=crc";
    case Sealing::kEncrypted:
      return "PEAL_TLS=on";
  }
  return "a setting that this version of peal does not know";
}

}  // namespace peal
