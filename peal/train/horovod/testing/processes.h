// Ranks as processes, because a process has one context of Horovod.
#pragma once

#include <exception>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/horovod.h"
#include "peal/launch/spawn.h"

namespace peal::hvd::testing {

/// What did not hold on a rank: at most some lines.
class Findings {
 public:
  void expect(bool holds, const std::string& what) {
    if (!holds && ++count_ <= 8) text_ << "rank " << hvd::rank() << ": " << what << "\n";
  }

  void expect_equal(const Tensor& actual, const Tensor& wanted, const std::string& what) {
    expect_close(actual, wanted, 0, what);
  }

  void expect_close(const Tensor& actual,
                    const Tensor& wanted,
                    double tolerance,
                    const std::string& what) {
    const bool same_form = actual.defined() && actual.scalar_type() == wanted.scalar_type() &&
                           actual.sizes() == wanted.sizes();
    if (same_form && (actual.numel() == 0 ||
                      torch::allclose(actual, wanted, tolerance, tolerance, /*equal_nan=*/true))) {
      return;
    }
    std::ostringstream text;
    text << what << ": is " << actual << ", but must be " << wanted;
    expect(false, text.str());
  }

  /// The call throws an Error of this kind and class, with a text that contains `part`.
  template <class Thrown = Error, class Call>
  void expect_error(ErrorKind kind, const std::string& part, Call&& call, const std::string& what) {
    try {
      call();
      expect(false, what + " did not throw");
    } catch (const Error& error) {
      const std::string text = error.what();
      expect(error.kind() == kind && text.find(part) != std::string::npos, what + " threw " + text);
      expect(dynamic_cast<const Thrown*>(&error) != nullptr, what + " threw another class");
    }
  }

  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  int count_ = 0;
};

/// Calls body(findings) in `ranks` new processes between init and shutdown, and expects no
/// findings.
inline void on_processes(int ranks,
                         const std::function<void(Findings&)>& body,
                         const InitOptions& options = {}) {
  const auto found = spawn(ranks, [&](Rank own) -> std::string {
    torch::set_num_threads(1);
    Findings findings;
    init(options);
    try {
      body(findings);
    } catch (const std::exception& error) {
      return findings.text() + "rank " + std::to_string(own) + " threw " + error.what();
    }
    shutdown();
    return findings.text();
  });
  EXPECT_THAT(found, ::testing::Each(""));
}

}  // namespace peal::hvd::testing
