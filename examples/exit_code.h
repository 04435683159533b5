// How the programs with LibTorch end.
#pragma once

#include <exception>
#include <iostream>

#include <torch/torch.h>

/// Returns what `run` returns. If `run` throws, prints the error after the name of the program, and
/// returns 1.
template <class Run>
int exit_code_of(const char* program, Run&& run) {
  try {
    return run();
  } catch (const c10::Error& error) {  // what() would be a page of stack frames
    std::cerr << program << ": " << error.what_without_backtrace() << "\n";
  } catch (const std::exception& error) {
    std::cerr << program << ": " << error.what() << "\n";
  }
  return 1;
}
