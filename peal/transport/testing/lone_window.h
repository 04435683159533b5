// A window of one rank, over a file that the test inspects.
#pragma once

#include <sys/stat.h>

#include <utility>

#include <gtest/gtest.h>

#include "peal/base/units.h"
#include "peal/system/fd.h"
#include "peal/system/mapping.h"
#include "peal/system/shared_file.h"
#include "peal/transport/window/window.h"

namespace peal::transport::testing {

class SingleRankWindow {
 public:
  explicit SingleRankWindow(Bytes arena, Fd file = make_shared_file("peal arena", Bytes(0)))
      : file_(std::move(file)),
        arena_(Mapping::of_file(file_.get(), arena)),
        window_(over(file_.get())) {}

  Window& operator*() { return window_; }
  Window* operator->() { return &window_; }

  int file() const { return file_.get(); }
  /// Memory that the file occupies.
  Bytes taken() const {
    struct stat file {};
    EXPECT_EQ(::fstat(file_.get(), &file), 0);
    return Bytes(file.st_blocks * 512);
  }
  /// Another window over the same memory, with another descriptor of the file.
  Window over(int file) const {
    return {
        0, 0, {{.control = control_.bytes(), .stage = {}, .arena = arena_.bytes()}}, file, nullptr};
  }

 private:
  Fd file_;
  Mapping control_ = Mapping::anonymous(Window::kControlBytes);
  Mapping arena_;
  Window window_;
};

}  // namespace peal::transport::testing
