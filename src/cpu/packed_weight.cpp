#include "cpu/packed_weight.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/arithmetic.h"
#include "cpu/tile_layout.h"
#include "tensor/half.h"
#include "tensor/quant_blocks.h"

namespace inferd::cpu {
namespace {

// The same block of sixteen rows, as the file stores it.
using Rows = std::array<const uint8_t*, kTileRows>;

// ---- Packing ----

void put_halves(uint8_t* out, const Rows& rows, size_t offset) {
  for (size_t r = 0; r < kTileRows; ++r) std::memcpy(out + 2 * r, rows[r] + offset, 2);
}

void put_words(uint8_t* out, const Rows& rows, size_t offset, size_t words) {
  for (size_t w = 0; w < words; ++w) {
    for (size_t r = 0; r < kTileRows; ++r)
      std::memcpy(out + w * kWordBytes + 4 * r, rows[r] + offset + 4 * w, 4);
  }
}

// Bit 4·g + b of each row's word goes to bit 8·b + g: for each b the eight bits g are pushed together.
void put_fifth_bits(uint8_t* out, const Rows& rows, size_t offset) {
  uint32_t from[kTileRows];
  uint32_t to[kTileRows] = {};
  for (size_t r = 0; r < kTileRows; ++r) std::memcpy(&from[r], rows[r] + offset, 4);
  for (uint32_t b = 0; b < 4; ++b) {
    for (size_t r = 0; r < kTileRows; ++r) {
      uint32_t bits = from[r] >> b & 0x11111111;
      bits = (bits | bits >> 3) & 0x03030303;
      bits = (bits | bits >> 6) & 0x000F000F;
      bits = (bits | bits >> 12) & 0xFF;
      to[r] |= bits << (8 * b);
    }
  }
  std::memcpy(out, to, sizeof to);
}

template <class Block, class Tile>
void pack_nibbles(uint8_t* out, const Rows& rows) {
  put_halves(out, rows, offsetof(Block, d));
  if constexpr (Tile::kMin) put_halves(out + Tile::kMinAt, rows, offsetof(Block, m));
  if constexpr (Tile::kHigh) put_fifth_bits(out + Tile::kHighAt, rows, offsetof(Block, high));
  put_words(out + Tile::kWordsAt, rows, offsetof(Block, q), Tile::kWords);
}

int k_scale(const uint8_t* packed, int s) {
  return s < 4 ? packed[s] & 63 : (packed[s + 4] & 15) | (packed[s - 4] >> 6) << 4;
}
int k_min(const uint8_t* packed, int s) {
  return s < 4 ? packed[s + 4] & 63 : packed[s + 4] >> 4 | (packed[s] >> 6) << 4;
}

// Q5_K: bit s of byte j of the file belongs to element j of sub-block s. Word 2 · pair + half gets the bits
// of sub-blocks 2 · pair (below) and 2 · pair + 1 of elements 16 · half … 16 · half + 15, four elements a
// byte.
void put_k_fifth_bits(uint8_t* out, const Rows& rows, size_t offset) {
  for (size_t half = 0; half < 2; ++half) {
    uint32_t from[4][kTileRows];  // words of the file
    for (size_t w = 0; w < 4; ++w) {
      for (size_t r = 0; r < kTileRows; ++r)
        std::memcpy(&from[w][r], rows[r] + offset + 16 * half + 4 * w, 4);
    }
    for (uint32_t pair = 0; pair < 4; ++pair) {
      uint32_t to[kTileRows] = {};
      for (uint32_t w = 0; w < 4; ++w) {
        for (size_t r = 0; r < kTileRows; ++r) {
          to[r] |= (from[w][r] >> (2 * pair) & 0x01010101) << w | (from[w][r] >> (2 * pair + 1) & 0x01010101)
                                                                      << (4 + w);
        }
      }
      std::memcpy(out + kWordBytes * (2 * pair + half), to, sizeof to);
    }
  }
}

template <class Block, class Tile>
void pack_k(uint8_t* out, const Rows& rows) {
  put_halves(out, rows, offsetof(Block, d));
  put_halves(out + Tile::kMinAt, rows, offsetof(Block, dmin));
  for (int r = 0; r < kTileRows; ++r) {
    const uint8_t* packed = rows[static_cast<size_t>(r)] + offsetof(Block, scales);
    for (int s = 0; s < 8; ++s) {
      const int at = s / 2 * 2 * kTileRows + 2 * r + s % 2;
      out[Tile::kScalesAt + at] = static_cast<uint8_t>(k_scale(packed, s));
      out[Tile::kMinsAt + at] = static_cast<uint8_t>(k_min(packed, s));
    }
  }
  if constexpr (Tile::kHighWords > 0) put_k_fifth_bits(out + Tile::kHighAt, rows, offsetof(Block, high));
  put_words(out + Tile::kWordsAt, rows, offsetof(Block, q), Tile::kWords);
}

void pack_q6_k(uint8_t* out, const Rows& rows) {
  put_halves(out, rows, offsetof(BlockQ6_K, d));
  for (size_t pair = 0; pair < TileQ6_K::kPairs; ++pair) {
    const size_t half = pair / 4;
    const size_t j = pair / 2 % 2;
    const size_t g = pair % 2;
    const size_t scale = offsetof(BlockQ6_K, scales) + 8 * half + 2 * g + j;
    for (size_t r = 0; r < kTileRows; ++r) {
      out[TileQ6_K::kScalesAt + pair * 2 * kTileRows + 2 * r] = rows[r][scale];
      out[TileQ6_K::kScalesAt + pair * 2 * kTileRows + 2 * r + 1] = rows[r][scale + 4];
    }
    put_words(out + TileQ6_K::kWordsAt + pair * 4 * kWordBytes, rows,
              offsetof(BlockQ6_K, low) + 64 * half + 32 * g + 16 * j, 4);
  }
  put_words(out + TileQ6_K::kHighAt, rows, offsetof(BlockQ6_K, high), TileQ6_K::kHighWords);
}

// The bits of the pairs are where Q6_K has its high ones.
void pack_q2_k(uint8_t* out, const Rows& rows) {
  put_halves(out, rows, offsetof(BlockQ2_K, d));
  put_halves(out + TileQ2_K::kMinAt, rows, offsetof(BlockQ2_K, dmin));
  for (size_t pair = 0; pair < TileQ2_K::kPairs; ++pair) {
    const size_t first = offsetof(BlockQ2_K, scales) + 8 * (pair / 4) + 2 * (pair % 2) + pair / 2 % 2;
    for (size_t r = 0; r < kTileRows; ++r) {
      for (size_t s = 0; s < 2; ++s) {
        const uint8_t packed = rows[r][first + 4 * s];
        const size_t at = pair * 2 * kTileRows + 2 * r + s;
        out[TileQ2_K::kScalesAt + at] = packed & 15;
        out[TileQ2_K::kMinsAt + at] = packed >> 4;
      }
    }
  }
  put_words(out + TileQ2_K::kWordsAt, rows, offsetof(BlockQ2_K, q), TileQ2_K::kWords);
}

// The same values as a block of six bits: scales are bytes there, and q − 4 + 32 is 28 … 35.
BlockQ6_K as_q6_k(const BlockQ3_K& b) {
  BlockQ6_K wide = {};
  wide.d = b.d;
  for (int s = 0; s < 16; ++s) wide.scales[s] = static_cast<int8_t>(q3_k_scale(b.scales, s));
  for (int half = 0; half < 2; ++half) {
    for (int g = 0; g < 4; ++g) {
      for (int j = 0; j < 32; ++j) {
        const int low = b.q[half * 32 + j] >> (2 * g) & 3;
        const int q = (low | (b.high[j] >> (4 * half + g) & 1) << 2) + 28;
        uint8_t& byte = wide.low[half * 64 + g % 2 * 32 + j];
        byte = static_cast<uint8_t>(byte | (q & 15) << (g < 2 ? 0 : 4));
        wide.high[half * 32 + j] = static_cast<uint8_t>(wide.high[half * 32 + j] | (q >> 4) << (2 * g));
      }
    }
  }
  return wide;
}

void pack_q3_k(uint8_t* out, const Rows& rows) {
  std::array<BlockQ6_K, kTileRows> wide;
  Rows wide_rows;
  for (size_t r = 0; r < kTileRows; ++r) {
    BlockQ3_K narrow;
    std::memcpy(&narrow, rows[r], sizeof narrow);
    wide[r] = as_q6_k(narrow);
    wide_rows[r] = reinterpret_cast<const uint8_t*>(&wide[r]);
  }
  pack_q6_k(out, wide_rows);
}

// Thirty-two signed bytes and their scale.
struct SignedPart {
  float d;
  int8_t v[32];
};

void look_up(SignedPart& part, const std::array<int8_t, 16>& values, const uint8_t* q) {
  for (size_t i = 0; i < 16; ++i) {
    part.v[i] = values[q[i] & 15];
    part.v[i + 16] = values[q[i] >> 4];
  }
}

SignedPart part_of(const BlockIQ4_NL& b, int) {
  SignedPart part = {.d = f16_to_f32(b.d)};
  look_up(part, kIq4Values, b.q);
  return part;
}
SignedPart part_of(const BlockMXFP4& b, int) {
  SignedPart part = {.d = mxfp4_scale(b.e)};
  look_up(part, kMxfp4Values, b.q);
  return part;
}
SignedPart part_of(const BlockIQ4_XS& b, int s) {
  SignedPart part = {.d = f16_to_f32(b.d) * static_cast<float>(iq4_xs_scale(b, s))};
  look_up(part, kIq4Values, b.q + 16 * s);
  return part;
}
SignedPart part_of(const BlockQ8_K& b, int s) {
  SignedPart part = {.d = b.d};
  std::memcpy(part.v, b.q + 32 * s, sizeof part.v);
  return part;
}

template <class Block>
void pack_signed(uint8_t* out, const Rows& rows) {
  for (size_t r = 0; r < kTileRows; ++r) {
    Block block;
    std::memcpy(&block, rows[r], sizeof block);
    for (int s = 0; s < Block::kElements / 32; ++s) {
      const SignedPart part = part_of(block, s);
      uint8_t* to = out + s * TileI8::kBytes;
      std::memcpy(to + 4 * r, &part.d, 4);
      for (size_t w = 0; w < TileI8::kWords; ++w) {
        std::memcpy(to + TileI8::kWordsAt + w * kWordBytes + 4 * r, part.v + 4 * w, 4);
      }
    }
  }
}

// How one type is packed: `elements` of sixteen rows, `file_bytes` each, become `tile_bytes` through pack().
struct PackRule {
  int64_t elements;
  int64_t file_bytes;
  int64_t tile_bytes;
  void (*pack)(uint8_t* out, const Rows& rows);
};

template <class Block>
constexpr PackRule rule(int64_t tile_bytes, void (*pack)(uint8_t*, const Rows&)) {
  return {Block::kElements, static_cast<int64_t>(sizeof(Block)), tile_bytes, pack};
}

PackRule rule_of(DType type) {
  switch (type) {
    case DType::f32:
      return {1, 4, kWordBytes, [](uint8_t* out, const Rows& rows) { put_words(out, rows, 0, 1); }};
    case DType::f16:
      return {1, 2, kHalfBytes, [](uint8_t* out, const Rows& rows) { put_halves(out, rows, 0); }};
    case DType::bf16:
      return {2, 4, kWordBytes, [](uint8_t* out, const Rows& rows) { put_words(out, rows, 0, 1); }};
    case DType::q4_0:
      return rule<BlockQ4_0>(TileQ4_0::kBytes, pack_nibbles<BlockQ4_0, TileQ4_0>);
    case DType::q4_1:
      return rule<BlockQ4_1>(TileQ4_1::kBytes, pack_nibbles<BlockQ4_1, TileQ4_1>);
    case DType::q5_0:
      return rule<BlockQ5_0>(TileQ5_0::kBytes, pack_nibbles<BlockQ5_0, TileQ5_0>);
    case DType::q5_1:
      return rule<BlockQ5_1>(TileQ5_1::kBytes, pack_nibbles<BlockQ5_1, TileQ5_1>);
    case DType::q8_0:
      return rule<BlockQ8_0>(TileQ8_0::kBytes, [](uint8_t* out, const Rows& rows) {
        put_halves(out, rows, offsetof(BlockQ8_0, d));
        put_words(out + TileQ8_0::kWordsAt, rows, offsetof(BlockQ8_0, q), TileQ8_0::kWords);
      });
    case DType::q4_k:
      return rule<BlockQ4_K>(TileQ4_K::kBytes, pack_k<BlockQ4_K, TileQ4_K>);
    case DType::q5_k:
      return rule<BlockQ5_K>(TileQ5_K::kBytes, pack_k<BlockQ5_K, TileQ5_K>);
    case DType::q6_k:
      return rule<BlockQ6_K>(TileQ6_K::kBytes, pack_q6_k);
    case DType::q2_k:
      return rule<BlockQ2_K>(TileQ2_K::kBytes, pack_q2_k);
    case DType::q3_k:
      return rule<BlockQ3_K>(TileQ6_K::kBytes, pack_q3_k);
    case DType::q8_k:
      return rule<BlockQ8_K>(8 * TileI8::kBytes, pack_signed<BlockQ8_K>);
    case DType::iq4_nl:
      return rule<BlockIQ4_NL>(TileI8::kBytes, pack_signed<BlockIQ4_NL>);
    case DType::iq4_xs:
      return rule<BlockIQ4_XS>(8 * TileI8::kBytes, pack_signed<BlockIQ4_XS>);
    case DType::mxfp4:
      return rule<BlockMXFP4>(TileI8::kBytes, pack_signed<BlockMXFP4>);
    case DType::f8_e4m3:
      break;  // has scales beside it: pack_f8_tile
  }
  INFERD_CHECK(false, "dtype ", static_cast<int>(type));
}

int64_t tile_bytes_of(DType type, int64_t cols) {
  if (type == DType::f8_e4m3) return f8_tile_bytes(cols);
  const PackRule rule = rule_of(type);
  return ceil_div(cols, rule.elements) * rule.tile_bytes;
}

// One tile from `rows` rows of the file, 1 … 16 of them.
void pack_tile(uint8_t* out, DType type, const std::byte* data, int64_t rows, int64_t cols) {
  const PackRule rule = rule_of(type);
  const int64_t stride = row_bytes(type, cols);
  // Missing rows, and the rest of a bf16 row with an odd number of columns, read zeros.
  constexpr int64_t kLongestBlock = 320;
  static constexpr uint8_t kZeros[kLongestBlock] = {};
  static_assert(sizeof(BlockQ8_K) <= kLongestBlock);
  Rows at;
  for (int64_t r = 0; r < kTileRows; ++r) {
    at[static_cast<size_t>(r)] = r < rows ? reinterpret_cast<const uint8_t*>(data) + r * stride : kZeros;
  }
  const int64_t whole = cols / rule.elements;
  for (int64_t b = 0; b < whole; ++b, out += rule.tile_bytes) {
    rule.pack(out, at);
    for (int64_t r = 0; r < rows; ++r) at[static_cast<size_t>(r)] += rule.file_bytes;
  }
  if (whole * rule.elements < cols) {
    uint8_t last[kTileRows][4] = {};
    for (size_t r = 0; r < kTileRows; ++r) {
      std::memcpy(last[r], at[r], 2);
      at[r] = last[r];
    }
    rule.pack(out, at);
  }
}

// Rows first_row … first_row + rows of a group of F8_E4M3; of missing rows everything is zero.
void pack_f8_tile(uint8_t* out, const RowGroup& group, int64_t first_row, int64_t rows) {
  std::memset(out, 0, static_cast<size_t>(f8_tile_bytes(group.cols)));
  for (int64_t k = 0; k < group.cols; k += kScaleCols) {
    const int64_t end = std::min(group.cols, k + kScaleCols);
    for (int64_t r = 0; r < rows; ++r) {
      const float scale = group.scales.at(first_row + r, k, group.cols);
      std::memcpy(out + 4 * r, &scale, 4);
    }
    out += kWordBytes;
    for (int64_t col = k; col < end; ++col, out += kHalfBytes) {
      for (int64_t r = 0; r < rows; ++r) {
        const auto code =
            static_cast<uint8_t>(group.data[static_cast<size_t>((first_row + r) * group.cols + col)]);
        const uint16_t half = f32_to_f16(e4m3_to_f32(code));
        std::memcpy(out + 2 * r, &half, 2);
      }
    }
  }
}

// ---- Reading a row back ----

float half_of(const uint8_t* halves, int64_t lane) {
  uint16_t bits = 0;
  std::memcpy(&bits, halves + 2 * lane, 2);
  return f16_to_f32(bits);
}

// Byte `index` of the row's words.
int byte_of(const uint8_t* words, int64_t lane, int64_t index) {
  return words[index / 4 * kWordBytes + 4 * lane + index % 4];
}

template <class Tile>
void read_nibbles(float* out, const uint8_t* block, int64_t lane) {
  const float d = half_of(block, lane);
  for (int i = 0; i < 32; ++i) {
    const int byte = byte_of(block + Tile::kWordsAt, lane, i % 16);
    int q = i < 16 ? byte & 15 : byte >> 4;
    if constexpr (Tile::kHigh) q |= (byte_of(block + Tile::kHighAt, lane, i % 4) >> (i / 4) & 1) << 4;
    out[i] = d * static_cast<float>(q - Tile::kZero);
    if constexpr (Tile::kMin) out[i] += half_of(block + Tile::kMinAt, lane);
  }
}

void read_q8_0(float* out, const uint8_t* block, int64_t lane) {
  const float d = half_of(block, lane);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(static_cast<int8_t>(byte_of(block + TileQ8_0::kWordsAt, lane, i)));
  }
}

// Byte of sub-block s in [pair][row][2].
uint8_t paired(const uint8_t* pairs, int64_t lane, int s) {
  return pairs[s / 2 * 2 * kTileRows + 2 * lane + s % 2];
}

template <class Tile>
void read_k(float* out, const uint8_t* block, int64_t lane) {
  for (int s = 0; s < 8; ++s) {
    const float scale = half_of(block, lane) * static_cast<float>(paired(block + Tile::kScalesAt, lane, s));
    const float min =
        half_of(block + Tile::kMinAt, lane) * static_cast<float>(paired(block + Tile::kMinsAt, lane, s));
    for (int j = 0; j < 32; ++j) {
      const int byte = byte_of(block + Tile::kWordsAt, lane, s / 2 * 32 + j);
      int q = s % 2 == 0 ? byte & 15 : byte >> 4;
      if constexpr (Tile::kHighWords > 0) {
        const int word = 2 * (s / 2) + j / 16;
        q |= (byte_of(block + Tile::kHighAt, lane, 4 * word + j % 4) >> (s % 2 * 4 + j / 4 % 4) & 1) << 4;
      }
      out[32 * s + j] = scale * static_cast<float>(q) - min;
    }
  }
}

void read_q6_k(float* out, const uint8_t* block, int64_t lane) {
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int s = i % 128 / 16;  // sub-block of the half
    const int second = s / 4;    // of its pair
    const int pair = 4 * half + 2 * (s % 2) + s / 2 % 2;
    const int byte = byte_of(block + TileQ6_K::kWordsAt, lane, 16 * pair + i % 16);
    const int high = byte_of(block + TileQ6_K::kHighAt, lane, half * 32 + i % 32) >> (2 * (s / 2)) & 3;
    const int q = (second == 0 ? byte & 15 : byte >> 4) | high << 4;
    const auto scale =
        static_cast<int8_t>(block[TileQ6_K::kScalesAt + pair * 2 * kTileRows + 2 * lane + second]);
    out[i] = half_of(block, lane) * static_cast<float>(scale) * static_cast<float>(q - 32);
  }
}

void read_q2_k(float* out, const uint8_t* block, int64_t lane) {
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int s = i % 128 / 16;  // sub-block of the half
    const int64_t at = (4 * half + 2 * (s % 2) + s / 2 % 2) * 2 * kTileRows + 2 * lane + s / 4;
    const int q = byte_of(block + TileQ2_K::kWordsAt, lane, half * 32 + i % 32) >> (2 * (s / 2)) & 3;
    out[i] =
        half_of(block, lane) * static_cast<float>(block[TileQ2_K::kScalesAt + at]) * static_cast<float>(q) -
        half_of(block + TileQ2_K::kMinAt, lane) * static_cast<float>(block[TileQ2_K::kMinsAt + at]);
  }
}

void read_signed(float* out, const uint8_t* block, int64_t lane, int parts) {
  for (int s = 0; s < parts; ++s, block += TileI8::kBytes, out += 32) {
    float d = 0;
    std::memcpy(&d, block + 4 * lane, 4);
    for (int i = 0; i < 32; ++i) {
      out[i] = d * static_cast<float>(static_cast<int8_t>(byte_of(block + TileI8::kWordsAt, lane, i)));
    }
  }
}

void read_f8(float* out, const uint8_t* tile, int64_t lane, int64_t cols) {
  float scale = 0;
  for (int64_t k = 0; k < cols; ++k, tile += kHalfBytes) {
    if (k % kScaleCols == 0) {
      std::memcpy(&scale, tile + 4 * lane, 4);
      tile += kWordBytes;
    }
    out[k] = half_of(tile, lane) * scale;
  }
}

void read_floats(float* out, DType type, const uint8_t* tile, int64_t lane, int64_t cols) {
  if (type == DType::f8_e4m3) return read_f8(out, tile, lane, cols);
  for (int64_t k = 0; k < cols; ++k) {
    if (type == DType::f32) {
      std::memcpy(out + k, tile + k * kWordBytes + 4 * lane, 4);
    } else if (type == DType::f16) {
      out[k] = half_of(tile + k * kHalfBytes, lane);
    } else {
      uint16_t bits = 0;
      std::memcpy(&bits, tile + k / 2 * kWordBytes + 4 * lane + k % 2 * 2, 2);
      out[k] = bf16_to_f32(bits);
    }
  }
}

void read_block(float* out, DType type, const uint8_t* block, int64_t lane) {
  switch (type) {
    case DType::q4_0:
      return read_nibbles<TileQ4_0>(out, block, lane);
    case DType::q4_1:
      return read_nibbles<TileQ4_1>(out, block, lane);
    case DType::q5_0:
      return read_nibbles<TileQ5_0>(out, block, lane);
    case DType::q5_1:
      return read_nibbles<TileQ5_1>(out, block, lane);
    case DType::q8_0:
      return read_q8_0(out, block, lane);
    case DType::q4_k:
      return read_k<TileQ4_K>(out, block, lane);
    case DType::q5_k:
      return read_k<TileQ5_K>(out, block, lane);
    case DType::q6_k:
    case DType::q3_k:
      return read_q6_k(out, block, lane);
    case DType::q2_k:
      return read_q2_k(out, block, lane);
    case DType::iq4_nl:
    case DType::mxfp4:
      return read_signed(out, block, lane, 1);
    case DType::iq4_xs:
    case DType::q8_k:
      return read_signed(out, block, lane, 8);
    case DType::f32:
    case DType::f16:
    case DType::bf16:
    case DType::f8_e4m3:
      break;
  }
  INFERD_CHECK(false, "a float type has no blocks");
}

}  // namespace

int64_t CpuWeight::bytes_of(std::span<const RowGroup> groups) {
  int64_t bytes = 0;
  for (const RowGroup& group : groups)
    bytes += ceil_div(group.rows, kTileRows) * tile_bytes_of(group.dtype, group.cols);
  return bytes;
}

CpuWeight::CpuWeight(std::span<const RowGroup> groups, SlabPart memory, ThreadPool& pool)
    : memory_(std::move(memory)) {
  uint8_t* at = memory_.data;
  for (const RowGroup& group : groups) {
    const int64_t count = ceil_div(group.rows, kTileRows);
    const int64_t tile_bytes = tile_bytes_of(group.dtype, group.cols);
    INFERD_CHECK(std::ssize(group.data) == group.rows * row_bytes(group.dtype, group.cols), group.name, ": ",
                 group.data.size(), " bytes");
    groups_.push_back({group.name, group.dtype, rows_, group.rows});
    tiles_.push_back({group.dtype, rows_, group.rows, count, tile_bytes, at});
    rows_ += group.rows;
    tile_count_ += count;
    at += count * tile_bytes;
  }
  cols_ = groups.empty() ? 0 : groups.front().cols;
  bytes_ = memory_.bytes;

  for (size_t g = 0; g < groups.size(); ++g) {
    const Tiles& tiles = tiles_[g];
    if (tiles.count == 0) continue;
    const int64_t file_tile_bytes = kTileRows * row_bytes(tiles.dtype, cols_);
    const int64_t tiles_a_part =
        std::max<int64_t>(1, (int64_t{256} << 10) / std::max<int64_t>(1, file_tile_bytes));
    WorkCounter work(ceil_div(tiles.count, tiles_a_part));
    pool.run([&](int) {
      for (int64_t part = work.next(); part >= 0; part = work.next()) {
        const int64_t end = std::min(tiles.count, (part + 1) * tiles_a_part);
        for (int64_t t = part * tiles_a_part; t < end; ++t) {
          const int64_t rows = std::min<int64_t>(kTileRows, tiles.rows - t * kTileRows);
          if (tiles.dtype == DType::f8_e4m3) {
            pack_f8_tile(tiles.data + t * tiles.tile_bytes, groups[g], t * kTileRows, rows);
            continue;
          }
          pack_tile(tiles.data + t * tiles.tile_bytes, tiles.dtype,
                    groups[g].data.data() + t * file_tile_bytes, rows, cols_);
        }
      }
    });
  }
}

void CpuWeight::read_row(float* out, int64_t row) const {
  INFERD_CHECK(row >= 0 && row < rows_, "row ", row, " of ", rows_);
  const auto group = std::find_if(tiles_.begin(), tiles_.end(),
                                  [row](const Tiles& t) { return row < t.first_row + t.rows; });
  const int64_t inside = row - group->first_row;
  const uint8_t* tile = group->data + inside / kTileRows * group->tile_bytes;
  const int64_t lane = inside % kTileRows;
  if (!is_quantised(group->dtype)) return read_floats(out, group->dtype, tile, lane, cols_);
  const PackRule rule = rule_of(group->dtype);
  for (int64_t k = 0; k < cols_; k += rule.elements, tile += rule.tile_bytes) {
    read_block(out + k, group->dtype, tile, lane);
  }
}

}  // namespace inferd::cpu
