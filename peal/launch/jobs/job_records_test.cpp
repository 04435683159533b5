#include "peal/launch/jobs/job_records.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "peal/base/testing/error_of.h"

namespace peal::launch::jobs {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const LauncherProcess kRecordedLauncher = {
    .machine = {.host = "node1", .machine_id = "m", .boot_id = "b", .pid_namespace = "pid:[1]"},
    .pid = 12,
    .start_time = 18'446'744'073'709'551'615U};

const std::vector<NodeStatus> kRecordedNodes = {
    {.role = "master",
     .index = 0,
     .state = JobState::kFailed,
     .engine_state = "OUT_OF_MEMORY",
     .reason = "ran out of \"memory\"\n",
     .exit_code = 137,
     .attempt = 2,
     .engine_name = "12.0",
     .host = "node1"},
    {.role = "worker", .index = 1, .state = JobState::kRunning}};

Submission submission() {
  return {.id = "mnist-7k2pxd",
          .name = "MNIST",
          .runner = "slurm",
          .runner_options = {"--partition=gpu", ""},
          .engine_id = "4711",
          .roles = {{"master", 1, 2, "debian:12"}, {"worker", 3, 1}},
          .submitted_at = WallTime(std::chrono::milliseconds(1'795'859'440'123)),
          .host = "login1",
          .user = "ann",
          .directory = "/home/ann/näh",
          .command_line = {"peal", "submit", "job.yaml"},
          .launcher = kRecordedLauncher};
}

LauncherState state() {
  return {.launcher = kRecordedLauncher,
          .state = JobState::kRunning,
          .engine_state = "RUNNING",
          .reason = "4 of 4 nodes run",
          .attempt = 2,
          .nodes = kRecordedNodes,
          .started_at = WallTime(std::chrono::milliseconds(1)),
          .written_at = WallTime(std::chrono::milliseconds(-5))};
}

JobEnd job_end() {
  return {.state = JobState::kFailed,
          .engine_state = "FAILED",
          .reason = "r",
          .exit_code = 137,
          .cause = EndCause::kOutOfMemory,
          .first_failure = "master-0 was killed by SIGKILL on node1",
          .failed_rank = 3,
          .last_lines = {"step 17", "\"bad\""},
          .records = "/jobs/a/attempt-0/why.dump",
          .nodes = kRecordedNodes,
          .attempts = 3,
          .requeues = 1,
          .ended_at = WallTime(std::chrono::milliseconds(77))};
}

TEST(JobRecordsTest, EachRecordIsReadBackAsItWasWritten) {
  EXPECT_EQ(decode_submission(encode(submission()), "f"), submission());
  EXPECT_EQ(decode_submission(encode(Submission()), "f"), Submission());
  EXPECT_EQ(decode_state(encode(state()), "f"), state());
  EXPECT_EQ(decode_state(encode(LauncherState()), "f"), LauncherState());
  EXPECT_EQ(decode_end(encode(job_end()), "f"), job_end());
  EXPECT_EQ(decode_end(encode(JobEnd()), "f"), JobEnd());
  const CancelRequest cancel{WallTime(std::chrono::milliseconds(9)), "node2", "ann"};
  EXPECT_EQ(decode_cancel_request(encode(cancel), "f"), cancel);
}

TEST(JobRecordsTest, EveryStateIsReadBack) {
  for (const JobState each : {JobState::kQueued,
                              JobState::kPreparing,
                              JobState::kRunning,
                              JobState::kSucceeded,
                              JobState::kFailed,
                              JobState::kCancelling,
                              JobState::kCancelled,
                              JobState::kUnknown}) {
    LauncherState record = state();
    record.state = each;
    EXPECT_EQ(decode_state(encode(record), "f"), record) << each;
  }
}

TEST(JobRecordsTest, FieldsOfALaterVersionAreIgnored) {
  json text = json::parse(encode(submission()));
  text["colour"] = {{"deep", {1, 2}}};
  text["roles"][0]["colour"] = "blue";
  text["launcher"]["colour"] = nullptr;
  EXPECT_EQ(decode_submission(text.dump(), "f"), submission());
  json end = json::parse(encode(job_end()));
  end["nodes"][1]["colour"] = 1;
  EXPECT_EQ(decode_end(end.dump(), "f"), job_end());
}

TEST(JobRecordsTest, AStateOfALaterVersionIsUnknownAndKeepsItsWord) {
  json text = json::parse(encode(state()));
  text["state"] = "hibernating";
  text["engine_state"] = "";
  const LauncherState read = decode_state(text.dump(), "f");
  EXPECT_EQ(read.state, JobState::kUnknown);
  EXPECT_EQ(read.engine_state, "hibernating");
}

TEST(JobRecordsTest, AnEndOfAnEarlierOrLaterVersionIsRead) {
  json earlier = json::parse(encode(job_end()));
  for (const char* const name : {"cause", "failed_rank", "last_lines", "records"}) {
    earlier.erase(name);
  }
  const JobEnd read = decode_end(earlier.dump(), "f");
  EXPECT_EQ(read.first_failure, job_end().first_failure);
  EXPECT_EQ(read.cause, std::nullopt);
  json later = json::parse(encode(job_end()));
  later["cause"] = "bad_luck";
  EXPECT_EQ(decode_end(later.dump(), "f").cause, std::nullopt);
}

TEST(JobRecordsTest, TextThatIsNotUtf8DoesNotDamageTheRecord) {
  Submission record = submission();
  record.directory = "/home/\xff\xfe";
  EXPECT_THAT(decode_submission(encode(record), "f").directory, StartsWith("/home/"));
}

std::string damage_of(const json& text) {
  const Error error = error_of([&] { decode_submission(text.dump(), "/jobs/a/submitted.json"); });
  EXPECT_EQ(error.kind(), ErrorKind::kResource);
  EXPECT_THAT(std::string(error.message()), StartsWith("/jobs/a/submitted.json is damaged: "));
  return std::string(error.message());
}

json changed(const char* name, json value) {
  json text = json::parse(encode(submission()));
  text[name] = std::move(value);
  return text;
}

TEST(JobRecordsTest, ADamagedRecordIsAnErrorThatNamesTheFileAndTheField) {
  const json whole = json::parse(encode(submission()));
  for (const auto& [name, value] : whole.items()) {
    if (name == "launcher") continue;
    json text = whole;
    text.erase(name);
    EXPECT_THAT(damage_of(text), HasSubstr("\"" + name + "\" is missing"));
    EXPECT_THAT(damage_of(changed(name.c_str(), true)), HasSubstr("\"" + name + "\" is not a"));
  }
  EXPECT_THAT(damage_of(changed("launcher", 3)), HasSubstr("is not an object"));
  EXPECT_THAT(damage_of(changed("submitted_at", 1.5)), HasSubstr("whole number"));
  EXPECT_THAT(damage_of(changed("submitted_at", 18'446'744'073'709'551'615U)),
              HasSubstr("whole number"));
  EXPECT_THAT(damage_of(changed("command_line", {1})), HasSubstr("a list of texts"));
  EXPECT_THAT(damage_of(changed("roles", {{{"name", "a"}, {"nodes", 0}, {"ranks_per_node", 1}}})),
              HasSubstr("impossible size"));
  EXPECT_THAT(damage_of(json::array()), HasSubstr("is not an object"));
}

TEST(JobRecordsTest, NoBeginningOfARecordIsReadAndNoneCrashes) {
  const std::string whole = encode(job_end());
  for (std::size_t size = 0; size < whole.size() - 2; ++size) {
    const Error error = error_of([&] { decode_end(whole.substr(0, size), "end.json"); });
    EXPECT_EQ(error.kind(), ErrorKind::kResource) << size;
  }
  EXPECT_THAT(std::string(error_of([] { decode_end("", "end.json"); }).message()),
              HasSubstr("it is empty"));
}

TEST(JobRecordsTest, AnEndIsMadeFromAStatus) {
  const JobStatus status{.id = "a",
                         .state = JobState::kFailed,
                         .engine_state = "FAILED",
                         .reason = "r",
                         .nodes = kRecordedNodes,
                         .exit_code = 137,
                         .cause = EndCause::kOutOfMemory,
                         .first_failure = "master-0 was killed by SIGKILL on node1",
                         .failed_rank = 3,
                         .last_lines = {"step 17", "\"bad\""},
                         .records = "/jobs/a/attempt-0/why.dump"};
  JobEnd expected = job_end();
  expected.requeues = 0;  // a status does not contain it
  EXPECT_EQ(end_of(status, WallTime(std::chrono::milliseconds(77))), expected);
}

TEST(JobRecordsTest, ValuesOfSecretOptionsAreHidden) {
  EXPECT_THAT(without_secrets({"peal",
                               "submit",
                               "--wandb-api-key=abc",
                               "--Token",
                               "abc",
                               "--epochs",
                               "5",
                               "DB_PASSWORD=abc",
                               "--token",
                               "--lr=1"}),
              ElementsAre("peal",
                          "submit",
                          "--wandb-api-key=***",
                          "--Token",
                          "***",
                          "--epochs",
                          "5",
                          "DB_PASSWORD=***",
                          "--token",
                          "--lr=1"));
}

}  // namespace
}  // namespace peal::launch::jobs
