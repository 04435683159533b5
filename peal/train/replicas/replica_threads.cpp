#include "peal/train/replicas/replica_threads.h"

#include <ATen/Parallel.h>

#include <cstddef>
#include <cstdint>

#include "peal/base/clock.h"
#include "peal/system/thread.h"

namespace peal::train {
namespace {

const Deadline kNever{TimePoint::max()};

}  // namespace

ReplicaThreads::ReplicaThreads(int count, int intra_op) : thrown_(static_cast<std::size_t>(count)) {
  const int before = at::get_num_threads();
  round_.with([&](Round& round) { round.left = count; });
  try {
    for (int i = 0; i < count; ++i) {
      threads_.push_back(start_thread([this, i, intra_op] { work(i, intra_op); }));
    }
  } catch (...) {
    stop();
    throw;
  }
  round_.wait(
      kNever, [](const Round& round) { return round.left == 0; }, [](Round&) {});
  // LibTorch keeps the last number as the default of later threads.
  at::set_num_threads(before);
}

ReplicaThreads::~ReplicaThreads() { stop(); }

void ReplicaThreads::stop() {
  round_.update([](Round& round) { round.over = true; });
  for (std::thread& thread : threads_) thread.join();
}

std::vector<std::exception_ptr> ReplicaThreads::run(int used,
                                                    const std::function<void(int)>& task) {
  round_.update([&](Round& round) {
    ++round.number;
    round.used = round.left = used;
    round.task = &task;
  });
  round_.wait(
      kNever, [](const Round& round) { return round.left == 0; }, [](Round&) {});
  std::vector<std::exception_ptr> thrown(thrown_.size());
  thrown.swap(thrown_);
  return thrown;
}

void ReplicaThreads::work(int index, int intra_op) {
  at::get_num_threads();  // lets LibTorch set its default, which must not come later
  at::set_num_threads(intra_op);
  round_.update([](Round& round) { --round.left; });
  std::uint64_t last = 0;
  while (true) {
    Round now;
    const auto is_new = [&](const Round& round) { return round.over || round.number != last; };
    round_.wait(kNever, is_new, [&](Round& round) { now = round; });
    if (now.over) return;
    last = now.number;
    if (index >= now.used) continue;
    try {
      (*now.task)(index);
    } catch (...) {
      thrown_[static_cast<std::size_t>(index)] = std::current_exception();
    }
    round_.update([](Round& round) { --round.left; });
  }
}

}  // namespace peal::train
