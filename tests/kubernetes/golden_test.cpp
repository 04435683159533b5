// Compares the manifests of the jobs in jobs/ with the texts in golden/, so that a change shows as
// a diff. PEAL_TEST_ACCEPT=1 rewrites the texts. schema_test.py checks the texts.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "peal/launch/kubernetes/manifests.h"

#include "tests/kubernetes/job_file.h"

namespace peal::launch::kubernetes {
namespace {

struct Golden {
  std::string_view name;  // of the files
  std::string_view id;
  decltype(&manifests) make = manifests;
};

std::ostream& operator<<(std::ostream& out, const Golden& golden) { return out << golden.name; }

const Golden kGoldens[] = {
    {"managed", "mnist_20261128"},
    {"several_ranks", "resnet"},
    {"worker_pools", "pools"},
    {"one_node", "hello"},
    {"train_job", "kubeflow", train_job_manifests},
};

class ManifestGolden : public testing::TestWithParam<Golden> {};

TEST_P(ManifestGolden, TheManifestsAreTheAcceptedTexts) {
  const std::string folder = PEAL_KUBERNETES_FOLDER;
  const std::string name(GetParam().name);
  const ManifestOptions options{.id = std::string(GetParam().id),
                                .job_namespace = "training",
                                .secret = Secret("the secret of a golden")};
  const std::string text =
      to_text(GetParam().make(job_in_file(folder + "/jobs/" + name + ".json"), options));
  const std::string path = folder + "/golden/" + name + ".json";
  const char* const accept = std::getenv("PEAL_TEST_ACCEPT");
  if (accept != nullptr && std::string_view(accept) == "1") std::ofstream(path) << text;
  std::ifstream file(path);
  const std::string accepted{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, accepted) << "if the change is intended, run again with PEAL_TEST_ACCEPT=1";
}

INSTANTIATE_TEST_SUITE_P(Texts, ManifestGolden, testing::ValuesIn(kGoldens), [](const auto& test) {
  return std::string(test.param.name);
});

}  // namespace
}  // namespace peal::launch::kubernetes
