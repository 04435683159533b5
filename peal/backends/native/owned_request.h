// A request that outlives the call that made it.
#pragma once

#include <span>
#include <vector>

#include "peal/group/backend.h"

namespace peal::native {

/// A list of an operation's arguments. One item needs no memory of its own.
template <class T>
class OwnedList {
 public:
  explicit OwnedList(std::span<const T> items) : is_one_(items.size() == 1) {
    if (is_one_) {
      one_ = items.front();
    } else {
      many_.assign(items.begin(), items.end());
    }
  }

  std::span<const T> get() const {
    return is_one_ ? std::span<const T>(&one_, 1) : std::span<const T>(many_);
  }

 private:
  bool is_one_;
  T one_ = {};
  std::vector<T> many_;
};

/// Owns the lists, but not the memory that they point to.
class OwnedRequest {
 public:
  explicit OwnedRequest(const Request& request)
      : request_(request), input_(request.input), output_(request.output), counts_(request.counts) {
    request_.input = input_.get();
    request_.output = output_.get();
    request_.counts = counts_.get();
  }
  OwnedRequest(const OwnedRequest&) = delete;  // the spans point into the object
  OwnedRequest& operator=(const OwnedRequest&) = delete;

  const Request& get() const { return request_; }

 private:
  Request request_;
  OwnedList<ConstBuffer> input_;
  OwnedList<Buffer> output_;
  OwnedList<Elements> counts_;
};

}  // namespace peal::native
