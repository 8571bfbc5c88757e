// How weights lie in memory after packing, and how activations lie beside them.
//
// Sixteen rows of one group make a tile; the last tile of a group is filled up with zero rows. A tile holds
// its blocks one after another, each the sixteen rows' data of one block of the file interleaved, so that one
// row is one lane of a vector and a dot product needs no sum across lanes. A "word" is four consecutive bytes
// of a row's block as the file has them; words of sixteen rows lie together, 64 bytes.
//
// Constants and plain structs only: both the kernels of every instruction set level and the code around them
// read this.
#pragma once

#include <cstddef>
#include <cstdint>

namespace inferd::cpu {

inline constexpr int kTileRows = 16;
inline constexpr int kWordBytes = 4 * kTileRows;  // one word of all rows
inline constexpr int kHalfBytes = 2 * kTileRows;  // one IEEE half of all rows

// Blocks of 32 elements. The halves d and m come first, then the fifth bits, then the words. Bit g of byte b
// of a row's word of fifth bits belongs to element 4·g + b (the file has it at bit 4·g + b).
template <int kMaxValue, int kZeroPoint, bool kHasMin, bool kHasHigh>
struct NibbleBlock {
  static constexpr int kMax = kMaxValue;    // weights are 0 … kMax
  static constexpr int kZero = kZeroPoint;  // x = d · (q − kZero) [+ m]
  static constexpr bool kMin = kHasMin;
  static constexpr bool kHigh = kHasHigh;
  static constexpr int kMinAt = kHalfBytes;
  static constexpr int kHighAt = kHalfBytes * (kHasMin ? 2 : 1);
  static constexpr int kWordsAt = kHighAt + (kHasHigh ? kWordBytes : 0);
  static constexpr int kWords = 4;
  static constexpr int kBytes = kWordsAt + kWords * kWordBytes;
};
using TileQ4_0 = NibbleBlock<15, 8, false, false>;
using TileQ4_1 = NibbleBlock<15, 0, true, false>;
using TileQ5_0 = NibbleBlock<31, 16, false, true>;
using TileQ5_1 = NibbleBlock<31, 0, true, true>;

struct TileQ8_0 {
  static constexpr int kWordsAt = kHalfBytes;
  static constexpr int kWords = 8;
  static constexpr int kBytes = kWordsAt + kWords * kWordBytes;
};

// Signed bytes with a float for each 32 of them: IQ4_NL and MXFP4 looked up in their tables, the eight parts
// of an IQ4_XS block with their scales multiplied in (exactly: 11 by 6 bits), and Q8_K. The floats come
// first.
struct TileI8 {
  static constexpr int kWordsAt = kWordBytes;
  static constexpr int kWords = 8;
  static constexpr int kBytes = kWordsAt + kWords * kWordBytes;
};

// Blocks of 256 elements. Two sub-blocks that share words, one in the low and one in the high halves of the
// bytes, make a pair; scales and mins are bytes, [pair][row][2]. Then come high bits, then the words of the
// low bits.
//
// Q4_K, Q5_K: pair p is sub-blocks 2p and 2p + 1, words 8p … 8p + 7. Q5_K has two words of fifth bits a pair,
// for four words each: bit w of byte b belongs to byte b of word w (of the four) in the first sub-block, bit
// 4 + w in the second. Q6_K: a half of the block (128 elements) has sub-blocks s = 0 … 7 of sixteen; pair 4 ·
// half + 2 · j + g (j, g = 0, 1) is its sub-blocks 2g + j and 2g + j + 4, words 4 · pair … + 3. The file's
// bytes of high bits are words [half][j][4]: bits 2g and 2g + 1 belong to the pair's first, 2g + 4 and 2g + 5
// to its second sub-block. Q2_K has the pairs of Q6_K, and only those words, [half][j][4], as the file has
// them. Q3_K is packed as the Q6_K block of the same values: q − 4 is stored plus 32.
struct TileQ4_K {
  static constexpr int kMax = 15;
  static constexpr int kPairs = 4;
  static constexpr int kMinAt = kHalfBytes;
  static constexpr int kScalesAt = 2 * kHalfBytes;
  static constexpr int kMinsAt = kScalesAt + kPairs * 2 * kTileRows;
  static constexpr int kHighAt = kMinsAt + kPairs * 2 * kTileRows;
  static constexpr int kHighWords = 0;
  static constexpr int kWordsAt = kHighAt + kHighWords * kWordBytes;
  static constexpr int kWords = 32;
  static constexpr int kBytes = kWordsAt + kWords * kWordBytes;
};
struct TileQ5_K {
  static constexpr int kMax = 31;
  static constexpr int kPairs = 4;
  static constexpr int kMinAt = kHalfBytes;
  static constexpr int kScalesAt = 2 * kHalfBytes;
  static constexpr int kMinsAt = kScalesAt + kPairs * 2 * kTileRows;
  static constexpr int kHighAt = kMinsAt + kPairs * 2 * kTileRows;
  static constexpr int kHighWords = 8;
  static constexpr int kWordsAt = kHighAt + kHighWords * kWordBytes;
  static constexpr int kWords = 32;
  static constexpr int kBytes = kWordsAt + kWords * kWordBytes;
};
struct TileQ6_K {
  static constexpr int kMax = 63;
  static constexpr int kPairs = 8;
  static constexpr int kScalesAt = kHalfBytes;
  static constexpr int kHighAt = kScalesAt + kPairs * 2 * kTileRows;
  static constexpr int kHighWords = 16;
  static constexpr int kWordsAt = kHighAt + kHighWords * kWordBytes;
  static constexpr int kWords = 32;
  static constexpr int kBytes = kWordsAt + kWords * kWordBytes;
};

struct TileQ2_K {
  static constexpr int kMax = 3;
  static constexpr int kPairs = 8;
  static constexpr int kMinAt = kHalfBytes;
  static constexpr int kScalesAt = 2 * kHalfBytes;
  static constexpr int kMinsAt = kScalesAt + kPairs * 2 * kTileRows;
  static constexpr int kWordsAt = kMinsAt + kPairs * 2 * kTileRows;
  static constexpr int kWords = 16;
  static constexpr int kBytes = kWordsAt + kWords * kWordBytes;
};

// F32 and F16 tiles are (cols, 16 rows). BF16 tiles are (cols / 2 rounded up, 16 rows, 2 neighbouring cols),
// the last col of an odd number filled up with zero. F8_E4M3 tiles are chunks of kScaleCols cols, the last
// one of what is left: the scales of the rows as floats, then (cols, 16 rows) as halves, which hold these
// numbers exactly.
inline constexpr int64_t kScaleCols = 128;
constexpr int64_t f8_tile_bytes(int64_t cols) {
  return (cols + kScaleCols - 1) / kScaleCols * kWordBytes + cols * kHalfBytes;
}

// Activations of one linear, quantised row by row. Columns (rows of x) are cut into panels of 1, 2, 4 …
// columns; a panel holds one record per block. A word is four consecutive int8 of one column.
inline constexpr int kPanelWidths = 4;  // 1, 2, 4, 8

template <size_t kColumns>
struct Record32 {
  int32_t words[8][kColumns];
  float scale[kColumns];
  float scaled_sum[kColumns];  // scale · Σq, rounded
  int32_t minus_8[kColumns];   // −8 · Σq
  int32_t minus_16[kColumns];  // −16 · Σq
};

template <size_t kColumns>
struct Record256 {
  int32_t words[64][kColumns];
  float scale[kColumns];
  // Σq of the two sub-blocks of a Q6_K or Q2_K pair, as the 16-bit halves of a word.
  int32_t sums_16[8][kColumns];
  int32_t sums_32[4][kColumns];  // likewise of a Q4_K or Q5_K pair
};

inline constexpr int64_t kRecord32Bytes = sizeof(Record32<1>);  // a column
inline constexpr int64_t kRecord256Bytes = sizeof(Record256<1>);
static_assert(kRecord32Bytes == 48 && kRecord256Bytes == 308);

}  // namespace inferd::cpu
