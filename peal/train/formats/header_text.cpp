#include "peal/train/formats/header_text.h"

#include <fmt/format.h>

#include "peal/train/formats/json_events.h"

namespace peal::train {
namespace {

constexpr std::size_t kMostDimensions = 64;

/// {"__metadata__": {KEY: TEXT, ...}, NAME: {"dtype": TEXT, "shape": [...], "data_offsets": [..,
/// ..]}, ...}
class HeaderEvents : public JsonEvents {
 public:
  SafetensorsHeader header;

  bool start_object(std::size_t) {
    if (place_ == Place::kStart) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop) {
      place_ = in_metadata_ ? Place::kMetadata : Place::kTensor;
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(std::string& text) {
    if (place_ == Place::kTop) {
      begin_value(std::move(text));
    } else {
      set_field(std::move(text));
    }
    return true;
  }

  bool string(std::string& text) {
    if (place_ == Place::kMetadata) {
      if (!header.metadata.emplace(field(), std::move(text)).second) refuse_twice(field());
    } else if (place_ == Place::kTensor && field() == "dtype") {
      set_once(has_dtype_);
      tensor_->dtype = std::move(text);
    } else {
      refuse("a text");
    }
    return true;
  }

  bool start_array(std::size_t) {
    if (place_ == Place::kTensor && field() == "shape") {
      set_once(has_shape_);
      place_ = Place::kShape;
    } else if (place_ == Place::kTensor && field() == "data_offsets") {
      set_once(has_bytes_);
      place_ = Place::kBytes;
      offsets_ = 0;
    } else {
      refuse("a list");
    }
    return true;
  }

  bool number_unsigned(std::uint64_t number) {
    if (place_ == Place::kShape && tensor_->shape.size() < kMostDimensions) {
      tensor_->shape.push_back(checked(number));
    } else if (place_ == Place::kBytes && offsets_ < 2) {
      (offsets_++ == 0 ? tensor_->begin : tensor_->end) = Bytes(checked(number));
    } else {
      refuse("a number");
    }
    return true;
  }

  bool end_array() {
    if (place_ == Place::kBytes && offsets_ != 2) refuse("a list that is too short");
    place_ = Place::kTensor;
    return true;
  }

  bool end_object() {
    if (place_ == Place::kTensor && !(has_dtype_ && has_shape_ && has_bytes_)) {
      throw damaged(fmt::format("tensor {} lacks one of dtype, shape and data_offsets",
                                quoted_beginning(name())));
    }
    set_field("");
    place_ = Place::kTop;
    return true;
  }

 private:
  enum class Place : unsigned char { kStart, kTop, kMetadata, kTensor, kShape, kBytes };

  void begin_value(std::string key) {
    set_name(std::move(key));
    in_metadata_ = name() == "__metadata__";
    if (in_metadata_) {
      if (has_metadata_) refuse_twice(name());
      has_metadata_ = true;
      return;
    }
    const auto [entry, is_new] = header.tensors.try_emplace(name());
    if (!is_new) refuse_twice(name());
    tensor_ = &entry->second;
    has_dtype_ = has_shape_ = has_bytes_ = false;
  }

  void set_once(bool& has) {
    if (has) refuse_twice(name() + ": " + field());
    has = true;
  }

  Place place_ = Place::kStart;
  bool in_metadata_ = false;
  bool has_metadata_ = false;
  bool has_dtype_ = false, has_shape_ = false, has_bytes_ = false;
  int offsets_ = 0;
  SafetensorsHeader::Tensor* tensor_ = nullptr;  // the one that is being read
};

}  // namespace

SafetensorsHeader read_header_text(std::string_view text) {
  HeaderEvents events;
  read_json(text, events);
  return std::move(events.header);
}

}  // namespace peal::train
