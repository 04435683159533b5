#include "peal/train/optim/registered_tensors.h"

#include <optional>

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/train/testing/ranks.h"

namespace peal::train {
namespace {

using testing::on_ranks;
using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

WeakStorage storage_of(const torch::Tensor& tensor) {
  return WeakStorage(tensor.storage().getWeakStorageImpl());
}

torch::Tensor make_large() { return torch::ones({100'000}); }

TEST(RegisteredTensorsTest, TheMemoryOfATensorStaysUntilTheRegistrationEnds) {
  on_ranks(1, [](const ProcessGroupPtr& group) {
    torch::Tensor tensor = make_large();
    const WeakStorage storage = storage_of(tensor);
    {
      RegisteredTensors registered(group);
      registered.keep(tensor);
      tensor.reset();
      EXPECT_FALSE(storage.expired());
    }
    EXPECT_TRUE(storage.expired());
    return 0;
  });
}

TEST(RegisteredTensorsTest, ATensorWithOtherMemoryReleasesItsOldMemory) {
  on_ranks(1, [](const ProcessGroupPtr& group) {
    torch::Tensor tensor = make_large();
    const WeakStorage storage = storage_of(tensor);
    RegisteredTensors registered(group);
    registered.keep(tensor);
    tensor.set_data(make_large());
    EXPECT_FALSE(storage.expired());
    registered.keep(tensor);
    EXPECT_TRUE(storage.expired());
    return 0;
  });
}

TEST(RegisteredTensorsTest, ATensorKeepsItsValuesAfterTheRegistration) {
  on_ranks(2, [](const ProcessGroupPtr& group) {
    const torch::Tensor tensor = torch::arange(100'000) + group->rank();
    {
      RegisteredTensors registered(group);
      registered.keep(tensor);
      registered.keep(tensor);
      EXPECT_TRUE(tensor.equal(torch::arange(100'000) + group->rank()));
    }
    EXPECT_TRUE(tensor.equal(torch::arange(100'000) + group->rank()));
    return 0;
  });
}

TEST(RegisteredTensorsTest, TensorsThatCannotBeRegisteredStayAsTheyAre) {
  on_ranks(1, [](const ProcessGroupPtr& group) {
    RegisteredTensors registered(group);
    const torch::Tensor transposed = torch::ones({300, 400}).t();
    registered.keep(transposed);
    registered.keep(torch::ones({0}));
    registered.keep(torch::ones({3}));
    EXPECT_TRUE(transposed.equal(torch::ones({400, 300})));
    return 0;
  });
}

}  // namespace
}  // namespace peal::train
