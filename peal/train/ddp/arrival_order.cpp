#include "peal/train/ddp/arrival_order.h"

#include <utility>

namespace peal::train {

void ArrivalOrder::end_pass() {
  if (now_.size() != gradients_) return;
  if (now_ == before_ && learned_ != now_) learned_ = now_;
  std::swap(before_, now_);
}

}  // namespace peal::train
