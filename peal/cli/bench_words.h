// The words behind the options of `peal bench`, as values. Used by bench_command.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/base/config.h"
#include "peal/base/dtype.h"
#include "peal/bench/bench.h"

namespace peal::cli {

// Each throws Error(usage), which names the option, what stands there and what it takes.

/// {"all_reduce,broadcast", "all"}: each operation once.
std::vector<bench::Op> parse_ops(const std::vector<std::string>& words);
/// "f32,bfloat16": by peal's names, or torch's.
std::vector<DType> parse_dtypes(const std::string& text);
/// "2,4"
std::vector<int> parse_ranks(const std::string& text);
/// "gloo,mpi", each a `what` that is `known`. Nothing for no text.
std::vector<std::string> parse_names(std::string_view option,
                                     std::string_view what,
                                     const std::string& text,
                                     const std::vector<std::string>& known);
/// "auto"
TransportChoice parse_transport(const std::string& text);
/// "0.5"
double parse_tolerance(const std::string& text);

/// The names of the types that can be measured, as peal has them.
std::vector<std::string> measured_dtypes();

}  // namespace peal::cli
