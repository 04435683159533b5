#include "peal/train/formats/sharding_info.h"

#include <fmt/format.h>

#include "peal/train/formats/json_events.h"
#include "peal/train/formats/json_string.h"

namespace peal::train {
namespace {

class ShardingEvents : public JsonEvents {
 public:
  ShardingInfo info;

  bool start_object(std::size_t) {
    if (depth_ == 2) refuse("an object");
    ++depth_;
    return true;
  }

  bool key(std::string& text) {
    if (depth_ == 1) {
      set_name(std::move(text));
      const auto [entry, is_new] = info.try_emplace(name());
      if (!is_new) refuse_twice(name());
      offsets_ = &entry->second;
      has_offsets_ = false;
    } else {
      set_field(std::move(text));
    }
    return true;
  }

  bool start_array(std::size_t) {
    if (depth_ != 2 || in_list_ || has_offsets_ || field() != "saved_offsets") refuse("a list");
    in_list_ = has_offsets_ = true;
    return true;
  }

  bool number_unsigned(std::uint64_t number) {
    if (!in_list_ || offsets_->size() == 64) refuse("a number");
    offsets_->push_back(checked(number));
    return true;
  }

  bool end_array() {
    in_list_ = false;
    return true;
  }

  bool end_object() {
    if (depth_ == 2 && !has_offsets_) refuse("no saved_offsets");
    set_field("");
    --depth_;
    return true;
  }

 private:
  int depth_ = 0;
  bool in_list_ = false;
  bool has_offsets_ = false;
  std::vector<std::int64_t>* offsets_ = nullptr;  // of the tensor that is being read
};

}  // namespace

ShardingInfo parse_sharding_info(std::string_view text) {
  ShardingEvents events;
  read_json(text, events);
  return std::move(events.info);
}

std::string print_sharding_info(const ShardingInfo& info) {
  std::string text = "{";
  for (const auto& [name, offsets] : info) {
    if (text.size() > 1) text += ',';
    text +=
        fmt::format(R"({}:{{"saved_offsets":[{}]}})", json_string(name), fmt::join(offsets, ","));
  }
  return text + '}';
}

}  // namespace peal::train
