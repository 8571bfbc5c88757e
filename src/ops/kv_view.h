// The KV pool as it lies in device memory: the one place that describes its layout.
//
// A page holds `page_tokens` tokens of one sequence for all layers of a KV group. The pool of a group is
// [layer][page][K or V][kv_head][token][head_dim], so a page's K of one head is contiguous and a layer's
// pages lie together. q8_0 stores int8 values and, after the page's values of one head, one float scale per
// token: x = scale · q, the scale is absmax / 127, per token and head, never per page. A head whose absmax is
// under kSmallest is stored as zeros; one with a NaN or an infinity as zeros with a scale that is not finite,
// so that what reads it is not finite either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace inferd {

enum class KvDType : int32_t { f32, f16, bf16, q8_0 };

inline std::string_view kv_dtype_name(KvDType type) {
  switch (type) {
    case KvDType::f32:
      return "f32";
    case KvDType::f16:
      return "f16";
    case KvDType::bf16:
      return "bf16";
    case KvDType::q8_0:
      return "q8_0";
  }
  return "?";
}

inline std::optional<KvDType> parse_kv_dtype(std::string_view name) {
  for (const KvDType type : {KvDType::f32, KvDType::f16, KvDType::bf16, KvDType::q8_0}) {
    if (kv_dtype_name(type) == name) return type;
  }
  return std::nullopt;
}

struct KvLayout {
  static constexpr float kSmallest = 0x1.0p-120f;  // so that 127 / absmax stays finite

  KvDType dtype = KvDType::bf16;
  int32_t layers = 0;
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t page_tokens = 0;

  // Bytes of one head's K (or V) in one page.
  int64_t head_bytes() const {
    const int64_t values = int64_t{page_tokens} * head_dim;
    switch (dtype) {
      case KvDType::f32:
        return values * 4;
      case KvDType::f16:
      case KvDType::bf16:
        return values * 2;
      case KvDType::q8_0:
        return values + int64_t{page_tokens} * 4;
    }
    return 0;
  }
  int64_t layer_page_bytes() const { return 2 * kv_heads * head_bytes(); }  // K and V of one layer
  int64_t page_bytes() const { return layers * layer_page_bytes(); }        // all layers
  bool operator==(const KvLayout&) const = default;
};

struct KvView {
  KvLayout layout;
  int32_t pages = 0;
  std::byte* base = nullptr;  // pages · page_bytes()

  int64_t layer_stride() const { return pages * layout.layer_page_bytes(); }
  std::byte* k(int32_t layer, int32_t page, int32_t head) const {
    return base + layer * layer_stride() + page * layout.layer_page_bytes() + head * layout.head_bytes();
  }
  std::byte* v(int32_t layer, int32_t page, int32_t head) const {
    return k(layer, page, layout.kv_heads + head);
  }
};

}  // namespace inferd
