#include "python/c10d/registration_cache.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "peal/system/per_process.h"

namespace peal::python {
namespace {

constexpr std::size_t kLeastBytes = 64 << 10;
constexpr int kTimesUntilRegistered = 16;

/// torch's deleter of a storage, and the registration that must end before it runs.
struct Owned {
  c10::DeleterFnPtr free = nullptr;
  Registration registration;
};

using AllOwned = std::unordered_map<void*, Owned>;

/// By address, because a deleter receives only the address. Never destroyed: torch may free
/// storages after the destruction of static objects.
Guarded<AllOwned>& owned() {
  static auto* const all = new Guarded<AllOwned>();
  return *all;
}

/// Whether this is the process that registers. A forked child shares the memory, and neither
/// registers nor frees memory.
bool is_of_this_process() {
  static const int first = generation();
  return generation() == first;
}

Owned disown(void* memory) {
  return owned().with([&](AllOwned& all) {
    const auto found = all.find(memory);
    return std::move(all.extract(found).mapped());
  });
}

void end_and_free(void* memory) {
  if (!is_of_this_process()) return;
  Owned one = disown(memory);
  one.registration.reset();
  one.free(memory);
}

bool is_known_to_python(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->pyobj_slot()->load_pyobj() != nullptr ||
         tensor.storage().unsafeGetStorageImpl()->pyobj_slot()->load_pyobj() != nullptr;
}

bool is_worth_it(const at::Tensor& tensor) {
  if (!tensor.is_cpu() || !tensor.has_storage() || tensor.nbytes() < kLeastBytes) return false;
  const c10::Storage& storage = tensor.storage();
  const at::DataPtr& data = storage.data_ptr();
  return tensor.is_contiguous() && tensor.nbytes() == storage.nbytes() &&
         data.get() == data.get_context() && data.get_deleter() != nullptr &&
         data.get_deleter() != &end_and_free && !is_known_to_python(tensor);
}

void register_until_freed(ProcessGroup& group, const c10::Storage& storage) {
  at::DataPtr& data = storage.unsafeGetStorageImpl()->mutable_data_ptr();
  void* const memory = data.get();
  const c10::DeleterFnPtr free = data.get_deleter();
  Registration registration =
      group.register_memory(memory, Bytes(static_cast<std::int64_t>(storage.nbytes())));
  if (!registration) return;  // peers share no memory
  owned().with([&](AllOwned& all) { all[memory] = {free, std::move(registration)}; });
  if (!data.compare_exchange_deleter(free, &end_and_free)) disown(memory);
}

}  // namespace

bool RegistrationCache::is_due(const c10::Storage& storage) {
  return all_.with([&](All& all) {
    if (all.seen.size() >= all.most) {
      std::erase_if(all.seen, [](const auto& one) { return one.second.storage.expired(); });
      all.most = std::max(all.most, 2 * all.seen.size());
    }
    c10::StorageImpl* const key = storage.unsafeGetStorageImpl();
    auto place = all.seen.find(key);
    if (place == all.seen.end()) {
      const auto held = c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(key);
      place = all.seen.emplace(key, Seen{c10::weak_intrusive_ptr<c10::StorageImpl>(held)}).first;
    }
    return ++place->second.times == kTimesUntilRegistered;
  });
}

void RegistrationCache::note_use(ProcessGroup& group, const at::Tensor& tensor) {
  if (!is_worth_it(tensor) || !group.capabilities().registered_memory || !is_of_this_process()) {
    return;
  }
  try {
    if (is_due(tensor.storage())) register_until_freed(group, tensor.storage());
  } catch (const std::exception&) {
    // Without registration the operation is slower, but still correct.
  }
}

}  // namespace peal::python
