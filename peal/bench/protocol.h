// What the coordinator and its workers say to each other over a unix socket. A command and an
// answer are one line each, so that workers in other languages need no parser; "ok" to a timing is
// followed by its times as they lie in memory.
//
//   worker:       hello BACKEND RANK NOTE
//   coordinator:  prepare slot=0 op=all_reduce dtype=f32 ranks=2 count=16384 modulus=1024 place=out
//                 variant=registered
//   worker:       ok 0 | missing WHY | wrong WHERE | failed WHY
//   coordinator:  time slot=0 warmup=2 iterations=100 batch=1 rewrite=1
//   worker:       ok 100, then 100 times (begin, end) as int64 nanoseconds of CLOCK_MONOTONIC
//
// A slot keeps a prepared case until it is prepared again; slot 0 frees them all first. The end of
// the file ends the worker.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "peal/bench/case.h"
#include "peal/bench/statistics.h"

namespace peal::bench {

struct Hello {
  std::string backend;
  Rank rank = 0;
  std::string note;  // versions and settings, for the report
};
std::string encode(const Hello&);
/// Errors: mismatch.
Hello parse_hello(std::string_view line);

/// Allocate buffers, run the operation once and check the result.
struct Prepare {
  int slot = 0;
  Case the_case;
  std::string variant;  // what memory, or which way to do it: see the backends
};

enum class Rewriting : unsigned char {
  kNone,
  kInputs,  // each rank writes its input anew before each operation, as a user would
};

/// Do `warmup` + `iterations` times: rewrite, meet, take the time, `batch` operations, take the
/// time. In a batch of several each operation has its rewriting before it, inside the time taken.
struct Timing {
  int slot = 0;
  int warmup = 0;
  int iterations = 0;
  int batch = 1;
  Rewriting rewriting = Rewriting::kInputs;
};

using Command = std::variant<Prepare, Timing>;
std::string encode(const Command&);
/// Errors: mismatch.
Command parse_command(std::string_view line);

struct Answer {
  enum class Kind : unsigned char {
    kOk,
    kMissing,  // this backend has no such operation or type
    kWrong,    // the result is not what it must be
    kFailed,
  };
  Kind kind = Kind::kOk;
  std::string text;             // of all but kOk
  std::vector<Interval> times;  // of kOk
};
/// The answer, times included, as it goes over the socket.
std::string encode(const Answer&);
/// Takes an answer from the beginning of `bytes` if all of it is there. Errors: mismatch.
std::optional<Answer> try_take_answer(std::string& bytes);

}  // namespace peal::bench
