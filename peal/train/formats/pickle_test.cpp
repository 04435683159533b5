#include "peal/train/formats/pickle.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Parts of pickles, in the bytes of protocol 2.
std::string text(const std::string& value) {
  return std::string("X") + static_cast<char>(value.size()) + std::string(3, '\0') + value;
}
std::string number(int value) { return std::string("K") + static_cast<char>(value); }
std::string tuple(const std::string& items) { return "(" + items + "t"; }
std::string dict(const std::string& items) { return "}(" + items + "u"; }
std::string ordered_dict(const std::string& items) {
  return "ccollections\nOrderedDict\n)R(" + items + "u";
}
std::string storage(const std::string& type, const std::string& key) {
  return tuple(text("storage") + "ctorch\n" + type + "\n" + text(key) + text("cpu") + number(9)) +
         "Q";
}
std::string tensor(const std::string& from, const std::string& shape, const std::string& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n" +
         tuple(from + number(1) + tuple(shape) + tuple(strides) + "\x89" + ordered_dict("")) + "R";
}
std::string vector_of(const std::string& key) {
  return tensor(storage("FloatStorage", key), number(3), number(1));
}
std::string pickle(const std::string& value) { return "\x80\x02" + value + "."; }

std::string pickle_error(const std::string& bytes) {
  try {
    parse_pickled_tensors(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
    return std::string(error.message());
  }
  return "no error";
}

std::vector<std::string> names_in(const std::string& value) {
  std::vector<std::string> names;
  for (const PickledTensor& one : parse_pickled_tensors(pickle(value))) names.push_back(one.name);
  return names;
}

TEST(Pickle, HasTheTensorsOfAStateDict) {
  const std::string value =
      ordered_dict(
          text("conv.weight") +
          tensor(storage("HalfStorage", "0"), number(2) + number(3), number(3) + number(1)) +
          text("conv.bias") + vector_of("1")) +
      dict(text("_metadata") + "N") + "b";
  const PickledTensor weight = {.name = "conv.weight",
                                .storage = "0",
                                .type = "HalfStorage",
                                .offset = 1,
                                .shape = {2, 3},
                                .strides = {3, 1}};
  const PickledTensor bias = {.name = "conv.bias",
                              .storage = "1",
                              .type = "FloatStorage",
                              .offset = 1,
                              .shape = {3},
                              .strides = {1}};
  EXPECT_THAT(parse_pickled_tensors(pickle(value)), ElementsAre(weight, bias));
}

TEST(Pickle, NamesJoinTheKeys) {
  EXPECT_THAT(
      names_in(dict(text("model") + ordered_dict(text("w") + vector_of("0")) + text("state") +
                    dict(number(7) + dict(text("step") + vector_of("1"))) + text("list") + "](" +
                    vector_of("2") + number(5) + vector_of("3") + "e")),
      ElementsAre("model.w", "state.7.step", "list.0", "list.2"));
  EXPECT_THAT(names_in(vector_of("0")), ElementsAre(""));
  EXPECT_THAT(names_in(number(3)), IsEmpty());
}

TEST(Pickle, ParametersAndTensorsOfTheThirdVersionAreTensors) {
  const std::string parameter = "ctorch._utils\n_rebuild_parameter\n" +
                                tuple(vector_of("0") + "\x88" + ordered_dict("")) + "R";
  EXPECT_THAT(names_in(dict(text("p") + parameter)), ElementsAre("p"));
  const std::string third = "ctorch._utils\n_rebuild_tensor_v3\n" +
                            tuple(storage("UntypedStorage", "0") + number(0) + tuple(number(2)) +
                                  tuple(number(1)) + "\x89" + "N" + "ctorch\nuint16\n") +
                            "R";
  EXPECT_EQ(parse_pickled_tensors(pickle(third))[0].type, "uint16");
}

TEST(Pickle, NothingIsCalledAndOtherObjectsAreLeftOut) {
  const std::string system = "cposix\nsystem\n" + tuple(text("touch /tmp/called")) + "R";
  const std::string object = "cargparse\nNamespace\n)\x81" + dict(text("w") + vector_of("0")) + "b";
  EXPECT_THAT(names_in(dict(text("a") + system + text("b") + object + text("c") + vector_of("1"))),
              ElementsAre("c"));
}

TEST(Pickle, TheSameTensorMayHaveTwoNames) {
  const std::string stored = vector_of("0") + "q\x05";
  EXPECT_THAT(names_in(dict(text("a") + stored + text("b") + "h\x05")), ElementsAre("a", "b"));
  EXPECT_THAT(pickle_error(pickle(dict(text("a.b") + vector_of("0") + text("a") +
                                       dict(text("b") + vector_of("1"))))),
              HasSubstr("the tensor \"a.b\" twice"));
}

TEST(Pickle, EveryBeginningIsRefused) {
  const std::string whole = pickle(dict(text("a") + vector_of("0")));
  EXPECT_EQ(pickle_error(whole), "no error");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(pickle_error(whole.substr(0, size)), HasSubstr("the pickle has")) << size;
  }
}

TEST(Pickle, RefusesImpossiblePrograms) {
  for (const char* bytes : {".",
                            "t.",
                            "(.",
                            "N(t",
                            "Rx",
                            "a.",
                            "N)s.",
                            "]Na]s.",
                            "h\x01.",
                            "q\x01.",
                            "0.",
                            "\x80\x06N.",
                            "i.",
                            "}(Nu.",
                            "](K\x01K\x01u.",
                            "NQ."}) {
    EXPECT_NE(pickle_error(bytes), "no error") << bytes;
  }
}

TEST(Pickle, RefusesTensorsThatAreNotWellFormed) {
  const std::string good = storage("FloatStorage", "0");
  for (const std::string& bad : {tensor(number(0), number(3), number(1)),
                                 tensor(good, number(3), ""),
                                 tensor(good, "J\xff\xff\xff\xff", number(1)),
                                 tensor(good, text("3"), number(1)),
                                 tensor(tuple(text("storage")) + "Q", number(3), number(1))}) {
    EXPECT_THAT(pickle_error(pickle(bad)), HasSubstr("is not well-formed"));
  }
}

TEST(Pickle, HasALimitForValuesInsideOfEachOther) {
  EXPECT_THAT(pickle_error(pickle("}q\x01" + text("a") + "h\x01s")),
              HasSubstr("inside of each other"));
  std::string doubled = "]q" + std::string(1, '\0');  // 2^60 paths to the same list
  for (int i = 0; i < 60; ++i) {
    doubled += "](h" + std::string(1, static_cast<char>(i)) + "h" +
               std::string(1, static_cast<char>(i)) + "eq" +
               std::string(1, static_cast<char>(i + 1));
  }
  EXPECT_THAT(pickle_error(pickle(doubled)), HasSubstr("inside of each other"));
}

TEST(ElementsNeeded, IsTheLastElementAndOne) {
  const auto needed =
      [](std::int64_t offset, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides) {
        return elements_needed(
            {.offset = offset, .shape = std::move(shape), .strides = std::move(strides)});
      };
  constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(needed(1, {2, 3}, {3, 1}), 7);
  EXPECT_EQ(needed(1, {2, 3}, {1, 2}), 7);
  EXPECT_EQ(needed(4, {}, {}), 5);
  EXPECT_EQ(needed(4, {0, 3}, {3, 1}), 4);
  EXPECT_EQ(needed(4, {5}, {0}), 5) << "one element, five times";
  EXPECT_EQ(needed(0, {kLast, kLast}, {1, 1}), std::nullopt);
  EXPECT_EQ(needed(0, {2}, {kLast}), std::nullopt);
  EXPECT_EQ(needed(kLast, {1}, {1}), std::nullopt);
  EXPECT_EQ(needed(1, {3}, {kLast}), std::nullopt);
}

}  // namespace
}  // namespace peal::train
