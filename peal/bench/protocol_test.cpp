#include "peal/bench/protocol.h"

#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"

namespace peal::bench {
namespace {

std::string line_of(const Command& command) {
  std::string line = encode(command);
  EXPECT_EQ(line.back(), '\n');
  line.pop_back();
  return line;
}

TEST(ProtocolTest, APreparationIsUnchangedAfterEncodingAndParsing) {
  for (const Op op : kAllOps) {
    const Prepare sent{1, make_case(op, DType::kBF16, 3, 600_B, BlockPlace::kIn), "registered"};
    const auto got = std::get<Prepare>(parse_command(line_of(sent)));
    EXPECT_EQ(got.slot, sent.slot);
    EXPECT_EQ(got.the_case, sent.the_case);
    EXPECT_EQ(got.variant, sent.variant);
  }
}

TEST(ProtocolTest, ATimingIsUnchangedAfterEncodingAndParsing) {
  const Timing sent{2, 3, 400, 50, Rewriting::kNone};
  const auto got = std::get<Timing>(parse_command(line_of(sent)));
  EXPECT_EQ(got.slot, 2);
  EXPECT_EQ(got.warmup, 3);
  EXPECT_EQ(got.iterations, 400);
  EXPECT_EQ(got.batch, 50);
  EXPECT_EQ(got.rewriting, Rewriting::kNone);
}

TEST(ProtocolTest, AHelloHasBackendRankAndNote) {
  const Hello got = parse_hello("hello openmpi 3 Open MPI v4.1.4");
  EXPECT_EQ(got.backend, "openmpi");
  EXPECT_EQ(got.rank, 3);
  EXPECT_EQ(got.note, "Open MPI v4.1.4");
  EXPECT_EQ(parse_hello("hello gloo 0").note, "");
}

TEST(ProtocolTest, AnswersAreTakenOneByOneWhenTheyAreComplete) {
  Answer times;
  times.times = {{1, 2}, {3, 4}};
  const Answer wrong{.kind = Answer::Kind::kWrong, .text = "index 7:\ngot 3", .times = {}};
  const std::string bytes = encode(times) + encode(wrong);
  std::string received;
  std::vector<Answer> answers;
  for (const char byte : bytes) {
    received += byte;
    if (auto answer = try_take_answer(received)) answers.push_back(std::move(*answer));
  }
  ASSERT_EQ(answers.size(), 2);
  ASSERT_EQ(answers[0].times.size(), 2);
  EXPECT_EQ(answers[0].times[1].end, 4);
  EXPECT_EQ(answers[1].kind, Answer::Kind::kWrong);
  EXPECT_EQ(answers[1].text, "index 7: got 3");
  EXPECT_EQ(received, "");
}

TEST(ProtocolTest, AnInvalidMessageIsAMismatch) {
  for (const char* line : {"",
                           "dance",
                           "prepare",
                           "prepare slot=1",
                           "time slot=x",
                           "time slot",
                           "prepare slot=0 op=fly dtype=f32 ranks=2 count=1 place=in variant=a"}) {
    EXPECT_EQ(error_of([&] { parse_command(line); }).kind(), ErrorKind::kMismatch) << line;
  }
  for (const char* line : {"", "hello", "hello gloo", "hello gloo x", "hi gloo 1"}) {
    EXPECT_EQ(error_of([&] { parse_hello(line); }).kind(), ErrorKind::kMismatch) << line;
  }
  for (const char* line : {"yes\n", "ok\n", "ok -1\n", "ok 99999999999\n"}) {
    std::string bytes = line;
    EXPECT_EQ(error_of([&] { try_take_answer(bytes); }).kind(), ErrorKind::kMismatch) << line;
  }
}

}  // namespace
}  // namespace peal::bench
