// The spellings of the option that says how many ranks: the program's own, mpirun's and torchrun's.
#pragma once

#include <string>
#include <vector>

namespace peal::cli {

/// `option` as the commands declare it: -np 2, -np=2, -n=2, --nproc-per-node=2 and
/// --nproc_per_node=2 are -n 2 and -n2. Of other options, only _ becomes -.
std::string as_declared(const std::string& option);

/// All of the arguments that begin with a hyphen.
void spell_as_declared(std::vector<std::string>& arguments);

/// Throws Error(usage) where an argument is "--option=": what stands behind it would be taken for
/// its value.
void refuse_empty_values(const std::vector<std::string>& arguments);

/// Whether `option` says how many ranks, in any of those spellings.
bool is_rank_count(const std::string& option);

}  // namespace peal::cli
