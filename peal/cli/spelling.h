// The spellings of the option for the number of ranks: peal's, mpirun's, horovodrun's and
// torchrun's.
#pragma once

#include <string>
#include <vector>

namespace peal::cli {

/// `option` in the declared spelling: -np 2, -np=2, -n=2, --num-proc=2, --nproc-per-node=2 and
/// --nproc_per_node=2 become -n 2 or -n2. In other options, _ becomes -.
std::string as_declared(const std::string& option);

/// Applies as_declared to all arguments that begin with a hyphen.
void spell_as_declared(std::vector<std::string>& arguments);

/// Throws Error(usage) if an argument is "--option=": the parser would take the next argument as
/// its value.
void refuse_empty_values(const std::vector<std::string>& arguments);

/// Whether `option` gives the number of ranks, in any of these spellings.
bool is_rank_count(const std::string& option);

}  // namespace peal::cli
