#include "peal/base/secret.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "peal/base/error.h"

namespace peal {
namespace {

#if defined(__x86_64__)
[[gnu::target("avx512f")]] void wipe_registers_of_avx512() noexcept {
  asm volatile(
      "vpxorq %zmm16, %zmm16, %zmm16\n\tvpxorq %zmm17, %zmm17, %zmm17\n\t"
      "vpxorq %zmm18, %zmm18, %zmm18\n\tvpxorq %zmm19, %zmm19, %zmm19\n\t"
      "vpxorq %zmm20, %zmm20, %zmm20\n\tvpxorq %zmm21, %zmm21, %zmm21\n\t"
      "vpxorq %zmm22, %zmm22, %zmm22\n\tvpxorq %zmm23, %zmm23, %zmm23\n\t"
      "vpxorq %zmm24, %zmm24, %zmm24\n\tvpxorq %zmm25, %zmm25, %zmm25\n\t"
      "vpxorq %zmm26, %zmm26, %zmm26\n\tvpxorq %zmm27, %zmm27, %zmm27\n\t"
      "vpxorq %zmm28, %zmm28, %zmm28\n\tvpxorq %zmm29, %zmm29, %zmm29\n\t"
      "vpxorq %zmm30, %zmm30, %zmm30\n\tvpxorq %zmm31, %zmm31, %zmm31");
}
[[gnu::target("avx")]] void wipe_registers_of_avx() noexcept { asm volatile("vzeroall"); }
void wipe_registers_of_sse() noexcept {
  asm volatile(
      "pxor %xmm0, %xmm0\n\tpxor %xmm1, %xmm1\n\tpxor %xmm2, %xmm2\n\tpxor %xmm3, %xmm3\n\t"
      "pxor %xmm4, %xmm4\n\tpxor %xmm5, %xmm5\n\tpxor %xmm6, %xmm6\n\tpxor %xmm7, %xmm7\n\t"
      "pxor %xmm8, %xmm8\n\tpxor %xmm9, %xmm9\n\tpxor %xmm10, %xmm10\n\tpxor %xmm11, %xmm11\n\t"
      "pxor %xmm12, %xmm12\n\tpxor %xmm13, %xmm13\n\tpxor %xmm14, %xmm14\n\tpxor %xmm15, %xmm15");
}
#endif

}  // namespace

/// The mapping. The system rounds its size up to whole pages.
class Secret::Page final {
 public:
  explicit Page(std::string_view text) : size_(text.size()) {
    constexpr int kProtection = PROT_READ | PROT_WRITE;
    void* const start = ::mmap(nullptr, size_, kProtection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw system_error("cannot map memory for the job's secret", errno);
    start_ = static_cast<char*>(start);
    ::madvise(start_, size_, MADV_DONTDUMP);  // before the text is there
    std::ranges::copy(text, start_);
    wipe_registers();
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

bool operator==(const Secret& a, const Secret& b) {
  const bool are_equal = a.text() == b.text();
  wipe_registers();
  return are_equal;
}

std::string_view Secret::text() const { return page_ ? page_->text() : ""; }

#if defined(__x86_64__)
/// All vector registers belong to the called function.
[[gnu::noinline]] void wipe_registers() noexcept {
  if (__builtin_cpu_supports("avx512f") != 0) wipe_registers_of_avx512();
  if (__builtin_cpu_supports("avx") != 0) {
    wipe_registers_of_avx();
  } else {
    wipe_registers_of_sse();
  }
}
#elif defined(__aarch64__)
/// The lower halves of v8 to v15 belong to the caller.
[[gnu::noinline]] void wipe_registers() noexcept {
  asm volatile(
      "movi v0.2d, #0\n\tmovi v1.2d, #0\n\tmovi v2.2d, #0\n\tmovi v3.2d, #0\n\t"
      "movi v4.2d, #0\n\tmovi v5.2d, #0\n\tmovi v6.2d, #0\n\tmovi v7.2d, #0\n\t"
      "movi v16.2d, #0\n\tmovi v17.2d, #0\n\tmovi v18.2d, #0\n\tmovi v19.2d, #0\n\t"
      "movi v20.2d, #0\n\tmovi v21.2d, #0\n\tmovi v22.2d, #0\n\tmovi v23.2d, #0\n\t"
      "movi v24.2d, #0\n\tmovi v25.2d, #0\n\tmovi v26.2d, #0\n\tmovi v27.2d, #0\n\t"
      "movi v28.2d, #0\n\tmovi v29.2d, #0\n\tmovi v30.2d, #0\n\tmovi v31.2d, #0");
}
#else
void wipe_registers() noexcept {}
#endif

void wipe(std::string& text) noexcept {
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

}  // namespace peal
