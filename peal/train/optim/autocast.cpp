#include "peal/train/optim/autocast.h"

#include <ATen/autocast_mode.h>

#include <torch/torch.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

namespace amp = at::autocast;

void set_autocast_type(torch::ScalarType type) {
  // The copies of weights do not know for which type they were made.
  if (type != amp::get_autocast_dtype(at::kCPU)) amp::clear_cache();
  amp::set_autocast_dtype(at::kCPU, type);
}

}  // namespace

Autocast::Autocast(std::optional<torch::ScalarType> type, WeightCache weight_cache)
    : enabled_before_(amp::is_autocast_enabled(at::kCPU)),
      cache_enabled_before_(amp::is_autocast_cache_enabled()),
      type_before_(amp::get_autocast_dtype(at::kCPU)) {
  if (type && type != torch::kBFloat16 && type != torch::kHalf) {
    throw Error(ErrorKind::kUsage,
                c10::str("autocast to ", *type, " on the CPU: pass kBFloat16 or kHalf"));
  }
  amp::increment_nesting();
  amp::set_autocast_enabled(at::kCPU, type.has_value());
  amp::set_autocast_cache_enabled(weight_cache == WeightCache::kOn);
  if (type) set_autocast_type(*type);
}

Autocast::~Autocast() {
  // A region without the cache may have changed weights of which an outer region has copies.
  if (amp::decrement_nesting() == 0 || !amp::is_autocast_cache_enabled()) amp::clear_cache();
  set_autocast_type(type_before_);
  amp::set_autocast_cache_enabled(cache_enabled_before_);
  amp::set_autocast_enabled(at::kCPU, enabled_before_);
}

}  // namespace peal::train
