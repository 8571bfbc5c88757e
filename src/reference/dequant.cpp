#include "reference/dequant.h"

#include <cstring>

#include "base/check.h"
#include "tensor/half.h"
#include "tensor/quant_blocks.h"

namespace inferd::reference {
namespace {

template <typename Block>
Block block_at(std::span<const std::byte> bytes, size_t index) {
  Block block;
  std::memcpy(&block, bytes.data() + index * sizeof(Block), sizeof(Block));
  return block;
}

int low_half(uint8_t byte) {
  return byte & 15;
}
int high_half(uint8_t byte) {
  return byte >> 4;
}

// Element i of a block of 32 four-bit values: byte j holds q[j] below and q[j + 16] above.
int nibble(const uint8_t (&q)[16], size_t i) {
  return i < 16 ? low_half(q[i]) : high_half(q[i - 16]);
}
int fifth_bit(const uint8_t (&high)[4], size_t i) {
  return (high[i / 8] >> (i % 8) & 1) << 4;
}

void expand(const BlockQ4_0& b, float* out) {
  for (size_t i = 0; i < 32; ++i) out[i] = f16_to_f32(b.d) * static_cast<float>(nibble(b.q, i) - 8);
}

void expand(const BlockQ4_1& b, float* out) {
  for (size_t i = 0; i < 32; ++i)
    out[i] = f16_to_f32(b.d) * static_cast<float>(nibble(b.q, i)) + f16_to_f32(b.m);
}

void expand(const BlockQ5_0& b, float* out) {
  for (size_t i = 0; i < 32; ++i) {
    out[i] = f16_to_f32(b.d) * static_cast<float>((nibble(b.q, i) | fifth_bit(b.high, i)) - 16);
  }
}

void expand(const BlockQ5_1& b, float* out) {
  for (size_t i = 0; i < 32; ++i) {
    out[i] = f16_to_f32(b.d) * static_cast<float>(nibble(b.q, i) | fifth_bit(b.high, i)) + f16_to_f32(b.m);
  }
}

void expand(const BlockQ8_0& b, float* out) {
  for (size_t i = 0; i < 32; ++i) out[i] = f16_to_f32(b.d) * static_cast<float>(b.q[i]);
}

int k_scale(const uint8_t (&packed)[12], size_t s) {
  return s < 4 ? packed[s] & 63 : (packed[s + 4] & 15) | (packed[s - 4] >> 6) << 4;
}
int k_min(const uint8_t (&packed)[12], size_t s) {
  return s < 4 ? packed[s + 4] & 63 : packed[s + 4] >> 4 | (packed[s] >> 6) << 4;
}

void expand(const BlockQ4_K& b, float* out) {
  for (size_t s = 0; s < 8; ++s) {
    const float scale = f16_to_f32(b.d) * static_cast<float>(k_scale(b.scales, s));
    const float min = f16_to_f32(b.dmin) * static_cast<float>(k_min(b.scales, s));
    for (size_t j = 0; j < 32; ++j) {
      const uint8_t byte = b.q[s / 2 * 32 + j];
      out[s * 32 + j] = scale * static_cast<float>(s % 2 == 0 ? low_half(byte) : high_half(byte)) - min;
    }
  }
}

void expand(const BlockQ5_K& b, float* out) {
  for (size_t s = 0; s < 8; ++s) {
    const float scale = f16_to_f32(b.d) * static_cast<float>(k_scale(b.scales, s));
    const float min = f16_to_f32(b.dmin) * static_cast<float>(k_min(b.scales, s));
    for (size_t j = 0; j < 32; ++j) {
      const uint8_t byte = b.q[s / 2 * 32 + j];
      const int q = (s % 2 == 0 ? low_half(byte) : high_half(byte)) | (b.high[j] >> s & 1) << 4;
      out[s * 32 + j] = scale * static_cast<float>(q) - min;
    }
  }
}

void expand(const BlockQ6_K& b, float* out) {
  for (size_t i = 0; i < 256; ++i) {
    const size_t half = i / 128;
    const size_t g = i % 128 / 32;
    const size_t j = i % 32;
    const uint8_t byte = b.low[half * 64 + g % 2 * 32 + j];
    const int low = g < 2 ? low_half(byte) : high_half(byte);
    const int high = b.high[half * 32 + j] >> (2 * g) & 3;
    const float scale = f16_to_f32(b.d) * static_cast<float>(b.scales[i / 16]);
    out[i] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

void expand(const BlockQ2_K& b, float* out) {
  for (size_t i = 0; i < 256; ++i) {
    const uint8_t scale = b.scales[i / 16];
    const int q = b.q[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32)) & 3;
    out[i] = f16_to_f32(b.d) * static_cast<float>(scale & 15) * static_cast<float>(q) -
             f16_to_f32(b.dmin) * static_cast<float>(scale >> 4);
  }
}

void expand(const BlockQ3_K& b, float* out) {
  for (size_t i = 0; i < 256; ++i) {
    const size_t half = i / 128;
    const size_t g = i % 128 / 32;
    const int low = b.q[half * 32 + i % 32] >> (2 * g) & 3;
    const int high = b.high[i % 32] >> (4 * half + g) & 1;
    const float scale = f16_to_f32(b.d) * static_cast<float>(q3_k_scale(b.scales, static_cast<int>(i / 16)));
    out[i] = scale * static_cast<float>((low | high << 2) - 4);
  }
}

void expand(const BlockQ8_K& b, float* out) {
  for (size_t i = 0; i < 256; ++i) out[i] = b.d * static_cast<float>(b.q[i]);
}

void expand(const BlockIQ4_NL& b, float* out) {
  for (size_t i = 0; i < 32; ++i) {
    out[i] = f16_to_f32(b.d) * static_cast<float>(kIq4Values[static_cast<size_t>(nibble(b.q, i))]);
  }
}

void expand(const BlockIQ4_XS& b, float* out) {
  for (size_t i = 0; i < 256; ++i) {
    const size_t s = i / 32;
    const uint8_t byte = b.q[16 * s + i % 16];
    const int q = i % 32 < 16 ? low_half(byte) : high_half(byte);
    const float scale = f16_to_f32(b.d) * static_cast<float>(iq4_xs_scale(b, static_cast<int>(s)));
    out[i] = scale * static_cast<float>(kIq4Values[static_cast<size_t>(q)]);
  }
}

void expand(const BlockMXFP4& b, float* out) {
  for (size_t i = 0; i < 32; ++i) {
    out[i] = mxfp4_scale(b.e) * static_cast<float>(kMxfp4Values[static_cast<size_t>(nibble(b.q, i))]);
  }
}

template <typename Block>
void expand_row(std::span<float> out, std::span<const std::byte> bytes) {
  for (size_t i = 0; i * Block::kElements < out.size(); ++i) {
    expand(block_at<Block>(bytes, i), out.data() + i * Block::kElements);
  }
}

}  // namespace

void dequantise_row(std::span<float> out, DType type, std::span<const std::byte> bytes) {
  INFERD_CHECK(static_cast<int64_t>(bytes.size()) == row_bytes(type, static_cast<int64_t>(out.size())),
               dtype_name(type), " row of ", out.size(), " elements has ", bytes.size(), " bytes");
  switch (type) {
    case DType::f32:
      std::memcpy(out.data(), bytes.data(), bytes.size());
      return;
    case DType::f16:
    case DType::bf16:
      for (size_t i = 0; i < out.size(); ++i) {
        const auto bits = block_at<uint16_t>(bytes, i);
        out[i] = type == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
      }
      return;
    case DType::q4_0:
      expand_row<BlockQ4_0>(out, bytes);
      return;
    case DType::q4_1:
      expand_row<BlockQ4_1>(out, bytes);
      return;
    case DType::q5_0:
      expand_row<BlockQ5_0>(out, bytes);
      return;
    case DType::q5_1:
      expand_row<BlockQ5_1>(out, bytes);
      return;
    case DType::q8_0:
      expand_row<BlockQ8_0>(out, bytes);
      return;
    case DType::q4_k:
      expand_row<BlockQ4_K>(out, bytes);
      return;
    case DType::q5_k:
      expand_row<BlockQ5_K>(out, bytes);
      return;
    case DType::q6_k:
      expand_row<BlockQ6_K>(out, bytes);
      return;
    case DType::q2_k:
      expand_row<BlockQ2_K>(out, bytes);
      return;
    case DType::q3_k:
      expand_row<BlockQ3_K>(out, bytes);
      return;
    case DType::q8_k:
      expand_row<BlockQ8_K>(out, bytes);
      return;
    case DType::iq4_nl:
      expand_row<BlockIQ4_NL>(out, bytes);
      return;
    case DType::iq4_xs:
      expand_row<BlockIQ4_XS>(out, bytes);
      return;
    case DType::mxfp4:
      expand_row<BlockMXFP4>(out, bytes);
      return;
    case DType::f8_e4m3:
      for (size_t i = 0; i < out.size(); ++i) out[i] = e4m3_to_f32(static_cast<uint8_t>(bytes[i]));
      return;
  }
  INFERD_CHECK(false, "dtype ", static_cast<int>(type));
}

}  // namespace inferd::reference
