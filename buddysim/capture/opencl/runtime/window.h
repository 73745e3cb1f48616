// Which launches are traced: those of the window; the others run in PoCL as they would without the capture.
#pragma once
#include <cstdint>

namespace capture {

struct Window {
  bool given = false;  // else all launches are traced, and no snapshots are taken around them
  uint64_t first = 0, end = ~0ull;
  bool traces(uint64_t launch) const { return first <= launch && launch < end; }
  // Whether a point (launches before it) lies just before, between or just after traced launches.
  bool touches(uint64_t point) const { return first < end && first <= point && point <= end; }
};

}  // namespace capture
