#include "peal/train/tensors/finishing_work.h"

#include <exception>
#include <mutex>
#include <utility>

namespace peal::train {
namespace {

class FinishingWork final : public Work {
 public:
  FinishingWork(WorkPtr work, std::function<void()> finish)
      : work_(std::move(work)), finish_(std::move(finish)) {}

  void wait(Timeout timeout) override {
    work_->wait(timeout);
    std::call_once(finished_, finish_);
  }

  bool is_completed() const override { return work_->is_completed(); }
  void when_completed(std::function<void()> then) override {
    work_->when_completed(std::move(then));
  }
  std::exception_ptr exception() const override { return work_->exception(); }
  Rank source() const override { return work_->source(); }

 private:
  WorkPtr work_;
  std::function<void()> finish_;
  std::once_flag finished_;
};

}  // namespace

WorkPtr finish_with(WorkPtr work, std::function<void()> finish) {
  return std::make_shared<FinishingWork>(std::move(work), std::move(finish));
}

}  // namespace peal::train
