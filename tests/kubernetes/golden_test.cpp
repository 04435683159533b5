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

#include "peal/launch/job/read_job.h"
#include "peal/launch/kubernetes/manifests.h"

namespace peal::launch::kubernetes {
namespace {

struct Golden {
  std::string_view job;  // the file
  std::string_view id;
  decltype(&manifests) make = manifests;
};

std::ostream& operator<<(std::ostream& out, const Golden& golden) { return out << golden.job; }

const Golden kGoldens[] = {
    {"managed.yaml", "mnist_20261128"},
    {"worker_pools.json", "pools"},
    {"several_ranks.yaml", "resnet"},
    {"two_roles.yaml", "two-roles"},
    {"one_node.yaml", "hello"},
    {"train_job.yaml", "kubeflow", train_job_manifests},
};

std::string stem(const Golden& golden) {
  return std::string(golden.job.substr(0, golden.job.find('.')));
}

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ManifestGolden : public testing::TestWithParam<Golden> {};

TEST_P(ManifestGolden, TheManifestsAreTheAcceptedTexts) {
  const std::string folder = PEAL_KUBERNETES_FOLDER;
  const std::string name(GetParam().job);
  const Job job = read_job(text_in(folder + "/jobs/" + name), name).job;
  const ManifestOptions options{.id = std::string(GetParam().id),
                                .job_namespace = "training",
                                .secret = Secret("the secret of a golden")};
  const std::string text = to_text(GetParam().make(job, options));
  const std::string path = folder + "/golden/" + stem(GetParam()) + ".json";
  const char* const accept = std::getenv("PEAL_TEST_ACCEPT");
  if (accept != nullptr && std::string_view(accept) == "1") std::ofstream(path) << text;
  EXPECT_EQ(text, text_in(path)) << "if the change is intended, run again with PEAL_TEST_ACCEPT=1";
}

INSTANTIATE_TEST_SUITE_P(Texts, ManifestGolden, testing::ValuesIn(kGoldens), [](const auto& test) {
  return stem(test.param);
});

}  // namespace
}  // namespace peal::launch::kubernetes
