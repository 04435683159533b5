// Names of the objects of a job in Kubernetes. Pure. Called by the manifests and by the runner.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace peal::launch::kubernetes {

/// A DNS label of at most `limit` characters, different for different texts.
/// - A text that is safe stays as it is: lower-case letters, digits and "-", beginning with a
///   letter, ending with a letter or digit, not too long. Example: "mnist-3".
/// - Any other text becomes a readable part and a hash of the whole text: "MNIST_3" becomes
///   "mnist-3-x" and ten characters. A safe text that ends like this is changed, too.
/// Two texts have the same name only if 50 bits of their hashes are equal.
std::string safe_name(std::string_view text, std::size_t limit);

/// The longest name of a job. With a role and an index, the names of its pods fit into 63
/// characters.
inline constexpr std::size_t kLongestJobName = 36;

/// The name of the headless Service, of the Secret and of a TrainJob, and the value of the label
/// peal.job.
std::string job_name(std::string_view id);

/// The name of the Indexed Job of a role with `nodes` nodes. Its pods have the host names
/// "<name>-0" to "<name>-<nodes - 1>".
std::string role_job_name(std::string_view id, std::string_view role, int nodes);

/// The name by which a node is reached inside of the namespace: "<role's job>-<index>.<service>".
std::string host_name(std::string_view id, std::string_view role, int nodes, int index);

}  // namespace peal::launch::kubernetes
