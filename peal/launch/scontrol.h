// Asks Slurm about a job, and reads the lines of `scontrol show job --oneliner`. Called by
// allocation_end.cpp, lost_batch_host.cpp and the runner for Slurm.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace peal::launch {

/// The output of a command of Slurm. Errors: resource (Slurm does not answer, or refuses).
std::string ask_slurm(const std::vector<std::string>& words);

/// The value of a field such as JobState=RUNNING in a line of `scontrol show job --oneliner`. Empty
/// if the line lacks the field.
///
/// The user chooses the name of the job and the comment, which may look like fields. So this
/// function looks for ids only in the text before JobName, and for other fields only in the text
/// from JobState on. If a field occurs twice there, the first value is returned, because comments
/// and paths come last. A line with two texts " JobState=" has no fields, because peal cannot tell
/// which one is Slurm's. Pure.
std::string slurm_field(std::string_view line, std::string_view name);

/// The lines of this job in the output of `scontrol show job --oneliner`: several for a
/// heterogeneous job, whose components count as well. The output also has lines of other jobs, if
/// `job` is the first task of an array: its number is also the number of the array. Pure.
std::vector<std::string_view> lines_of_job(std::string_view text, std::string_view job);

}  // namespace peal::launch
