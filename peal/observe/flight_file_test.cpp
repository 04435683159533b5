#include "peal/observe/flight_file.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "peal/observe/testing/flight_files.h"

namespace peal::observe {
namespace {

/// The record of a rank that has done three operations, of which the last one failed.
std::string some_flight() {
  const TestFolder folder;
  const RecorderOptions options = small_record(folder.path());
  const auto recorder = FlightRecorder::make(options);
  const std::uint8_t world = recorder->add_group("world", std::array<Rank, 2>{0, 1});
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
    const auto place = recorder->begin(sum_in(world), sequence, Elements(1));
    recorder->end(place,
                  sequence < 3 ? FlightRecorder::Ending::kWell : FlightRecorder::Ending::kFailed);
  }
  recorder->failed(world, Error(ErrorKind::kPeerLost, "rank 1 was lost"));
  recorder->left(Departure::kByException);
  return read_text_file(options.path);
}

template <class Number>
void put(std::string& bytes, std::size_t at, Number number) {
  std::memcpy(bytes.data() + at, &number, sizeof(number));
}

/// The offset of a word of an operation. The first operation is in the second place of the ring.
std::size_t word_at(std::size_t place, std::size_t word) {
  return operations_offset(2) + place * sizeof(OperationRecord) + word;
}

std::string refusal(const std::string& bytes) {
  try {
    parse_flight(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
    return error.what();
  }
  return "";
}

TEST(FlightFileTest, AHalfWrittenEntryIsSkippedAndCounted) {
  const std::string whole = some_flight();
  ASSERT_EQ(parse_flight(whole).operations.size(), 3U);
  for (const std::size_t word : {offsetof(OperationRecord, stamp),
                                 offsetof(OperationRecord, start),
                                 offsetof(OperationRecord, sequence),
                                 offsetof(OperationRecord, kind),
                                 offsetof(OperationRecord, count)}) {
    std::string torn = whole;
    put(torn, word_at(2, word), std::uint64_t{0});
    const Flight flight = parse_flight(torn);
    EXPECT_EQ(flight.operations.size(), 2U) << word;
    EXPECT_EQ(flight.torn, 1U) << word;
  }
}

TEST(FlightFileTest, AnEndBeforeTheStartBelongsToAnotherOperation) {
  std::string bytes = some_flight();
  put(bytes, word_at(2, offsetof(OperationRecord, end)), std::uint64_t{1});
  EXPECT_EQ(parse_flight(bytes).torn, 1U);
}

TEST(FlightFileTest, AHalfWrittenClockIsNotRead) {
  std::string bytes = some_flight();
  const Flight before = parse_flight(bytes);
  for (std::size_t i = 1; i < kClocks; ++i) {
    put(bytes,
        offsetof(FlightHeader, clocks) + i * sizeof(ClockPair) + offsetof(ClockPair, wall),
        std::uint64_t{12345});
  }
  const Flight after = parse_flight(bytes);
  EXPECT_EQ(after.last_seen, after.begun);
  EXPECT_EQ(after.begun, before.begun);
}

TEST(FlightFileTest, BytesThatAreNotAFlightAreAMismatch) {
  const std::string whole = some_flight();
  EXPECT_NE(refusal(""), "");
  EXPECT_NE(refusal(std::string(whole.size(), '\0')), "") << "created, and not written yet";
  EXPECT_NE(refusal(whole.substr(0, whole.size() - 1)), "");
  EXPECT_NE(refusal(whole + "x"), "");
  const auto with = [&](std::size_t at, std::uint32_t number) {
    std::string bytes = whole;
    put(bytes, at, number);
    return refusal(bytes);
  };
  EXPECT_NE(with(offsetof(FlightHeader, version), kFlightVersion + 1), "");
  EXPECT_NE(with(offsetof(FlightHeader, rank), 2), "");
  EXPECT_NE(with(offsetof(FlightHeader, world_size), 0), "");
  EXPECT_NE(with(offsetof(FlightHeader, world_size), ~0U), "");
  EXPECT_NE(with(offsetof(FlightHeader, operations), ~0U), "");
  EXPECT_NE(with(offsetof(FlightHeader, groups), ~0U), "");
  EXPECT_NE(with(offsetof(FlightHeader, failure), 200), "");
}

TEST(FlightFileTest, RandomBytesGiveAFlightOrAMismatch) {
  const std::string whole = some_flight();
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    for (int change = 0; change < 4; ++change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    try {
      EXPECT_LE(parse_flight(bytes).operations.size(), 8U);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
    }
  }
}

}  // namespace
}  // namespace peal::observe
