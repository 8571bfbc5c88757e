// Bit layouts of the GGML quantisation blocks, as a GGUF file stores them (little-endian, no padding).
// Source: the GGUF specification and the tables of gguf-py; checked bit for bit by shared/golden/quant.
// x[i] is element i of the block; d, m and dmin are IEEE halves.
#pragma once

#include <array>
#include <bit>
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

// Sixteen sub-blocks of 16: x = d · (scales[s] & 15) · q − dmin · (scales[s] >> 4). In half h of the block
// (128 elements) element 32·g + j (g = 0…3, j = 0…31) has its two bits in bits 2g, 2g+1 of q[32·h + j].
struct BlockQ2_K {
  static constexpr int32_t kElements = 256;
  uint8_t scales[16];
  uint8_t q[64];
  uint16_t d;
  uint16_t dmin;
};

// Sixteen sub-blocks of 16: x = d · (scale[s] − 32) · (q − 4). The low two bits of q as in Q2_K; bit 4·h + g
// of high[j] is the third. Six-bit scales: the low four bits of scale s are the low half of scales[s], or for
// s ≥ 8 the high half of scales[s−8]; the high two are bits 2·(s div 4), + 1 of scales[8 + s mod 4].
struct BlockQ3_K {
  static constexpr int32_t kElements = 256;
  uint8_t high[32];
  uint8_t q[64];
  uint8_t scales[12];
  uint16_t d;
};
constexpr int q3_k_scale(const uint8_t* packed, int s) {
  const int low = s < 8 ? packed[s] & 15 : packed[s - 8] >> 4;
  return (low | (packed[8 + s % 4] >> (2 * (s / 4)) & 3) << 4) - 32;
}

// x = d · q, d a float. sums[i] is that of q[16·i … 16·i+15]; nothing here reads it.
struct BlockQ8_K {
  static constexpr int32_t kElements = 256;
  float d;
  int8_t q[256];
  int16_t sums[16];
};

// x = d · kIq4Values[q]; halves as in Q4_0.
inline constexpr std::array<int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};
struct BlockIQ4_NL {
  static constexpr int32_t kElements = 32;
  uint16_t d;
  uint8_t q[16];
};

// Eight sub-blocks of 32: x = d · (scale[s] − 32) · kIq4Values[q]; bytes q[16·s … 16·s+15] as those of Q4_0.
// The low four bits of scale s are half s mod 2 of scales_low[s div 2], the high two are bits 2s, 2s+1 of
// scales_high.
struct BlockIQ4_XS {
  static constexpr int32_t kElements = 256;
  uint16_t d;
  uint16_t scales_high;
  uint8_t scales_low[4];
  uint8_t q[128];
};
constexpr int iq4_xs_scale(const BlockIQ4_XS& b, int s) {
  return ((b.scales_low[s / 2] >> (4 * (s % 2)) & 15) | (b.scales_high >> (2 * s) & 3) << 4) - 32;
}

// x = 2^(e − 128) · kMxfp4Values[q]; halves as in Q4_0. The OCP Microscaling formats (MX) specification 1.0
// (2023) has the scale 2^(e − 127) and E2M1 numbers, of which these are the doubles; its NaN scale (e = 255)
// is 2^127 here, as ggml has it.
inline constexpr std::array<int8_t, 16> kMxfp4Values = {0, 1,  2,  3,  4,  6,  8,  12,
                                                        0, -1, -2, -3, -4, -6, -8, -12};
struct BlockMXFP4 {
  static constexpr int32_t kElements = 32;
  uint8_t e;
  uint8_t q[16];
};
// 2^(e − 128); the two smallest are subnormal floats.
constexpr float mxfp4_scale(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? uint32_t{0x00200000} << e : uint32_t{e - 1U} << 23);
}

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 &&
              sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176 &&
              sizeof(BlockQ6_K) == 210);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ8_K) == 292);
static_assert(sizeof(BlockIQ4_NL) == 18 && sizeof(BlockIQ4_XS) == 136 && sizeof(BlockMXFP4) == 17);

}  // namespace inferd
