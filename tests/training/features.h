// The features of training that equivalence_test.cpp combines.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace peal::train::testing {

struct Features {
  bool accumulation = false;  // a step has several backward passes
  bool uneven_data = false;  // ranks have batches of different sizes, and different numbers of them
  bool zero = false;         // ZeroRedundancyOptimizer
  bool clipping = false;
  bool sync_batch_norm = false;
  bool static_graph = false;  // Graph::kStatic
  bool tied = false;          // two layers share their parameters
  bool unused = false;        // some parameters are used by some ranks, in some steps, or never
};

struct Feature {
  const char* name;
  bool Features::*flag;
};

inline constexpr std::array<Feature, 8> kFeatures = {{
    {"Accumulation", &Features::accumulation},
    {"UnevenData", &Features::uneven_data},
    {"Zero", &Features::zero},
    {"Clipping", &Features::clipping},
    {"SyncBatchNorm", &Features::sync_batch_norm},
    {"StaticGraph", &Features::static_graph},
    {"Tied", &Features::tied},
    {"Unused", &Features::unused},
}};

/// "AccumulationTied"; all features: "All"
inline std::string name_of(const Features& features) {
  std::string name;
  std::size_t count = 0;
  for (const Feature& feature : kFeatures) {
    if (!(features.*feature.flag)) continue;
    name += feature.name;
    ++count;
  }
  if (count == kFeatures.size()) return "All";
  return count == 0 ? "Plain" : name;
}

/// Without a feature, each feature alone, all pairs, and all features together.
inline std::vector<Features> combinations() {
  std::vector<Features> all = {{}};
  Features every;
  for (std::size_t i = 0; i < kFeatures.size(); ++i) {
    every.*kFeatures[i].flag = true;
    for (std::size_t j = 0; j <= i; ++j) {  // j == i: the feature alone
      Features& pair = all.emplace_back();
      pair.*kFeatures[i].flag = pair.*kFeatures[j].flag = true;
    }
  }
  all.push_back(every);
  return all;
}

}  // namespace peal::train::testing
