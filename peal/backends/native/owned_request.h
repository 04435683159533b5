// A request that outlives the call that made it.
#pragma once

#include <vector>

#include "peal/group/backend.h"

namespace peal::native {

/// Owns the lists, but not the memory that they point to.
class OwnedRequest {
 public:
  explicit OwnedRequest(const Request& request)
      : request_(request),
        input_(request.input.begin(), request.input.end()),
        output_(request.output.begin(), request.output.end()),
        counts_(request.counts.begin(), request.counts.end()) {
    request_.input = input_;
    request_.output = output_;
    request_.counts = counts_;
  }
  OwnedRequest(OwnedRequest&&) = default;             // vectors keep their memory when moved,
  OwnedRequest& operator=(OwnedRequest&&) = default;  // so the spans stay valid
  OwnedRequest(const OwnedRequest&) = delete;
  OwnedRequest& operator=(const OwnedRequest&) = delete;

  const Request& get() const { return request_; }

 private:
  Request request_;
  std::vector<ConstBuffer> input_;
  std::vector<Buffer> output_;
  std::vector<Elements> counts_;
};

}  // namespace peal::native
