// IEEE half, bfloat16 and 8-bit floats to and from float, in plain integer arithmetic: the same bits on every
// machine.
#pragma once

#include <bit>
#include <cstdint>

namespace inferd {

constexpr float f16_to_f32(uint16_t half) {
  const uint32_t sign = uint32_t{half} >> 15 << 31;
  const uint32_t exponent = half >> 10 & 0x1F;
  const uint32_t fraction = half & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000 | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  // Zero or subnormal: fraction · 2^-24, exact in float.
  const float magnitude = static_cast<float>(fraction) * 0x1.0p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

// Round to nearest, ties to even; past the range: infinity; NaN stays NaN.
constexpr uint16_t f32_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00);
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // rounds past 65504
  if (magnitude < 0x38800000) {                                              // below 2^-14: subnormal half
    // Adding 0.5 aligns the fraction to 2^-24 and rounds it in the float adder.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3F000000));
  }
  const uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13);
}

constexpr float bf16_to_f32(uint16_t value) {
  return std::bit_cast<float>(uint32_t{value} << 16);
}

// Round to nearest, ties to even; NaN stays NaN.
constexpr uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// Sign, four bits of exponent, three of fraction; no infinity, one NaN. Exact in float and in half. Source:
// OCP 8-bit Floating Point Specification (OFP8), revision 1.0 (2023), E4M3.
constexpr float e4m3_to_f32(uint8_t value) {
  const uint32_t sign = uint32_t{value} >> 7 << 31;
  const uint32_t magnitude = value & 0x7F;
  if (magnitude == 0x7F) return std::bit_cast<float>(sign | 0x7FC00000);
  if (magnitude >= 8) return std::bit_cast<float>(sign | ((magnitude << 20) + (120u << 23)));
  // Zero or subnormal: fraction · 2^-9.
  const float small = static_cast<float>(magnitude) * 0x1.0p-9f;
  return sign != 0 ? -small : small;
}

}  // namespace inferd
