// The workers in other languages (workers/), as text in the program. CMake makes embedded.cpp.
#pragma once

namespace peal::bench {

extern const char* const kMpiWorker;
extern const char* const kGlooWorker;

}  // namespace peal::bench
