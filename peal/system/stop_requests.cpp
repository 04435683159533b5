#include "peal/system/stop_requests.h"

namespace peal {

StopRequests::StopRequests(const std::string& flag) {
  if (!flag.empty()) flag_ = StopFlag::open(flag);
  if (flag_) flag_->watch();
}

StopRequests::~StopRequests() {
  if (flag_ && owner_.is_current()) flag_->unwatch();
}

int StopRequests::signal() const {
  const int noted = signals_.number();
  return noted == 0 && flag_ ? flag_->signal() : noted;
}

bool StopRequests::has_come() const { return signals_.number() != 0 || (flag_ && flag_->is_set()); }

}  // namespace peal
