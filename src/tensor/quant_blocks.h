// Bit layouts of the GGML quantisation blocks, as a GGUF file stores them (little-endian, no padding).
// Source: the GGUF specification and the tables of gguf-py; checked bit for bit by shared/golden/quant.
// x[i] is element i of the block; d, m and dmin are IEEE halves.
#pragma once

#include <cstdint>

namespace inferd {

// x = d · (q − 8); byte j holds q[j] in its low and q[j+16] in its high half.
struct BlockQ4_0 {
  static constexpr int32_t kElements = 32;
  uint16_t d;
  uint8_t q[16];
};

// x = d · q + m; halves as in Q4_0.
struct BlockQ4_1 {
  static constexpr int32_t kElements = 32;
  uint16_t d;
  uint16_t m;
  uint8_t q[16];
};

// x = d · (q − 16); the low four bits as in Q4_0, bit i of `high` is the fifth bit of q[i].
struct BlockQ5_0 {
  static constexpr int32_t kElements = 32;
  uint16_t d;
  uint8_t high[4];
  uint8_t q[16];
};

// x = d · q + m; bits as in Q5_0.
struct BlockQ5_1 {
  static constexpr int32_t kElements = 32;
  uint16_t d;
  uint16_t m;
  uint8_t high[4];
  uint8_t q[16];
};

// x = d · q.
struct BlockQ8_0 {
  static constexpr int32_t kElements = 32;
  uint16_t d;
  int8_t q[32];
};

// Eight sub-blocks of 32: x = d · scale[s] · q − dmin · min[s]. `scales` packs eight 6-bit scales and eight
// 6-bit mins: s < 4: scale = scales[s] & 63, min = scales[s+4] & 63; s ≥ 4: scale = (scales[s+4] & 15) |
// (scales[s−4] >> 6) << 4, min = (scales[s+4] >> 4) | (scales[s] >> 6) << 4. Bytes q[32·p … 32·p+31] hold
// sub-block 2p in their low and 2p+1 in their high halves.
struct BlockQ4_K {
  static constexpr int32_t kElements = 256;
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t q[128];
};

// As Q4_K with a fifth bit: bit s of high[j] belongs to element j of sub-block s.
struct BlockQ5_K {
  static constexpr int32_t kElements = 256;
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t high[32];
  uint8_t q[128];
};

// Sixteen sub-blocks of 16: x = d · scale[s] · (q − 32). Two halves of 128 elements each take 64 bytes of
// `low` and 32 of `high`; in a half, element 32·g + j (g = 0…3, j = 0…31) has its low four bits in low[32·(g
// mod 2) + j], low half of the byte for g < 2, high half otherwise, and its two high bits in bits 2g, 2g+1 of
// high[j].
struct BlockQ6_K {
  static constexpr int32_t kElements = 256;
  uint8_t low[128];
  uint8_t high[64];
  int8_t scales[16];
  uint16_t d;
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 &&
              sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176 &&
              sizeof(BlockQ6_K) == 210);

}  // namespace inferd
