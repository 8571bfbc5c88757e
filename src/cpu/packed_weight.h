// Weights of the CPU backend: tiles of sixteen rows (tile_layout.h), packed at load by all workers.
#pragma once

#include <memory>
#include <span>

#include "base/threads.h"
#include "cpu/slab.h"
#include "ops/ops.h"

namespace inferd::cpu {

class CpuWeight final : public PackedWeight {
 public:
  struct Tiles {
    DType dtype;
    int64_t first_row;  // of the weight
    int64_t rows;
    int64_t count;  // tiles, the last filled up with zero rows
    int64_t tile_bytes;
    uint8_t* data;
  };

  // Bytes of the packed form. Requires check_groups().
  static int64_t bytes_of(std::span<const RowGroup> groups);

  // Lays the groups out in `memory`, bytes_of() of it. Requires check_groups().
  CpuWeight(std::span<const RowGroup> groups, SlabPart memory, ThreadPool& pool);

  std::span<const Tiles> tiles() const { return tiles_; }
  int64_t tile_count() const { return tile_count_; }  // of all groups

  // out = row `row`, dequantised as the file's format defines it.
  void read_row(float* out, int64_t row) const;

 private:
  SlabPart memory_;
  std::vector<Tiles> tiles_;
  int64_t tile_count_ = 0;
};

}  // namespace inferd::cpu
