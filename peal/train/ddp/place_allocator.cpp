#include "peal/train/ddp/place_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <ranges>
#include <vector>

#include <torch/torch.h>

namespace peal::train {
namespace {

/// LibTorch has one allocator in a process, so these lists are of the process.
struct Lists {
  std::mutex mutex;
  std::vector<std::pair<std::thread::id, PlaceAllocator::Choose*>> started;
  std::vector<std::pair<void*, PlaceMemoryPtr>> given;  // places that tensors use
  std::atomic<std::size_t> started_count = 0, given_count = 0;
};

Lists& lists() {
  static auto* const the_only = new Lists();  // lives until the process ends, as the allocator
  return *the_only;
}

thread_local int pauses = 0;

c10::Allocator* usual_allocator = nullptr;  // the one before AllocatorWithPlaces

/// Ends the use of a place.
PlaceMemoryPtr take_back(void* data) {
  if (lists().given_count.load(std::memory_order_acquire) == 0) return {};
  const std::scoped_lock lock(lists().mutex);
  const auto found =
      std::ranges::find(lists().given, data, &std::pair<void*, PlaceMemoryPtr>::first);
  if (found == lists().given.end()) return {};
  PlaceMemoryPtr place = std::move(found->second);
  lists().given.erase(found);
  lists().given_count.store(lists().given.size(), std::memory_order_release);
  return place;
}

/// Frees what `allocate` gave. Some operators, such as those of oneDNN, keep only the address.
void free_memory(void* data) {
  if (const PlaceMemoryPtr place = take_back(data)) {
    place->end_use();
  } else {
    usual_allocator->raw_deleter()(data);
  }
}

class AllocatorWithPlaces final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    if (pauses == 0 && lists().started_count.load(std::memory_order_relaxed) > 0) {
      if (void* const place = give_place(bytes)) {
        return {place, place, &free_memory, c10::Device(c10::kCPU)};
      }
    }
    return usual_allocator->allocate(bytes);
  }

  c10::DeleterFnPtr raw_deleter() const override { return &free_memory; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static void* give_place(std::size_t bytes) {
    const std::thread::id here = std::this_thread::get_id();
    const std::scoped_lock lock(lists().mutex);
    for (const auto& [thread, choose] : lists().started | std::views::reverse) {
      if (thread != here) continue;
      PlaceMemory* const place = (*choose)(bytes);
      if (place == nullptr) continue;
      void* const data = place->begin_use();
      lists().given.emplace_back(data, PlaceMemoryPtr::reclaim_copy(place));
      lists().given_count.store(lists().given.size(), std::memory_order_release);
      return data;
    }
    return nullptr;
  }
};

void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    usual_allocator = c10::GetCPUAllocator();
    if (usual_allocator->raw_deleter() == nullptr) return;  // a program's own: leave it
    c10::SetCPUAllocator(new AllocatorWithPlaces());        // a program may replace it again
  });
}

}  // namespace

PlacesPaused::PlacesPaused() { ++pauses; }
PlacesPaused::~PlacesPaused() { --pauses; }

PlaceAllocator::PlaceAllocator(Choose choose) : choose_(std::move(choose)) { install(); }

void PlaceAllocator::start() {
  stop();
  thread_ = std::this_thread::get_id();
  const std::scoped_lock lock(lists().mutex);
  lists().started.emplace_back(thread_, &choose_);
  lists().started_count.store(lists().started.size(), std::memory_order_relaxed);
}

void PlaceAllocator::stop() {
  if (std::exchange(thread_, {}) == std::thread::id()) return;
  const std::scoped_lock lock(lists().mutex);
  std::erase_if(lists().started, [this](const auto& one) { return one.second == &choose_; });
  lists().started_count.store(lists().started.size(), std::memory_order_relaxed);
}

void move_out_of_place(const torch::Tensor& tensor) {
  c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
  const PlacesPaused paused;
  c10::DataPtr own = c10::GetCPUAllocator()->allocate(storage->nbytes());
  std::memcpy(own.get(), storage->data(), storage->nbytes());
  storage->set_data_ptr_noswap(std::move(own));
}

}  // namespace peal::train
