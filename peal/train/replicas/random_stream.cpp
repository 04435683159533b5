#include "peal/train/replicas/random_stream.h"

#include <ATen/CPUGeneratorImpl.h>

#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_set>

#include "peal/base/mixed.h"

namespace peal::train {
namespace {

thread_local RandomStream* stream_of_thread = nullptr;

/// LibTorch's generator belongs to the process, and so does the right to exchange its state.
std::mutex& exchange_mutex() {
  static std::mutex mutex;
  return mutex;
}

at::CPUGeneratorImpl& shared_generator() {
  return *at::detail::getDefaultCPUGenerator().get<at::CPUGeneratorImpl>();
}

void copy_state(at::CPUGeneratorImpl& from, at::CPUGeneratorImpl& to) {
  to.set_engine(from.engine());
  to.set_next_float_normal_sample(from.next_float_normal_sample());
  to.set_next_double_normal_sample(from.next_double_normal_sample());
}

/// The operations that call a generator themselves. Others, such as dropout, call these.
bool is_random(std::string_view name) {
  static const std::unordered_set<std::string_view> kNames = {
      "aten::_fused_dropout",
      "aten::_sample_dirichlet",
      "aten::_standard_gamma",
      "aten::bernoulli",
      "aten::bernoulli_",
      "aten::binomial",
      "aten::cauchy_",
      "aten::exponential_",
      "aten::geometric_",
      "aten::log_normal_",
      "aten::multinomial",
      "aten::native_dropout",
      "aten::normal",
      "aten::normal_",
      "aten::poisson",
      "aten::rand",
      "aten::rand_like",
      "aten::randint",
      "aten::randint_like",
      "aten::randn",
      "aten::randn_like",
      "aten::random_",
      "aten::randperm",
      "aten::rrelu_with_noise",
      "aten::rrelu_with_noise_",
      "aten::uniform_",
  };
  return kNames.contains(name);
}

struct InStream final : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> before_operation(const at::RecordFunction& operation) {
  if (stream_of_thread == nullptr || !is_random(operation.name())) return nullptr;
  stream_of_thread->enter();
  return std::make_unique<InStream>();
}

void after_operation(const at::RecordFunction&, at::ObserverContext* context) {
  if (context != nullptr) stream_of_thread->leave();
}

}  // namespace

std::uint64_t draw_seed() {
  at::CPUGeneratorImpl& generator = shared_generator();
  const std::lock_guard lock(generator.mutex_);
  return generator.random64();
}

RandomStream::RandomStream(std::uint64_t seed, int number)
    : own_(at::detail::createCPUGenerator(
          mixed(mixed(0, seed), static_cast<std::uint64_t>(number)))),
      others_(at::detail::createCPUGenerator()),
      outer_(stream_of_thread),
      callback_(
          at::addThreadLocalCallback(at::RecordFunctionCallback(before_operation, after_operation)
                                         .scopes({at::RecordScope::FUNCTION}))) {
  stream_of_thread = this;
}

RandomStream::~RandomStream() {
  at::removeCallback(callback_);
  stream_of_thread = outer_;
}

void RandomStream::enter() {
  if (depth_++ > 0) return;
  exchange_mutex().lock();
  at::CPUGeneratorImpl& shared = shared_generator();
  const std::lock_guard lock(shared.mutex_);
  copy_state(shared, *others_.get<at::CPUGeneratorImpl>());
  copy_state(*own_.get<at::CPUGeneratorImpl>(), shared);
}

void RandomStream::leave() {
  if (--depth_ > 0) return;
  at::CPUGeneratorImpl& shared = shared_generator();
  {
    const std::lock_guard lock(shared.mutex_);
    copy_state(shared, *own_.get<at::CPUGeneratorImpl>());
    copy_state(*others_.get<at::CPUGeneratorImpl>(), shared);
  }
  exchange_mutex().unlock();
}

}  // namespace peal::train
