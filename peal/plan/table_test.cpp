#include "peal/plan/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/error.h"
#include "peal/base/testing/error_of.h"

namespace peal::plan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const Algorithm* named(std::string_view name) { return &algorithm_named(name); }

TEST(TableTest, ParsesOperationSizesAndAlgorithm) {
  const Table table{
      {{.operation = Operation::kAllReduce, .up_to = 4_KiB, .algorithm = named("inline")},
       {.operation = Operation::kAllReduce, .over = 4_KiB, .algorithm = named("direct")}}};
  EXPECT_EQ(parse_table("all_reduce:0-4k:inline;all_reduce:4k-inf:direct"), table);
  EXPECT_EQ(to_text(table, ";"), "all_reduce:0-4k:inline;all_reduce:4k-inf:direct");
}

TEST(TableTest, ParsesHostsAndNumbersOfRanks) {
  const Table table = parse_table(
      "gather@hosts:1-2g:5-infranks:pairwise;barrier@host:0-inf:direct;barrier@hosts:0-0:2-4ranks:"
      "ring");
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0],
            (Row{.operation = Operation::kGather,
                 .where = Where::kSeveralHosts,
                 .over = 1_B,
                 .up_to = 2048_MiB,
                 .least_ranks = 5,
                 .algorithm = named("pairwise")}));
  EXPECT_EQ(table.rows[1].where, Where::kOneHost);
  EXPECT_EQ(table.rows[2].most_ranks, 4);
  EXPECT_EQ(table.rows[2].up_to, 0_B);
}

TEST(TableTest, IgnoresSpacesLinesCommentsAndTheCaseOfUnits) {
  EXPECT_EQ(
      parse_table("\n# mine: all of it; really\n all_reduce : 0 - 1M : 2-4 ranks : ring # good\n\n;"
                  "all_reduce:1024K-2GiB:ring\r\n"),
      parse_table("all_reduce:0-1m:2-4ranks:ring;all_reduce:1048576-2147483648:ring"));
  EXPECT_EQ(parse_table(""), Table{});
  EXPECT_EQ(parse_table(" ; \n"), Table{});
}

TEST(TableTest, RowsSurvivePrintingAndParsing) {
  for (const std::string_view text : {"",
                                      "all_reduce:0-0:ring",
                                      "all_reduce:0-1:ring",
                                      "all_reduce:1025-3m:ring;all_reduce:3m-inf:direct",
                                      "scatter@hosts:0-1g:2-4ranks:ring;scatter@host:0-1g:pairwise",
                                      "scatter@hosts:0-1g:7-infranks:ring"}) {
    EXPECT_EQ(to_text(parse_table(text), ";"), text);
  }
}

struct Wrong {
  std::string_view text;
  std::string_view says;
};

TEST(TableTest, ErrorsNameTheRowAndWhatIsAllowed) {
  constexpr std::size_t kOneGlance = 240;
  for (const Wrong& wrong : {
           Wrong{"all_redice:0-4k:ring",
                 "there is no operation \"all_redice\"; the operations are broadcast, reduce"},
           Wrong{"send:0-4k:ring", "there is no operation \"send\""},
           Wrong{"all_reduce:0-4k:rign",
                 "there is no algorithm \"rign\"; the algorithms are inline, direct"},
           Wrong{"all_reduce@moon:0-4k:ring", "\"@moon\" is not @host, @hosts or @levels"},
           Wrong{"all_reduce:0-4q:ring",
                 "\"0-4q\" is not a range of sizes; write FROM-TO in bytes"},
           Wrong{"all_reduce:4k:ring", "\"4k\" is not a range of sizes"},
           Wrong{"all_reduce:-4k:ring", "\"-4k\" is not a range of sizes"},
           Wrong{"all_reduce:0--4k:ring", "\"0--4k\" is not a range of sizes"},
           Wrong{"all_reduce:0-0.5k:ring", "\"0-0.5k\" is not a range of sizes"},
           Wrong{"all_reduce:0-9999999999g:ring", "is not a range of sizes"},
           Wrong{"all_reduce:4k-4k:ring", "4k-4k contains no size; write FROM-TO in bytes"},
           Wrong{"all_reduce:8k-4k:ring", "8k-4k contains no size"},
           Wrong{"all_reduce:inf-inf:ring", "inf-inf contains no size"},
           Wrong{"all_reduce:0-4k:2-4:ring", "\"2-4\" is not a range of ranks, as in 2-4ranks"},
           Wrong{"all_reduce:0-4k:2k-4kranks:ring", "\"2k-4kranks\" is not a range of ranks"},
           Wrong{"all_reduce:0-4k:4-2ranks:ring", "4-2ranks contains no number of ranks"},
           Wrong{"all_reduce:ring", "has 2 fields between colons; a row is OPERATION:FROM-TO"},
           Wrong{"all_reduce:0-4k:ring,all_reduce:4k-inf:direct", "with semicolons between rows"},
       }) {
    const std::string text = "barrier:0-inf:direct;" + std::string(wrong.text);
    try {
      parse_table(text);
      FAIL() << "accepted " << wrong.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr("row 2, \"" + std::string(wrong.text) + "\": "),
                        HasSubstr(std::string(wrong.says))));
      EXPECT_LE(error.message().size(), kOneGlance) << error.what();
    }
  }
}

TEST(TableTest, ErrorsShowOnlyTheBeginningOfALongRow) {
  const Error error = error_of([] { parse_table(std::string(10'000, 'x')); });
  EXPECT_THAT(error.what(), HasSubstr("row 1, \"" + std::string(60, 'x') + "...\": "));
  EXPECT_LE(error.message().size(), 300U);
}

TEST(TableTest, RejectsOverlappingRows) {
  const auto overlap = [](const std::string& a, const std::string& b) {
    for (const std::string& text : {a + ";" + b, b + ";" + a}) {
      EXPECT_THROW(parse_table(text), Error) << text;
    }
  };
  const auto go_together = [](const std::string& a, const std::string& b) {
    EXPECT_EQ(parse_table(a + ";" + b).rows.size(), 2U) << a << ";" << b;
  };
  overlap("all_reduce:0-4k:ring", "all_reduce:2k-inf:direct");
  overlap("all_reduce:0-4k:ring", "all_reduce@hosts:1k-2k:direct");
  overlap("all_reduce@host:0-4k:ring", "all_reduce@host:0-4k:ring");
  overlap("all_reduce:0-4k:2-4ranks:ring", "all_reduce:0-4k:4-8ranks:ring");
  go_together("all_reduce:0-4k:ring", "broadcast:0-4k:ring");
  go_together("all_reduce@host:0-4k:ring", "all_reduce@hosts:0-4k:ring");
  go_together("all_reduce:0-4k:2-4ranks:ring", "all_reduce:0-4k:5-8ranks:ring");
  go_together("all_reduce:0-0:inline", "all_reduce:1-8:ring");
}

TEST(TableTest, ErrorsNameTheOtherRowOfAnOverlap) {
  try {
    parse_table("all_reduce:0-4k:ring;all_reduce:2k-inf:direct");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("row 2, \"all_reduce:2k-inf:direct\": it overlaps with row 1, "
                          "\"all_reduce:0-4k:ring\""));
  }
}

TEST(TableTest, InATextOfSeveralLinesErrorsNameTheLine) {
  EXPECT_THAT(
      error_of([] {
        parse_table("# mine\n\nbarrier:0-inf:direct; all_reduce:0-4k:ring\n\nreduce:0-4q:ring");
      }).what(),
      HasSubstr("line 5, \"reduce:0-4q:ring\": "));
  EXPECT_THAT(error_of([] {
                parse_table("# mine\n\nall_reduce:0-4k:ring\n\nall_reduce:2k-inf:direct\n");
              }).what(),
              HasSubstr("line 5, \"all_reduce:2k-inf:direct\": it overlaps with line 3, "
                        "\"all_reduce:0-4k:ring\""));
}

}  // namespace
}  // namespace peal::plan
