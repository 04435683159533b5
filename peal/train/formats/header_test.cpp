#include "peal/train/formats/header.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The bytes of 64-bit number, little-endian.
std::string prefix_of(std::uint64_t number) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xff);
  return bytes;
}

std::string error_of(std::string_view text, std::int64_t data_size = 0) {
  try {
    parse_safetensors_header(text, Bytes(data_size));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
    return std::string(error.message());
  }
  return "no error";
}

SafetensorsHeader example() {
  SafetensorsHeader header;
  header.metadata = {{"format", "pt"}, {"note", "\"two\"\nlines \xc3\xa9"}};
  header.tensors["weight"] = {.dtype = "F32", .shape = {2, 3}};
  header.tensors["half"] = {.dtype = "BF16", .shape = {3}};
  header.tensors["step"] = {.dtype = "I64", .shape = {}};
  header.tensors["empty"] = {.dtype = "F64", .shape = {0, 5}};
  return header;
}

TEST(SafetensorsHeader, ParsesWhatWasPrinted) {
  SafetensorsHeader header = example();
  const Bytes data_size = place_tensors(header);
  EXPECT_EQ(data_size, 38_B);
  const std::string printed = print_safetensors_header(header);
  EXPECT_EQ(printed.size() % 8, 0u) << "the data is aligned";
  const Bytes file_size = Bytes(std::ssize(printed)) + data_size;
  EXPECT_EQ(safetensors_text_size(printed.substr(0, 8), file_size), Bytes(std::ssize(printed) - 8));
  EXPECT_EQ(parse_safetensors_header(printed.substr(8), data_size), header);
}

TEST(SafetensorsHeader, EachTensorIsAlignedToItsElements) {
  SafetensorsHeader header;
  header.tensors["a"] = {.dtype = "U8", .shape = {3}};
  header.tensors["b"] = {.dtype = "F64", .shape = {1}};
  header.tensors["c"] = {.dtype = "F16", .shape = {1}};
  header.tensors["d"] = {.dtype = "F64", .shape = {1}};
  place_tensors(header);
  EXPECT_EQ(header.tensors["b"].begin, 0_B);
  EXPECT_EQ(header.tensors["d"].begin, 8_B);
  EXPECT_EQ(header.tensors["c"].begin, 16_B);
  EXPECT_EQ(header.tensors["a"].begin, 18_B);
}

TEST(SafetensorsHeader, WithoutTensorsIsValid) {
  EXPECT_EQ(parse_safetensors_header("{}", 0_B), SafetensorsHeader{});
  EXPECT_EQ(print_safetensors_header({}), prefix_of(8) + "{}      ");
}

TEST(SafetensorsHeader, FieldsMayHaveAnyOrder) {
  const auto header = parse_safetensors_header(
      R"({"t":{"data_offsets":[0,4],"shape":[2,1],"dtype":"I16"},"__metadata__":{"k":"v"}} )", 4_B);
  EXPECT_THAT(header.tensors.at("t").shape, ElementsAre(2, 1));
  EXPECT_EQ(header.metadata.at("k"), "v");
}

TEST(SafetensorsHeader, EveryBeginningIsRefused) {
  SafetensorsHeader header = example();
  const Bytes data_size = place_tensors(header);
  const std::string text = print_safetensors_header(header).substr(8);
  const std::size_t json = text.find_last_of('}') + 1;
  for (std::size_t size = 0; size < json; ++size) {
    EXPECT_NE(error_of(text.substr(0, size), data_size.value), "no error") << size;
  }
}

TEST(SafetensorsHeader, RefusesOtherJson) {
  EXPECT_THAT(error_of(""), StartsWith("the header does not begin with {"));
  EXPECT_THAT(error_of(" {}"), StartsWith("the header does not begin with {"));
  EXPECT_THAT(error_of("{} {"), StartsWith("the header is not JSON at byte"));
  EXPECT_THAT(error_of("{\"\xff\":1}"), StartsWith("the header is not JSON at byte"));
  for (const char* text : {R"({"a":[]})",
                           R"({"a":1})",
                           R"({"a":null})",
                           R"({"a":true})",
                           R"({"a":"F32"})",
                           R"({"a":{"b":{}}})",
                           R"({"a":{"dtype":1}})",
                           R"({"a":{"dtype":["F32"]}})",
                           R"({"a":{"shape":[[1]]}})",
                           R"({"a":{"shape":[-1]}})",
                           R"({"a":{"shape":[1.0]}})",
                           R"({"a":{"shape":[9223372036854775808]}})",
                           R"({"a":{"shape":["1"]}})",
                           R"({"a":{"data_offsets":[0]}})",
                           R"({"a":{"data_offsets":[0,1,2]}})",
                           R"({"a":{"unknown":"F32"}})",
                           R"({"a":{"unknown":[1]}})",
                           R"({"__metadata__":[]})",
                           R"({"__metadata__":{"a":1}})",
                           R"({"__metadata__":{"a":{}}})"}) {
    EXPECT_THAT(error_of(text), HasSubstr("in place of the expected value")) << text;
  }
}

TEST(SafetensorsHeader, RefusesMissingAndRepeatedFields) {
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[0]}})"), StartsWith("tensor \"a\" lacks"));
  EXPECT_THAT(error_of(R"({"a":{}})"), StartsWith("tensor \"a\" lacks"));
  for (const char* text : {R"({"a":{"dtype":"U8","dtype":"U8"}})",
                           R"({"a":{"shape":[],"shape":[]}})",
                           R"({"a":{"data_offsets":[0,0],"data_offsets":[0,0]}})",
                           R"({"__metadata__":{},"__metadata__":{}})",
                           R"({"__metadata__":{"a":"","a":""}})",
                           R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{}})"}) {
    EXPECT_THAT(error_of(text), HasSubstr("twice")) << text;
  }
}

/// A header with tensors of the type U8: a begin and an end for each.
std::string tensors_at(const std::vector<std::pair<int, int>>& places) {
  std::string text = "{";
  for (const auto& [begin, end] : places) {
    text += "\"t" + std::to_string(text.size()) + R"(":{"dtype":"U8","shape":[)" +
            std::to_string(end - begin) + R"(],"data_offsets":[)" + std::to_string(begin) + "," +
            std::to_string(end) + "]},";
  }
  text.back() = '}';
  return text;
}

TEST(SafetensorsHeader, TensorsMustCoverTheDataOnce) {
  EXPECT_EQ(error_of(tensors_at({{2, 4}, {0, 2}, {4, 4}, {4, 5}}), 5), "no error");
  EXPECT_THAT(error_of(tensors_at({{0, 2}, {1, 3}}), 3), HasSubstr("begins at byte 1 of the data"));
  EXPECT_THAT(error_of(tensors_at({{0, 2}, {3, 4}}), 4), HasSubstr("begins at byte 3 of the data"));
  EXPECT_THAT(error_of(tensors_at({{1, 2}}), 2), HasSubstr("begins at byte 1 of the data"));
  EXPECT_THAT(error_of(tensors_at({{0, 2}, {0, 2}}), 4), HasSubstr("begins at byte 0 of the data"));
  EXPECT_THAT(error_of(tensors_at({{0, 2}}), 3),
              "the file has 3 bytes of data, but its tensors need 2");
  EXPECT_THAT(error_of(tensors_at({{0, 2}}), 1),
              "the file has 1 bytes of data, but its tensors need 2");
  EXPECT_THAT(error_of("{}", 1), "the file has 1 bytes of data, but its tensors need 0");
}

TEST(SafetensorsHeader, TheBytesOfATensorMustMatchItsTypeAndShape) {
  const auto of = [](std::string_view dtype, std::string_view shape, std::string_view bytes) {
    std::string text = R"({"a":{"dtype":")";
    return text.append(dtype)
               .append(R"(","shape":)")
               .append(shape)
               .append(R"(,"data_offsets":)")
               .append(bytes) +
           "}}";
  };
  EXPECT_EQ(error_of(of("F64", "[2,3]", "[0,48]"), 48), "no error");
  EXPECT_EQ(error_of(of("F8_E4M3", "[2]", "[0,2]"), 2), "no error");
  EXPECT_EQ(error_of(of("C64", "[]", "[0,8]"), 8), "no error");
  EXPECT_EQ(error_of(of("F32", "[2,3]", "[0,48]"), 48),
            "tensor \"a\" of type F32 and shape [2, 3] cannot have the bytes 0 to 48");
  EXPECT_THAT(error_of(of("U8", "[1]", "[1,0]"), 1), HasSubstr("cannot have the bytes 1 to 0"));
  EXPECT_THAT(error_of(of("U8", "[4294967296,4294967296]", "[0,0]")), HasSubstr("cannot have"));
  EXPECT_THAT(error_of(of("U8", "[4294967296,0,4294967296]", "[0,0]")), HasSubstr("cannot have"));
  EXPECT_THAT(error_of(of("F64", "[2305843009213693952]", "[0,0]")), HasSubstr("cannot have"));
  EXPECT_EQ(error_of(of("F4", "[2]", "[0,1]"), 1), "tensor \"a\" has the unknown type \"F4\"");
  std::string ones = "[1";
  for (int i = 1; i < 64; ++i) ones += ",1";
  EXPECT_EQ(error_of(of("U8", ones + "]", "[0,1]"), 1), "no error");
  EXPECT_THAT(error_of(of("U8", ones + ",1]", "[0,1]"), 1), HasSubstr("a number in place of"));
}

TEST(SafetensorsHeader, TheSizeOfTheTextIsChecked) {
  const auto error = [](const std::string& prefix, Bytes file_size) {
    try {
      safetensors_text_size(prefix, file_size);
    } catch (const Error& caught) {
      EXPECT_EQ(caught.kind(), ErrorKind::kMismatch);
      return std::string(caught.message());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error(prefix_of(2), 10_B), "no error");
  EXPECT_THAT(error("", 0_B), "the file has 0 bytes, but a safetensors file has at least 8");
  EXPECT_THAT(error("1234567", 7_B), HasSubstr("the file has 7 bytes"));
  EXPECT_THAT(error(prefix_of(3), 10_B), "the header has 3 bytes, but the file ends after 2");
  EXPECT_THAT(error(prefix_of(100'000'001), 1_MiB), HasSubstr("more than the limit of 100000000"));
  EXPECT_THAT(error(std::string(8, '\xff'), 1_MiB),
              HasSubstr("the header would have 18446744073709551615 bytes"));
}

TEST(SafetensorsHeader, UnprintableHeadersAreErrorsOfTheCaller) {
  const auto kind_of = [](auto call) {
    try {
      call();
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kBug;
  };
  SafetensorsHeader bad;
  bad.tensors["\xff"] = {.dtype = "U8", .shape = {1}};
  EXPECT_EQ(kind_of([&] { print_safetensors_header(bad); }), ErrorKind::kUsage);
  bad.tensors.clear();
  bad.tensors["__metadata__"] = {.dtype = "U8", .shape = {1}};
  EXPECT_EQ(kind_of([&] { print_safetensors_header(bad); }), ErrorKind::kUsage);
  bad.tensors.clear();
  bad.tensors["a"] = {.dtype = "C128", .shape = {1}};
  EXPECT_EQ(kind_of([&] { place_tensors(bad); }), ErrorKind::kUnsupported);
  bad.tensors["a"] = {.dtype = "U8", .shape = {-1}};
  EXPECT_EQ(kind_of([&] { place_tensors(bad); }), ErrorKind::kUsage);
}

}  // namespace
}  // namespace peal::train
