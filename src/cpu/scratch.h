// Scratch memory of the CPU backend, placed once by reserve(): one function adds it up and cuts it.
#pragma once

#include <vector>

#include "cpu/kernels.h"
#include "ops/ops.h"
#include "tensor/buffer.h"

namespace inferd::cpu {

// An id that may be drawn, with its logit or its unnormalised probability.
struct Candidate {
  int32_t id;
  float x;
};

struct Scratch {
  // Results of a slice of queries: of one segment, or merged so far.
  struct Partial {
    float* largest = nullptr;  // (kSliceQueries)
    float* sum = nullptr;      // (kSliceQueries)
    float* acc = nullptr;      // (kSliceQueries, head_dim filled up to a multiple of 16)
  };
  struct Worker {
    uint8_t* values = nullptr;  // one tile of weights, a byte an element
    float* queries = nullptr;   // one slice's, for the attention kernel
    float* expanded = nullptr;  // K or V of kKvTokens positions
    float* scores = nullptr;    // (kSliceQueries, kSegment)
    Partial running;
    Partial segment;
  };
  // What the sampling of one row of logits needs.
  struct Sampler {
    float* x = nullptr;               // (vocab) the logits, where the raw ones must be kept
    float* p = nullptr;               // (vocab) unnormalised probabilities
    int32_t* counts = nullptr;        // (vocab) zero between rows
    int32_t* ids = nullptr;           // (vocab)
    Candidate* candidates = nullptr;  // (vocab)
    Candidate* sorted = nullptr;      // (vocab)
    float* block_largest = nullptr;   // (vocab / 64)
    double* tile_sums = nullptr;      // (vocab / 1,024)
  };

  // Slices of attention for which segments may be handed out apart; with more, whole slices keep the workers
  // busy.
  static constexpr int64_t kSlicesAWorker = 2;

  // One linear's activations, quantised; written and read inside linear().
  std::byte* records_32 = nullptr;
  std::byte* records_256 = nullptr;
  uint32_t* bf16_pairs = nullptr;  // or rounded, for bf16 dot products; null where the level has none
  std::vector<Worker> workers;
  std::vector<Sampler> samplers;
  int64_t partial_count = 0;
  float* partials = nullptr;
  int64_t partial_floats = 0;  // of one

  Partial partial(int64_t index) const { return cut(partials + index * partial_floats); }
  static Partial cut(float* floats) { return {floats, floats + kSliceQueries, floats + 2 * kSliceQueries}; }

  // Cuts `arena`, or only adds up when the arena has no buffer.
  void place(Arena& arena, const OpsLimits& limits, int threads, bool bf16_dot);
};

}  // namespace inferd::cpu
