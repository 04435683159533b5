#include "mnist/gzip.h"

#include <algorithm>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <zlib.h>

#include "peal/base/error.h"

namespace mnist {
namespace {

constexpr std::size_t kPiece = 64 << 10;
constexpr int kGzipOnly = 16 + MAX_WBITS;

[[noreturn]] void refuse_gzip(const std::string& why) {
  throw peal::Error(peal::ErrorKind::kUsage, "not a valid gzip file: " + why);
}

/// zlib's state for one pass over the input.
class Inflater {
 public:
  explicit Inflater(std::span<const std::byte> input) : left_(input) {
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) {
      throw peal::Error(peal::ErrorKind::kResource, "zlib has no memory to unpack a gzip file");
    }
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Fills a part of `piece` and returns the size of that part.
  std::size_t unpack(std::span<std::byte> piece) {
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    const std::size_t offered = std::min(left_.size(), kMost);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(left_.data()));
    stream_.avail_in = static_cast<uInt>(offered);
    stream_.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream_.avail_out = static_cast<uInt>(piece.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    left_ = left_.subspan(offered - stream_.avail_in);
    if (result == Z_STREAM_END) {
      next_member();
    } else if (result != Z_OK) {
      refuse_gzip(result == Z_BUF_ERROR ? "it ends too early"
                  : stream_.msg         ? stream_.msg
                                        : "corrupt");
    }
    return piece.size() - stream_.avail_out;
  }

  bool done() const { return done_; }

 private:
  void next_member() {
    done_ = !is_gzip(left_);  // bytes after the last member are padding
    if (!done_) inflateReset(&stream_);
  }

  std::span<const std::byte> left_;
  z_stream stream_{};
  bool done_ = false;
};

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

std::vector<std::byte> gunzip(std::span<const std::byte> bytes, peal::Bytes limit) {
  if (!is_gzip(bytes)) refuse_gzip("it does not begin with 1f 8b");
  std::vector<std::byte> content;
  std::vector<std::byte> piece(kPiece);
  for (Inflater inflater(bytes); !inflater.done();) {
    const std::size_t filled = inflater.unpack(piece);
    if (content.size() + filled > static_cast<std::size_t>(limit.value)) {
      refuse_gzip(fmt::format("it unpacks to more than the {} bytes allowed", limit.value));
    }
    content.insert(
        content.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(filled));
  }
  return content;
}

}  // namespace mnist
