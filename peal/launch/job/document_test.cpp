#include "peal/launch/job/document.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "peal/base/testing/error_of.h"

namespace peal::launch {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Value parse(std::string_view text) { return parse_document(text, "job.yaml"); }

std::string not_parsed(std::string_view text) {
  return usage_error_of([&] { parse(text); });
}

std::string json(std::string_view text) { return to_json(parse(text)); }

TEST(DocumentTest, YamlAndJsonBecomeTheSameValue) {
  EXPECT_EQ(json("a: 1\nb: [x, \"1\"]\nc: {d: true, e: null}\n"),
            R"({"a":1,"b":["x","1"],"c":{"d":true,"e":null}})");
  EXPECT_EQ(json(R"({"a": 1, "b": ["x", "1"], "c": {"d": true, "e": null}})"),
            R"({"a":1,"b":["x","1"],"c":{"d":true,"e":null}})");
}

TEST(DocumentTest, PlainWordsStayAsTheyAreWritten) {
  EXPECT_EQ(json("[1e3, 010, 1.0, yes, 0x10, 1.5, -2, 12345678901234567890123]"),
            R"(["1e3","010",1.0,"yes","0x10",1.5,-2,"12345678901234567890123"])");
}

TEST(DocumentTest, JsonMayBeIndentedByTabsAndHaveEscapes) {
  EXPECT_EQ(json("{\n\t\"a\": \"\\u00e4\\ud83d\\ude00\\/\\\\ud83d\",\n\t\"b\":[\n\t\t1\n\t]\n}\n"),
            "{\"a\":\"\xc3\xa4\xf0\x9f\x98\x80/\\\\ud83d\",\"b\":[1]}");
}

TEST(DocumentTest, EscapesOfYamlAreReadAsUtf8) {
  EXPECT_EQ(parse("\"\\xe9\\N\\_\\L\xc3\xa9\\_\\0\"").text,
            std::string("\xc3\xa9\xc2\x85\xc2\xa0\xe2\x80\xa8\xc3\xa9\xc2\xa0\0", 14));
}

TEST(DocumentTest, ValuesKnowTheirPlace) {
  const Value root = parse("# comment\na: 1\nb:\n  - {c: x}\n");
  EXPECT_EQ(root.members[0].place, (Place{2, 1, {}}));
  EXPECT_EQ(find(root, "a")->place, (Place{2, 4, {}}));
  EXPECT_EQ(find(find(root, "b")->items[0], "c")->place, (Place{4, 9, {}}));
  EXPECT_EQ(find(root, "d"), nullptr);
}

TEST(DocumentTest, AByteOrderMarkAndOtherLineEndsAreAccepted) {
  const std::string plain = json("a: 1\nb: |\n  x\n  y\nc: d\n");
  EXPECT_EQ(json("\xef\xbb\xbf"
                 "a: 1\nb: |\n  x\n  y\nc: d\n"),
            plain);
  EXPECT_EQ(json("a: 1\r\nb: |\r\n  x\r\n  y\r\nc: d\r\n"), plain);
}

TEST(DocumentTest, ADuplicateKeyIsAnErrorWithItsPlace) {
  EXPECT_EQ(not_parsed("a: 1\nb: 2\na: 3\n"),
            "job.yaml:3:1: the key \"a\" is here twice; remove one");
  EXPECT_THAT(not_parsed("{\"a\": {\"b\": 1, \"b\": 2}}"),
              StartsWith("job.yaml:1:16: the key \"b\""));
}

TEST(DocumentTest, ATextThatIsNotYamlIsAnErrorWithItsPlace) {
  EXPECT_THAT(not_parsed("a: [1, 2\n"), StartsWith("job.yaml:"));
  EXPECT_EQ(not_parsed("a:\n\tb: 1\n"),
            "job.yaml:2:1: the line begins with a tab; indent YAML by spaces");
  EXPECT_EQ(not_parsed("a: 1\nb: 'x\n"),
            "job.yaml:3:1: a text in quotes is not closed; its last \" or ' is missing");
  EXPECT_THAT(not_parsed("a: \"x\nb: c\n"), HasSubstr("is not closed"));
  EXPECT_THAT(not_parsed("a: 'x"), HasSubstr("is not closed"));
  EXPECT_EQ(not_parsed("a: 1\nb: \xff\n"), "job.yaml:2:1: this line is not UTF-8 text");
  EXPECT_THAT(not_parsed("a: *b\n"), StartsWith("job.yaml:1:4: it is not YAML: "));
  EXPECT_EQ(
      not_parsed("a:\n  b: 1\n c: 2\n"),
      "job.yaml:3:2: it is not YAML: end of map not found; check the indentation of this line");
}

TEST(DocumentTest, AProgramIsNoJobFile) {
  EXPECT_THAT(
      usage_error_of([] { parse_document("import torch\n", "train.py"); }),
      StartsWith("train.py:1:1: it is a program, and not a job file: run it with peal run"));
}

TEST(DocumentTest, EmptyTextsAndSeveralDocumentsAreErrors) {
  EXPECT_THAT(not_parsed(""), StartsWith("job.yaml:1:1: it is empty"));
  EXPECT_THAT(not_parsed("# nothing\n"), StartsWith("job.yaml:1:1: it is empty"));
  EXPECT_THAT(not_parsed("a: 1\n---\nb: 1\n"), StartsWith("job.yaml:2:1: more text follows"));
  EXPECT_THAT(not_parsed("{\"a\": 1} x"), StartsWith("job.yaml:1:10: more text follows"));
  EXPECT_EQ(json("---\na: 1\n...\n"), "{\"a\":1}");
  EXPECT_EQ(json("a: 1\n..."), "{\"a\":1}");
}

TEST(DocumentTest, KeysAreWordsAndTagsAreRefused) {
  EXPECT_THAT(not_parsed("? [a]\n: 1\n"), HasSubstr("a key is a word"));
  EXPECT_THAT(not_parsed("~: 1\n"), HasSubstr("a key is a word"));
  EXPECT_THAT(not_parsed("a: !env X\n"),
              HasSubstr("job.yaml:1:4: a tag, as in !name, has no meaning"));
  EXPECT_THAT(not_parsed("a: &x {b: 1}\nc:\n  <<: *x\n"), HasSubstr("the merge key <<"));
  EXPECT_EQ(json("a: !!str 1"), "{\"a\":\"1\"}");
}

TEST(DocumentTest, AliasesAreReplacedByTheirValues) {
  EXPECT_EQ(json("a: &x {b: [1]}\nc: *x\n"), R"({"a":{"b":[1]},"c":{"b":[1]}})");
  EXPECT_THAT(not_parsed("a: &x [*x]\n"), StartsWith("job.yaml:1:8: "));
}

TEST(DocumentTest, DocumentsAreBounded) {
  std::string bomb = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format(
        "b{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  }
  EXPECT_THAT(not_parsed(bomb), HasSubstr("more than 100000 values"));
  std::string list = "x";
  for (int i = 1; i < 1'000; ++i) list += ", x";
  std::string repeated = "*a";
  for (int i = 1; i < 200; ++i) repeated += ", *a";
  EXPECT_THAT(not_parsed("a: &a [" + list + "]\nb: [" + repeated + "]\n"),
              HasSubstr("more than 100000 values"));
  for (const int depth : {60, 5'000, 100'000}) {
    EXPECT_THAT(not_parsed(std::string(static_cast<std::size_t>(depth), '[')),
                HasSubstr("nested more than 50 deep"))
        << depth;
  }
  std::string nested = "a0: &a0 [x]\n";
  for (int i = 1; i < 60; ++i) nested += fmt::format("a{0}: &a{0} [*a{1}]\n", i, i - 1);
  EXPECT_THAT(not_parsed(nested), HasSubstr("nested more than 50 deep"));
  EXPECT_THAT(not_parsed("a: " + std::string(2'000'000, 'x')), HasSubstr("longer than 1 MiB"));
}

}  // namespace
}  // namespace peal::launch
