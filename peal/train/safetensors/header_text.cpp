#include "peal/train/safetensors/header_text.h"

#include <limits>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "peal/base/error.h"
#include "peal/base/printable.h"

namespace peal::train {
namespace {

constexpr std::size_t kMostDimensions = 64;

/// Receives the events of nlohmann's parser. Each method has the name and the form that the parser
/// expects. All of them throw if the event does not belong where it occurs.
class Reader {
 public:
  using Json = nlohmann::json;

  SafetensorsHeader header;

  bool start_object(std::size_t) {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTop;
        return true;
      case Place::kTop:
        if (!key_given_) break;
        key_given_ = false;
        place_ = in_metadata_ ? Place::kMetadata : Place::kTensor;
        return true;
      default:
        break;
    }
    return refuse("an object");
  }

  bool key(std::string& name) {
    if (place_ == Place::kTop) {
      top_key(std::move(name));
    } else {
      field_ = std::move(name);
    }
    key_given_ = true;
    return true;
  }

  bool string(std::string& text) {
    if (place_ == Place::kMetadata) {
      if (!header.metadata.emplace(field_, std::move(text)).second) refuse_twice(field_);
      return true;
    }
    if (place_ == Place::kTensor && field_ == "dtype") {
      set_once(has_dtype_);
      tensor_->dtype = std::move(text);
      return true;
    }
    return refuse("a text");
  }

  bool start_array(std::size_t) {
    if (place_ == Place::kTensor && field_ == "shape") {
      set_once(has_shape_);
      place_ = Place::kShape;
      return true;
    }
    if (place_ == Place::kTensor && field_ == "data_offsets") {
      set_once(has_bytes_);
      place_ = Place::kBytes;
      offsets_ = 0;
      return true;
    }
    return refuse("a list");
  }

  bool number_unsigned(std::uint64_t number) {
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return refuse("a number beyond 2^63");
    }
    const auto value = static_cast<std::int64_t>(number);
    if (place_ == Place::kShape && tensor_->shape.size() < kMostDimensions) {
      tensor_->shape.push_back(value);
      return true;
    }
    if (place_ == Place::kBytes && offsets_ < 2) {
      (offsets_++ == 0 ? tensor_->begin : tensor_->end) = Bytes(value);
      return true;
    }
    return refuse("a number");
  }

  bool end_array() {
    if (place_ == Place::kBytes && offsets_ != 2) return refuse("a list of one number or none");
    place_ = Place::kTensor;
    return true;
  }

  bool end_object() {
    if (place_ == Place::kTensor && !(has_dtype_ && has_shape_ && has_bytes_)) {
      throw damaged(fmt::format("tensor {} lacks one of dtype, shape and data_offsets",
                                quoted_beginning(name_)));
    }
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool null() { return refuse("null"); }
  bool boolean(bool) { return refuse("a boolean"); }
  bool number_integer(std::int64_t) { return refuse("a negative number"); }
  bool number_float(double, const std::string&) { return refuse("a number that is not whole"); }
  bool binary(Json::binary_t&) { return refuse("binary data"); }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) {
    throw damaged(fmt::format("the header is not JSON at byte {}", position));
  }

 private:
  enum class Place : unsigned char { kStart, kTop, kMetadata, kTensor, kShape, kBytes, kEnd };

  static Error damaged(const std::string& what) { return Error(ErrorKind::kMismatch, what); }

  void top_key(std::string name) {
    name_ = std::move(name);
    in_metadata_ = name_ == "__metadata__";
    if (in_metadata_) {
      if (has_metadata_) refuse_twice(name_);
      has_metadata_ = true;
      return;
    }
    const auto [entry, is_new] = header.tensors.try_emplace(name_);
    if (!is_new) refuse_twice(name_);
    tensor_ = &entry->second;
    has_dtype_ = has_shape_ = has_bytes_ = false;
  }

  void set_once(bool& has) {
    if (has) refuse_twice(name_ + ": " + field_);
    has = true;
  }

  [[noreturn]] void refuse_twice(const std::string& name) {
    throw damaged(fmt::format("the header has {} twice", quoted_beginning(name)));
  }

  [[noreturn]] bool refuse(std::string_view what) {
    const bool inside = place_ != Place::kStart && place_ != Place::kTop;
    throw damaged(fmt::format("the header has {} in place of the expected value{}{}",
                              what,
                              name_.empty() ? "" : " of " + quoted_beginning(name_),
                              inside && !field_.empty() ? ": " + quoted_beginning(field_) : ""));
  }

  Place place_ = Place::kStart;
  bool key_given_ = false;
  bool in_metadata_ = false;
  bool has_metadata_ = false;
  bool has_dtype_ = false, has_shape_ = false, has_bytes_ = false;
  int offsets_ = 0;
  std::string name_;                             // of the tensor, or __metadata__
  std::string field_;                            // in it
  SafetensorsHeader::Tensor* tensor_ = nullptr;  // the one that is being read
};

}  // namespace

SafetensorsHeader read_header_text(std::string_view text) {
  if (!text.starts_with('{')) {  // the parser would accept spaces and a mark of the byte order
    throw Error(ErrorKind::kMismatch, "the header does not begin with {");
  }
  Reader reader;
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return std::move(reader.header);
}

}  // namespace peal::train
