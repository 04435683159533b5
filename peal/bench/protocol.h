// The messages between the coordinator and its workers over a unix socket. Each command and each
// answer is one line, so that workers in other languages need no parser. After "ok" to a timing,
// the times follow in binary form.
//
//   worker:       hello BACKEND RANK NOTE
//   coordinator:  prepare slot=0 op=all_reduce dtype=f32 ranks=2 count=16384 modulus=1024 place=out
//                 variant=registered
//   worker:       ok 0 | missing WHY | wrong WHERE | failed WHY
//   coordinator:  time slot=0 warmup=2 iterations=100 batch=1 rewrite=1
//   worker:       ok 100, then 100 times (begin, end) as int64 nanoseconds of CLOCK_MONOTONIC
//
// A slot keeps a prepared case until the next prepare of the slot; slot 0 first frees all slots.
// The end of the file ends the worker.
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
  std::string variant;  // the kind of memory, or another variant of the backend
};

enum class Rewriting : unsigned char {
  kNone,
  kInputs,  // each rank rewrites its input before each operation, as a user would
};

/// Do `warmup` + `iterations` times: rewrite, meet, read the clock, run `batch` operations, read
/// the clock. In a batch of several operations, the rewriting before each operation is inside the
/// time.
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
    kMissing,  // this backend lacks the operation or type
    kWrong,    // the result is wrong
    kFailed,
  };
  Kind kind = Kind::kOk;
  std::string text;             // for all kinds but kOk
  std::vector<Interval> times;  // for kOk
};
/// The answer with its times, as sent over the socket.
std::string encode(const Answer&);
/// Takes an answer from the beginning of `bytes`, if it is complete. Errors: mismatch.
std::optional<Answer> try_take_answer(std::string& bytes);

}  // namespace peal::bench
