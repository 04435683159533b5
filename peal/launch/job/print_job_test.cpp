#include "peal/launch/job/print_job.h"

#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "peal/base/error.h"
#include "peal/launch/job/read_job.h"

namespace peal::launch {
namespace {

Job reread(const Job& job) { return read_job(print_job(job), "printed.yaml").job; }

TEST(PrintJobTest, DefaultsAreLeftOut) {
  const Job job{.name = "mnist", .roles = {{.name = "trainer", .command = {"python3", "a b"}}}};
  EXPECT_EQ(print_job(job), R"(name: mnist
roles:
  - name: trainer
    command: [python3, "a b"]
)");
}

TEST(PrintJobTest, AllFieldsArePrinted) {
  using namespace std::chrono_literals;
  const Job job{
      .name = "all of it",
      .roles = {{.name = "trainer",
                 .nodes = {2, 4},
                 .ranks_per_node = 8,
                 .image = "torch:2.1",
                 .command = {"./train"},
                 .args = {"--lr", "1e3", "yes", ""},
                 .env = {{"EMPTY", ""}, {"THREADS", "4"}},
                 .resources = {.cpus = 0.5, .memory = 15 * 1024_MiB, .gpus = 8, .shm = 1000_B}},
                {.name = "evaluator", .image = "x", .in_world = false}},
      .env = {{"A.B", "b\nc"}},
      .directory = "/srv",
      .files = {{"a", "b"}},
      .success_role = "trainer",
      .spare_nodes = 1,
      .restarts = {.most = 3, .first_pause = 500ms, .longest_pause = 120s},
      .max_run_time = 2h,
      .warn_before = std::chrono::minutes(5),
      .start_timeout = 90s,
      .grace = 10s,
      .priority = -5,
      .labels = {{"team", "null"}},
      .engine_options = {{"slurm", {"--qos=high"}}, {"ssh", {}}},
      .form = JobForm::kTrainingInput,
      .document = "{\"a\":1}"};
  EXPECT_EQ(print_job(job), R"(name: "all of it"
roles:
  - name: trainer
    nodes: 2:4
    ranks_per_node: 8
    image: torch:2.1
    command: ["./train"]
    args: [--lr, "1e3", "yes", ""]
    env:
      EMPTY: ""
      THREADS: "4"
    resources:
      cpus: 0.5
      memory: 15g
      gpus: 8
      shm: 1000
  - name: evaluator
    in_world: false
    image: x
env:
  A.B: "b\nc"
directory: /srv
files:
  - from: a
    to: b
success_role: trainer
spare_nodes: 1
restarts:
  most: 3
  first_pause: 500ms
  longest_pause: 2m
max_run_time: 2h
warn_before: 5m
start_timeout: 90s
grace: 10s
priority: -5
labels:
  team: "null"
engine_options:
  slurm: [--qos=high]
  ssh: []
form: training_input
document: "{\"a\":1}"
)");
  EXPECT_EQ(reread(job), job);
}

TEST(PrintJobTest, CharactersThatSomeReadersRefuseAreEscaped) {
  const Job job{
      .name = "n",
      .roles = {{.name = "a",
                 .command = {"\x7f\xc2\x85\xc2\xa0\xe2\x80\xa8\xef\xbb\xbf\t\n", "caf\xc3\xa9"}}}};
  EXPECT_THAT(print_job(job),
              testing::HasSubstr("[\"\\x7f\\x85\\xa0\\u2028\\ufeff\\x09\\n\", \"caf\xc3\xa9\"]"));
}

/// Texts that a reader of YAML could take for something else.
const std::vector<std::string>& nasty_texts() {
  static const std::vector<std::string> texts = {"",
                                                 " ",
                                                 "a",
                                                 "a b",
                                                 " a",
                                                 "a ",
                                                 "'",
                                                 "\"",
                                                 "'\"'",
                                                 "$HOME",
                                                 "\\",
                                                 "\\n",
                                                 ",",
                                                 "a,b",
                                                 "\n",
                                                 "a\nb\n",
                                                 "\r\n",
                                                 "\t",
                                                 "64(x2)",
                                                 "{\"a\": [1, 2]}",
                                                 ";",
                                                 "#",
                                                 "a #b",
                                                 "a: b",
                                                 ":",
                                                 "-",
                                                 "- a",
                                                 "--a=b",
                                                 "?",
                                                 "!a",
                                                 "&a",
                                                 "*a",
                                                 "|",
                                                 ">",
                                                 "%",
                                                 "@",
                                                 "`",
                                                 "~",
                                                 "null",
                                                 "Null",
                                                 "true",
                                                 "FALSE",
                                                 "yes",
                                                 "No",
                                                 "on",
                                                 "OFF",
                                                 "y",
                                                 "N",
                                                 "1",
                                                 "010",
                                                 "0x1",
                                                 "1e3",
                                                 "1.5",
                                                 ".5",
                                                 ".inf",
                                                 ".nan",
                                                 "1:30",
                                                 "2026-11-28",
                                                 "<<",
                                                 "=",
                                                 "---",
                                                 "...",
                                                 "[a]",
                                                 "{a}",
                                                 "\x01",
                                                 "\x7f",
                                                 "\x1b[0m",
                                                 "\xc2\x80",
                                                 "\xc2\x85",
                                                 "\xc2\xa0",
                                                 "\xe2\x80\xa8",
                                                 "\xe2\x80\xa9",
                                                 "\xef\xbb\xbf",
                                                 "\xef\xbf\xbe",
                                                 "caf\xc3\xa9",
                                                 "\xe2\x82\xac",
                                                 "\xf0\x9f\x98\x80",
                                                 "\\ud83d\\ude00",
                                                 std::string(5'000, 'x'),
                                                 std::string(300, ' ') + "x",
                                                 "a\n\n\n b",
                                                 "\n a",
                                                 "a\n\tb",
                                                 "=a",
                                                 "--a",
                                                 "-a",
                                                 "---a",
                                                 "--",
                                                 "--a:",
                                                 "a:b",
                                                 "-1",
                                                 "--1",
                                                 "-.inf",
                                                 "a: ",
                                                 "--true",
                                                 "-y",
                                                 "a\\"};
  return texts;
}

TEST(PrintJobTest, EachNastyTextIsReadBackFromEachTextField) {
  for (const std::string& text : nasty_texts()) {
    Job job{.name = "n",
            .roles = {{.name = "a",
                       .image = text,
                       .command = {"x", text},
                       .args = {text, text},
                       .env = {{"V", text}}}},
            .env = {{"V", text}},
            .directory = text,
            .files = {{"f" + text, "g" + text}},
            .labels = {{"l", text}},
            .engine_options = {{"mpi", {text}}},
            .document = text};
    const bool is_key = !text.empty() && text.size() <= 200;
    if (is_key) job.labels[text] = text;
    if (is_key && text.find('=') == std::string::npos) job.env[text] = text;
    if (text.find('\n') == std::string::npos && text.size() < 100) {
      Job named = job;
      named.name += text;
      try {
        check(named);
        job = named;
      } catch (const Error&) {  // no control characters in names
      }
    }
    EXPECT_EQ(reread(job), job) << print_job(job);
  }
}

class Dice final {
 public:
  explicit Dice(unsigned seed) : engine_(seed) {}
  int upto(int most) { return std::uniform_int_distribution<int>(0, most)(engine_); }
  bool sometimes() { return upto(2) == 0; }
  std::string text() {
    std::string text;
    for (int parts = upto(3); parts >= 0; --parts) {
      const auto& texts = nasty_texts();
      text += texts[static_cast<std::size_t>(upto(static_cast<int>(texts.size()) - 1))];
    }
    return text;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> texts;
    for (int i = upto(3); i > 0; --i) texts.push_back(text());
    return texts;
  }
  std::map<std::string, std::string> texts_by_name() {
    std::map<std::string, std::string> texts;
    for (int i = upto(3); i > 0; --i) texts["N" + std::to_string(upto(99))] = text();
    return texts;
  }
  std::chrono::milliseconds pause() { return std::chrono::milliseconds(upto(30'000)); }
  std::chrono::seconds time() { return std::chrono::seconds(1 + upto(100'000)); }

 private:
  std::mt19937 engine_;
};

Role random_role(Dice& dice, int index) {
  Role role{.name = "role" + std::to_string(index)};
  role.nodes.least = 1 + dice.upto(5);
  role.nodes.most = role.nodes.least + (dice.sometimes() ? dice.upto(9) : 0);
  role.ranks_per_node = 1 + dice.upto(8);
  role.image = dice.text();
  role.command = dice.texts();
  role.command.insert(role.command.begin(), "./x" + dice.text());
  role.args = dice.texts();
  role.env = dice.texts_by_name();
  if (dice.sometimes()) role.resources.cpus = (1 + dice.upto(1'000)) / 8.0;
  if (dice.sometimes()) role.resources.memory = Bytes(1'000'000'000 + dice.upto(1'000'000));
  if (dice.sometimes()) role.resources.gpus = dice.upto(8);
  if (dice.sometimes()) role.resources.shm = Bytes((1 + dice.upto(100)) << dice.upto(20));
  return role;
}

Job random_job(unsigned seed) {
  Dice dice(seed);
  Job job{.name = "job-" + std::to_string(seed)};
  for (int i = dice.upto(3); i >= 0; --i) job.roles.push_back(random_role(dice, i));
  if (job.roles.size() > 1 && dice.sometimes()) job.roles.back().in_world = false;
  job.env = dice.texts_by_name();
  if (dice.sometimes()) job.directory = dice.text();
  if (dice.sometimes()) job.files = {{"a" + dice.text(), "b" + dice.text()}, {"c", "d"}};
  if (dice.sometimes()) job.success_role = "role0";
  job.spare_nodes = dice.sometimes() ? dice.upto(3) : 0;
  if (dice.sometimes())
    job.restarts = {dice.upto(5), dice.pause(), std::chrono::milliseconds(60'000)};
  if (dice.sometimes()) job.max_run_time = dice.time();
  if (job.max_run_time && dice.sometimes()) job.warn_before = *job.max_run_time;
  if (dice.sometimes()) job.start_timeout = dice.time();
  if (dice.sometimes()) job.grace = dice.pause();
  job.priority = dice.sometimes() ? dice.upto(1'000) - 500 : 0;
  job.labels = dice.texts_by_name();
  for (const std::string_view runner : kEngineNames) {
    if (dice.sometimes()) job.engine_options[std::string(runner)] = dice.texts();
  }
  constexpr std::array kForms = {
      JobForm::kPeal, JobForm::kTrainingInput, JobForm::kWorkerPoolSpecs};
  job.form = kForms[static_cast<std::size_t>(dice.upto(2))];
  if (job.form != JobForm::kPeal) job.document = nlohmann::json(dice.text()).dump();
  return job;
}

TEST(PrintJobTest, RandomJobsAreReadBack) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    const Job job = random_job(seed);
    EXPECT_EQ(reread(job), job) << "seed " << seed << "\n" << print_job(job);
  }
}

}  // namespace
}  // namespace peal::launch
