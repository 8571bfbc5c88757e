// Where something stands in a text.
#pragma once

#include <cstddef>

namespace inferd {

// A half-open range of byte offsets.
struct ByteRange {
  size_t begin;
  size_t end;

  bool operator==(const ByteRange&) const = default;
};

}  // namespace inferd
