// The range of launches that are traced. Other launches run in PoCL as without the capture.
#pragma once
#include <cstdint>

namespace capture {

struct LaunchWindow {
  bool is_set = false;  // false: all launches are traced, without snapshots around them
  uint64_t first = 0, end = ~0ull;
  bool traces(uint64_t launch) const { return first <= launch && launch < end; }
  // Whether a launch index lies just before, between or just after traced launches.
  bool touches(uint64_t launch) const { return first < end && first <= launch && launch <= end; }
};

}  // namespace capture
