#include "peal/launch/kubernetes/kubectl.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"

namespace peal::launch::kubernetes {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The last line without "Warning:", because kubectl writes the reason there.
std::string last_line(std::string_view err) {
  std::string_view best;
  while (!err.empty()) {
    const std::string_view line = err.substr(0, err.find('\n'));
    err.remove_prefix(std::min(err.size(), line.size() + 1));
    if (!line.empty() && !line.starts_with("Warning:")) best = line;
  }
  return printable(best.substr(0, 600));
}

}  // namespace

Kubectl::Kubectl(std::vector<std::string> command, Timeout patience)
    : command_(std::move(command)), patience_(patience) {}

std::vector<std::string> Kubectl::with_command(const std::vector<std::string>& words) const {
  std::vector<std::string> all = command_;
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

Answer Kubectl::run(const std::vector<std::string>& words,
                    std::string_view input,
                    const Interrupt& interrupt) const {
  Answer answer = ask_program({.words = with_command(words),
                               .input = input,
                               .patience = patience_,
                               .if_missing = "install kubectl, or add its folder to PATH"},
                              interrupt);
  if (!answer.exit_code) {
    throw Error(ErrorKind::kResource,
                fmt::format("kubectl has not answered for {} s: check the connection with the "
                            "cluster, for example by `kubectl get pods`",
                            std::chrono::ceil<std::chrono::seconds>(patience_).count()));
  }
  return answer;
}

std::string Kubectl::must(std::string_view during,
                          const std::vector<std::string>& words,
                          std::string_view input,
                          const Interrupt& interrupt) const {
  Answer answer = run(words, input, interrupt);
  if (answer.exit_code != 0) throw Error(ErrorKind::kResource, explain(during, answer.err));
  return std::move(answer.out);
}

ProgramStream Kubectl::stream(const std::vector<std::string>& words) const {
  return ProgramStream(with_command(words));
}

std::string explain(std::string_view during, std::string_view err) {
  const std::string reason = last_line(err);
  constexpr std::array kUnreachable = {"refused",
                                       "Unable to connect",
                                       "no such host",
                                       "i/o timeout",
                                       "deadline exceeded",
                                       "no configuration has been provided",
                                       "unable to load root certificates",
                                       "does not exist"};
  if (has(err, "Forbidden") || has(err, "forbidden")) {
    return fmt::format(
        "could not {}: the cluster does not permit it ({}): ask its administrator "
        "for the right to create, get, list, patch and delete jobs, pods, services "
        "and secrets in this namespace, or choose another namespace",
        during,
        reason);
  }
  if (has(err, "Unauthorized") || has(err, "must be logged in")) {
    return fmt::format(
        "could not {}: the cluster does not know this user ({}): log in to the "
        "cluster again",
        during,
        reason);
  }
  if (std::ranges::any_of(kUnreachable, [&](const char* part) { return has(err, part); })) {
    return fmt::format(
        "could not {}: kubectl reaches no cluster ({}): check `kubectl config "
        "current-context`, and the file in KUBECONFIG",
        during,
        reason);
  }
  return fmt::format("could not {}: kubectl says: {}", during, reason);
}

bool says_already_exists(const Answer& answer) {
  return answer.exit_code != 0 && has(answer.err, "AlreadyExists");
}

bool says_unknown_kind(const Answer& answer) {
  return answer.exit_code != 0 && has(answer.err, "have a resource type");
}

}  // namespace peal::launch::kubernetes
