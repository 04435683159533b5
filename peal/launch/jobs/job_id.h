// Ids of submitted jobs: how they are made, and how the text that a user types finds one. Pure but
// for the random part. Called by job_folder.cpp, and by all commands that take an id.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace peal::launch::jobs {

/// The longest id. In Kubernetes, an id of this length still names the objects of the job
/// unchanged.
inline constexpr std::size_t kLongestJobId = 32;

/// The length of the random part.
inline constexpr std::size_t kRandomPartLength = 6;

/// A readable part of the job's name, "-", and `random_part`: "MNIST_run" becomes
/// "mnist-run-7k2pxd". The id has lower-case letters, digits and "-", begins with a letter, and
/// does not end with "-". So it is a DNS label, a name for Slurm, containers and folders.
std::string make_job_id(std::string_view name, std::string_view random_part);

/// Letters and digits that are not easily confused. No vowels, so that they make no words.
/// Errors: resource (the system has no random numbers).
std::string make_random_part();

/// Whether `text` is an id that make_job_id can make.
bool is_job_id(std::string_view text);

/// The id that `text` means. The first rule that finds an id applies:
///   1. the id that is equal to `text`;
///   2. the only id that begins with `text`;
///   3. the only job whose name is `text`: "MNIST_1" means "mnist-1-7k2pxd", not "mnist-10-8qhw2x";
///   4. the only job whose name begins with `text`.
/// Rules 3 and 4 do not apply to a text that ends as ids do, because it may be a misspelt id.
/// Errors: usage. If several ids begin with `text`, the error lists them. If no id does, the error
///   names the nearest.
std::string find_job_id(std::string_view text, std::span<const std::string> ids);

}  // namespace peal::launch::jobs
