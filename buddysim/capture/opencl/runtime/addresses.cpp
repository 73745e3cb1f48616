#include "addresses.h"

namespace capture {

uint64_t Addresses::first_fit(const std::map<uint64_t, uint64_t>& taken, uint64_t first, uint64_t bytes) {
  uint64_t at = first;
  for (auto it = taken.lower_bound(first); it != taken.end() && it->first < at + bytes; ++it) at = it->second;
  return at;
}

uint64_t Addresses::allocate(uint64_t bytes) {
  if (bytes >= SMALL) {
    bytes = rounded(bytes, PAGE);
    uint64_t base = first_fit(taken_pages_, FIRST, bytes);
    taken_pages_[base] = base + bytes;
    return base;
  }
  bytes = rounded(bytes, GRAIN);
  for (auto& [page, count] : small_in_page_) {
    uint64_t base = first_fit(taken_, page, bytes);
    if (base + bytes > page + PAGE) continue;
    taken_[base] = base + bytes;
    count++;
    return base;
  }
  uint64_t page = first_fit(taken_pages_, FIRST, PAGE);
  taken_pages_[page] = page + PAGE;
  small_in_page_[page] = 1;
  taken_[page] = page + bytes;
  return page;
}

void Addresses::release(uint64_t base) {
  auto entry = taken_.find(base);
  if (entry == taken_.end()) {
    taken_pages_.erase(base);
    return;
  }
  taken_.erase(entry);
  uint64_t page = base / PAGE * PAGE;
  if (--small_in_page_[page] == 0) {
    small_in_page_.erase(page);
    taken_pages_.erase(page);
  }
}

}  // namespace capture
