#include "peal/launch/jobs/job_id.h"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"

namespace peal::launch::jobs {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

TEST(JobIdTest, AnIdIsTheReadableNameAndTheRandomPart) {
  EXPECT_EQ(make_job_id("mnist", "7k2pxd"), "mnist-7k2pxd");
  EXPECT_EQ(make_job_id("MNIST_run 3", "7k2pxd"), "mnist-run-3-7k2pxd");
  EXPECT_EQ(make_job_id("3", "7k2pxd"), "job-3-7k2pxd");
  EXPECT_EQ(make_job_id("", "7k2pxd"), "job-7k2pxd");
}

TEST(JobIdTest, AnyNameGivesADnsLabelWithinTheLimit) {
  for (const std::string& name : {std::string("ä\n🔔/../x"),
                                  std::string("-a-"),
                                  std::string("___"),
                                  std::string(1000, 'A'),
                                  std::string(1000, '-'),
                                  std::string(24, 'a') + "-b"}) {
    const std::string id = make_job_id(name, "7k2pxd");
    EXPECT_THAT(id, MatchesRegex("[a-z]([a-z0-9-]*[a-z0-9])?")) << name;
    EXPECT_THAT(id, Not(HasSubstr("--"))) << name;
    EXPECT_LE(id.size(), kLongestJobId) << name;
    EXPECT_TRUE(is_job_id(id)) << name;
  }
}

TEST(JobIdTest, RandomPartsDiffer) {
  std::set<std::string> parts;
  for (int i = 0; i < 100; ++i) {
    const std::string part = make_random_part();
    EXPECT_THAT(part, MatchesRegex("[2-9b-z]+"));
    EXPECT_EQ(part.size(), kRandomPartLength);
    parts.insert(part);
  }
  EXPECT_GE(parts.size(), 99U);
}

TEST(JobIdTest, TextsThatCouldLeaveTheFolderOfJobsAreNoIds) {
  for (const char* const text : {"", ".", "..", "../x", "/x", "a/b", "-a", "a-", "A", ".a", "7a"}) {
    EXPECT_FALSE(is_job_id(text)) << text;
  }
  EXPECT_FALSE(is_job_id(std::string(kLongestJobId + 1, 'a')));
  EXPECT_TRUE(is_job_id("a"));
}

const std::vector<std::string> kIds = {"mnist-7k2pxd", "mnist-x2222x", "bert", "bert-large-99zz99"};

TEST(JobIdTest, AWholeIdOrAnUnambiguousBeginningFindsTheJob) {
  EXPECT_EQ(find_job_id("mnist-7k2pxd", kIds), "mnist-7k2pxd");
  EXPECT_EQ(find_job_id("mnist-7", kIds), "mnist-7k2pxd");
  EXPECT_EQ(find_job_id("bert-", kIds), "bert-large-99zz99");
}

TEST(JobIdTest, TheNameAsGivenFindsTheJob) {
  const std::string name = "My_long_name_of_more_than_25_letters";
  const std::vector<std::string> ids = {
      "mnist-1-jm4f64", "mnist-10-8qhw2x", "bert-large-99zz99", make_job_id(name, "22zz22")};
  EXPECT_EQ(find_job_id("mnist_1", ids), "mnist-1-jm4f64") << "not mnist_10";
  EXPECT_EQ(find_job_id("mnist-1", ids), "mnist-1-jm4f64") << "the beginning of both";
  EXPECT_EQ(find_job_id("BERT_l", ids), "bert-large-99zz99");
  EXPECT_EQ(find_job_id(name, ids), ids.back());
  EXPECT_THAT(usage_error_of([&] { find_job_id("Mnist", ids); }), HasSubstr("2 jobs begin with"));
  EXPECT_THAT(usage_error_of([&] { find_job_id("mnist_2", ids); }), HasSubstr("there is no job"));
}

TEST(JobIdTest, ANameThatIsItselfAsLongAsAnIdFindsTheJob) {
  const std::string name = "a-name-of-thirty-letters-xxxx";
  EXPECT_EQ(find_job_id(name, {{make_job_id(name, "22zz22")}}), make_job_id(name, "22zz22"));
}

TEST(JobIdTest, AWrongIdIsNotTakenForAName) {
  const std::vector<std::string> ids = {make_job_id("a-name-of-more-than-25-letters", "22zz22"),
                                        "job-99zz99"};
  const std::string wrong = ids.front().substr(0, ids.front().size() - 1) + "3";
  EXPECT_THAT(usage_error_of([&] { find_job_id(wrong, ids); }), HasSubstr("there is no job"));
  EXPECT_THAT(usage_error_of([&] { find_job_id("_", ids); }), HasSubstr("there is no job"));
}

TEST(JobIdTest, AWholeIdWinsOverALongerIdThatBeginsWithIt) {
  EXPECT_EQ(find_job_id("bert", kIds), "bert");
}

TEST(JobIdTest, AnAmbiguousBeginningListsTheCandidates) {
  EXPECT_EQ(usage_error_of([] { find_job_id("mni", kIds); }),
            R"(2 jobs begin with "mni": mnist-7k2pxd, mnist-x2222x; type more of the id)");
}

TEST(JobIdTest, OfManyCandidatesOnlyTheFirstAreListed) {
  std::vector<std::string> ids;
  for (char c = 'a'; c <= 'z'; ++c) ids.push_back(std::string("job-") + c);
  EXPECT_THAT(usage_error_of([&] { find_job_id("job", ids); }), HasSubstr("job-j and 16 more;"));
}

TEST(JobIdTest, AnUnknownTextNamesTheNearestIds) {
  EXPECT_EQ(usage_error_of([] { find_job_id("mnits-7k", kIds); }),
            R"(there is no job "mnits-7k"; did you mean mnist-7k2pxd or mnist-x2222x?)");
  EXPECT_EQ(usage_error_of([] { find_job_id("mnits", kIds); }),
            R"(there is no job "mnits"; did you mean mnist-7k2pxd or mnist-x2222x?)");
  EXPECT_EQ(usage_error_of([] { find_job_id("zzz", kIds); }),
            R"(there is no job "zzz"; `peal jobs` lists all)");
}

TEST(JobIdTest, WithoutAnyJobTheErrorSaysSo) {
  EXPECT_THAT(usage_error_of([] { find_job_id("mnist", {}); }),
              HasSubstr("no job was submitted here"));
  EXPECT_THAT(usage_error_of([] { find_job_id("", kIds); }), HasSubstr("is empty"));
}

}  // namespace
}  // namespace peal::launch::jobs
