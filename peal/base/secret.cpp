#include "peal/base/secret.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "peal/base/error.h"

namespace peal {
/// The mapping. The system rounds its size up to whole pages.
class Secret::Page final {
 public:
  explicit Page(std::string_view text) : size_(text.size()) {
    constexpr int kProtection = PROT_READ | PROT_WRITE;
    void* const start = ::mmap(nullptr, size_, kProtection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw system_error("cannot map memory for the job's secret", errno);
    start_ = static_cast<char*>(start);
    ::madvise(start_, size_, MADV_DONTDUMP);  // before the text is written
    std::ranges::copy(text, start_);
  }
  ~Page() {
    ::explicit_bzero(start_, size_);
    ::munmap(start_, size_);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  std::string_view text() const { return {start_, size_}; }

 private:
  char* start_ = nullptr;
  std::size_t size_;
};

Secret::Secret(std::string_view text) {
  if (!text.empty()) page_ = std::make_shared<const Page>(text);
}

bool operator==(const Secret& a, const Secret& b) { return a.text() == b.text(); }

std::string_view Secret::text() const { return page_ ? page_->text() : ""; }

void wipe(std::string& text) noexcept {
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

}  // namespace peal
