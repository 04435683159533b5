// Parses the values of the options of `peal bench`. Used by bench_command.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/base/dtype.h"
#include "peal/bench/op.h"
#include "peal/config/config.h"

namespace peal::cli {

// Each function throws Error(usage), which names the option, the value found and the values
// expected.

/// {"all_reduce,broadcast", "all"}: each operation once, in order.
std::vector<bench::Op> parse_ops(const std::vector<std::string>& words);
/// "f32,bfloat16": peal's or torch's names.
std::vector<DType> parse_dtypes(const std::string& text);
/// "2,4"
std::vector<int> parse_ranks(const std::string& text);
/// "gloo,mpi": each must be in `known`; errors call a name a `what`. Empty for an empty text.
std::vector<std::string> parse_names(std::string_view option,
                                     std::string_view what,
                                     const std::string& text,
                                     const std::vector<std::string>& known);
/// "auto"
TransportChoice parse_transport(const std::string& text);
/// "0.5"
double parse_tolerance(const std::string& text);

/// peal's names of the types that can be measured.
std::vector<std::string> measured_dtypes();

}  // namespace peal::cli
