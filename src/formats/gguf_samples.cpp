#include "formats/gguf_samples.h"

#include <numbers>

#include "formats/gguf_writer.h"

namespace inferd {
namespace {

using T = GgufValueType;

constexpr uint64_t kMinusOne = UINT64_MAX;
constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ4_0 = 2;
constexpr uint32_t kQ8_0 = 8;
constexpr uint32_t kQ4_K = 12;
constexpr uint32_t kI8 = 24;

RawGguf keys(uint64_t count) {
  return {0, count};
}
RawGguf tensors(uint64_t count) {
  return {count, 0};
}

// A file of one F32 tensor "t" of 8 elements, whole but for what the caller says.
std::vector<std::byte> one_tensor(std::initializer_list<uint64_t> dims, uint32_t type, uint64_t offset,
                                  size_t data_bytes = 32) {
  return tensors(1).tensor("t", dims, type, offset).align(32).zeros(data_bytes).bytes();
}

std::vector<std::byte> alignment_of(uint32_t alignment) {
  return keys(1).key("general.alignment", T::uint32).u32(alignment).bytes();
}

std::vector<HostileGguf> hostile_headers() {
  return {
      {"empty", RawGguf::nothing().bytes(), Code::gguf_magic, "it is empty", "byte 0, magic"},
      {"one_byte", RawGguf::nothing().raw("G").bytes(), Code::gguf_magic, "it starts with \"G\"", "byte 0"},
      {"wrong_magic", RawGguf::nothing().raw("GGUX").zeros(20).bytes(), Code::gguf_magic, "\"GGUX\"",
       "byte 0"},
      {"lower_case_magic", RawGguf::nothing().raw("gguf").u32(3).zeros(16).bytes(), Code::gguf_magic,
       "\"gguf\"", ""},
      {"older_ggml_file", RawGguf::nothing().raw("tjgg").u32(3).zeros(16).bytes(), Code::gguf_magic,
       "\"tjgg\"", ""},
      {"zip_file", RawGguf::nothing().raw("PK\x03\x04").zeros(26).bytes(), Code::gguf_magic,
       "\"PK\\x03\\x04\"", ""},
      {"magic_only", RawGguf::nothing().raw("GGUF").bytes(), Code::gguf_truncated,
       "needs 8 bytes, the file has 4", "byte 4, version"},
      {"version_0", RawGguf(0, 0, 0).bytes(), Code::gguf_version, "0, 2 and 3 are read", "byte 4, version"},
      {"version_1", RawGguf(0, 0, 1).bytes(), Code::gguf_version, "1, 2 and 3 are read", "byte 4, version"},
      {"version_4", RawGguf(0, 0, 4).bytes(), Code::gguf_version, "4, 2 and 3 are read", "byte 4, version"},
      {"version_max", RawGguf(0, 0, UINT32_MAX).bytes(), Code::gguf_version, "4294967295", "byte 4, version"},
      {"big_endian", RawGguf(0, 0, 0x03000000).bytes(), Code::gguf_version, "3 in big-endian byte order",
       "byte 4"},
      {"no_counts", RawGguf::nothing().raw("GGUF").u32(3).bytes(), Code::gguf_truncated, "needs 16 bytes",
       "byte 8, number of tensors"},
      {"no_key_count", RawGguf::nothing().raw("GGUF").u32(3).u64(0).bytes(), Code::gguf_truncated,
       "needs 24 bytes", "byte 16, number of keys"},
      {"tensors_minus_one", RawGguf(kMinusOne, 0).bytes(), Code::gguf_limit,
       "number of tensors is 18446744073709551615, at most 65,536 allowed", "byte 8, number of tensors"},
      {"tensors_65537", RawGguf(65537, 0).bytes(), Code::gguf_limit, "65,537, at most 65,536", "byte 8"},
      // llama.cpp#15711: under one bound, but times the size of an entry past 2^64.
      {"tensors_wrap_when_multiplied", RawGguf((uint64_t{1} << 58) + 1, 0).bytes(), Code::gguf_limit,
       "288,230,376,151,711,745", "byte 8"},
      {"keys_minus_one", RawGguf(0, kMinusOne).bytes(), Code::gguf_limit, "18446744073709551615", "byte 16"},
      {"keys_65537", RawGguf(0, 65537).bytes(), Code::gguf_limit, "65,537, at most 65,536",
       "byte 16, number of keys"},
      // CVE-2024-23605: count × size of an entry wraps.
      {"keys_wrap_when_multiplied", RawGguf(0, UINT64_MAX / 48 + 2).bytes(), Code::gguf_limit,
       "number of keys", ""},
      {"keys_claimed_none_there", RawGguf(0, 65536).bytes(), Code::gguf_truncated,
       "needs 32 bytes, the file has 24", "byte 24, length of the name of key 0"},
      {"tensors_claimed_none_there", RawGguf(65536, 0).bytes(), Code::gguf_truncated, "needs 32 bytes",
       "byte 24, length of the name of tensor 0"},
  };
}

std::vector<HostileGguf> hostile_keys() {
  const std::string nul("a\0b", 3);
  return {
      {"key_length_minus_one", keys(1).u64(kMinusOne).raw("a").bytes(), Code::gguf_limit,
       "length of the name is 18446744073709551615, at most 65,535", "byte 24, length of the name of key 0"},
      {"key_length_2_63", keys(1).u64(uint64_t{1} << 63).raw("a").bytes(), Code::gguf_limit,
       "9223372036854775808", ""},
      {"key_length_65536", keys(1).u64(65536).zeros(65536).u32(0).u8(0).bytes(), Code::gguf_limit, "65,536",
       ""},
      {"key_length_past_the_end", keys(1).u64(1000).raw("abc").bytes(), Code::gguf_truncated,
       "needs 1,032 bytes, the file has 35", "byte 32, name of key 0"},
      {"key_empty", keys(1).key("", T::uint8).u8(1).bytes(), Code::gguf_key, "key 0 has no name", "byte 24"},
      {"key_twice", keys(2).key("a", T::uint8).u8(1).key("a", T::uint8).u8(2).bytes(), Code::gguf_key,
       "keys 0 and 1 have the same name \"a\"", "byte 38, name of key 1 \"a\""},
      {"key_twice_apart",
       keys(3).key("a", T::uint8).u8(1).key("b", T::uint8).u8(1).key("a", T::string).string("").bytes(),
       Code::gguf_key, "keys 0 and 2", "key 2 \"a\""},
      {"key_with_nul", keys(1).key(nul, T::uint8).u8(1).bytes(), Code::gguf_key, "\"a\\x00b\"",
       "byte 24, name"},
      {"key_with_escape", keys(1).key("\x1b[2J", T::uint8).u8(1).bytes(), Code::gguf_key, "\"\\x1b[2J\"", ""},
      {"key_not_ascii", keys(1).key("caf\xc3\xa9", T::uint8).u8(1).bytes(), Code::gguf_key, "printable ASCII",
       ""},
      {"key_without_type", keys(1).string("a").bytes(), Code::gguf_truncated,
       "needs 37 bytes, the file has 33", "byte 33, type of key 0 \"a\""},
      {"value_type_13", keys(1).string("a").u32(13).u64(0).bytes(), Code::gguf_type,
       "type is 13, 0 to 12 allowed", "byte 33, type of key 0 \"a\""},
      {"value_type_max", keys(1).string("a").u32(UINT32_MAX).bytes(), Code::gguf_type, "4294967295",
       "byte 33"},
      {"bool_2", keys(1).key("a", T::boolean).u8(2).bytes(), Code::gguf_key, "a bool is 2, 0 or 1 allowed",
       "byte 37"},
      {"bool_255_in_array", keys(1).array("a", T::boolean, 3).u8(0).u8(1).u8(255).bytes(), Code::gguf_key,
       "is 255", "byte 51, value of key 0 \"a\""},
      {"uint8_missing", keys(1).key("a", T::uint8).bytes(), Code::gguf_truncated, "needs 38 bytes",
       "byte 37, value"},
      {"uint64_cut", keys(1).key("a", T::uint64).zeros(7).bytes(), Code::gguf_truncated, "needs 45 bytes",
       "byte 37"},
      {"float64_missing", keys(1).key("a", T::float64).bytes(), Code::gguf_truncated, "needs 45 bytes",
       "byte 37"},
      {"string_length_minus_one", keys(1).key("a", T::string).u64(kMinusOne).bytes(), Code::gguf_limit,
       "length of the string is 18446744073709551615, at most 16,777,216", "byte 37, length of the string"},
      // Position + length = 0 (mod 2^64).
      {"string_length_wraps", keys(1).key("a", T::string).u64(uint64_t{0} - 45).bytes(), Code::gguf_limit,
       "18446744073709551571", ""},
      {"string_over_16_mib", keys(1).key("a", T::string).u64((16 << 20) + 1).bytes(), Code::gguf_limit,
       "16,777,217", ""},
      {"string_of_16_mib_absent", keys(1).key("a", T::string).u64(16 << 20).bytes(), Code::gguf_truncated,
       "needs 16,777,261 bytes, the file has 45", "byte 45, string of key 0 \"a\""},
      {"string_length_cut", keys(1).key("a", T::string).u32(1).bytes(), Code::gguf_truncated,
       "needs 45 bytes", ""},
  };
}

std::vector<HostileGguf> hostile_arrays() {
  RawGguf nested = keys(1).key("a", T::array);
  for (int depth = 0; depth < 10000; ++depth) nested.u32(static_cast<uint32_t>(T::array)).u64(1);
  return {
      {"array_of_type_13", keys(1).key("a", T::array).u32(13).u64(0).bytes(), Code::gguf_type,
       "type of the elements is 13", "byte 37, type of the elements of key 0 \"a\""},
      {"array_of_arrays", keys(1).array("a", T::array, 1).u32(0).u64(0).bytes(), Code::gguf_type,
       "an array of arrays, which is not supported", "byte 37"},
      {"array_nested_10000_deep", nested.bytes(), Code::gguf_type, "an array of arrays", "byte 37"},
      {"array_without_type", keys(1).key("a", T::array).bytes(), Code::gguf_truncated, "needs 41 bytes",
       "byte 37"},
      {"array_without_count", keys(1).key("a", T::array).u32(4).bytes(), Code::gguf_truncated, "needs 49",
       "byte 41"},
      {"array_count_minus_one", keys(1).array("a", T::uint8, kMinusOne).bytes(), Code::gguf_limit,
       "number of elements is 18446744073709551615, at most 67,108,864", "byte 41, number of elements"},
      // gguf-py#27188: a count of 2^63 in a file of a few bytes.
      {"array_count_2_63", keys(1).array("a", T::uint8, uint64_t{1} << 63).bytes(), Code::gguf_limit,
       "9223372036854775808", "byte 41"},
      {"array_count_2_63_of_strings", keys(1).array("a", T::string, uint64_t{1} << 63).bytes(),
       Code::gguf_limit, "9223372036854775808", "byte 41"},
      {"array_bytes_wrap", keys(1).array("a", T::uint64, (uint64_t{1} << 61) + 1).bytes(), Code::gguf_limit,
       "2,305,843,009,213,693,953", ""},
      {"array_over_64_mi", keys(1).array("a", T::uint8, (64 << 20) + 1).bytes(), Code::gguf_limit,
       "67,108,865", ""},
      // ollama#17042: a small file that makes the reader allocate by its claim.
      {"array_of_64_mi_absent", keys(1).array("a", T::uint64, 64 << 20).bytes(), Code::gguf_truncated,
       "needs 536,870,961 bytes, the file has 49", "byte 49, elements of key 0 \"a\""},
      {"strings_64_mi_absent", keys(1).array("a", T::string, 64 << 20).bytes(), Code::gguf_truncated,
       "needs 57 bytes", "byte 49, length of string 0 of key 0 \"a\""},
      {"array_short_by_one", keys(1).array("a", T::uint16, 3).zeros(5).bytes(), Code::gguf_truncated,
       "needs 55 bytes", "byte 49"},
      {"strings_length_minus_one", keys(1).array("a", T::string, 2).string("x").u64(kMinusOne).bytes(),
       Code::gguf_limit, "length of string 1 is 18446744073709551615", "byte 58, length of string 1"},
      {"strings_past_the_end", keys(1).array("a", T::string, 2).string("x").u64(5).raw("abc").bytes(),
       Code::gguf_truncated, "needs 71 bytes, the file has 69", "byte 66, string 1 of key 0 \"a\""},
      {"strings_length_cut", keys(1).array("a", T::string, 2).string("x").u32(0).bytes(),
       Code::gguf_truncated, "needs 66 bytes", "byte 58, length of string 1"},
      // CVE-2025-0317: padding that divides by zero. oss-sec 2026-05-15: an enormous power of two.
      {"alignment_0", alignment_of(0), Code::gguf_alignment, "it is 0, a power of two from 8 to 65536",
       "byte 24, value of key 0 \"general.alignment\""},
      {"alignment_1", alignment_of(1), Code::gguf_alignment, "it is 1", "byte 24"},
      {"alignment_4", alignment_of(4), Code::gguf_alignment, "it is 4", "byte 24"},
      {"alignment_48", alignment_of(48), Code::gguf_alignment, "it is 48", "byte 24"},
      {"alignment_131072", alignment_of(131072), Code::gguf_alignment, "it is 131072", "byte 24"},
      {"alignment_2_31", alignment_of(uint32_t{1} << 31), Code::gguf_alignment, "it is 2147483648",
       "byte 24"},
      {"alignment_uint64", keys(1).key("general.alignment", T::uint64).u64(32).bytes(), Code::gguf_alignment,
       "it has type uint64, uint32 expected", "byte 24, type"},
      {"alignment_int32", keys(1).key("general.alignment", T::int32).u32(32).bytes(), Code::gguf_alignment,
       "int32", ""},
      {"alignment_string", keys(1).key("general.alignment", T::string).string("32").bytes(),
       Code::gguf_alignment, "it has type string", ""},
      {"alignment_array", keys(1).array("general.alignment", T::uint32, 1).u32(32).bytes(),
       Code::gguf_alignment, "it has type uint32[1]", ""},
  };
}

std::vector<HostileGguf> hostile_tensor_entries() {
  const std::string nul("a\0b", 3);
  return {
      {"tensor_name_empty", tensors(1).tensor("", {8}, kF32, 0).align(32).zeros(32).bytes(),
       Code::gguf_tensor, "tensor 0 has no name", "byte 24, name of tensor 0"},
      {"tensor_name_length_minus_one", tensors(1).u64(kMinusOne).zeros(64).bytes(), Code::gguf_limit,
       "length of the name is 18446744073709551615", "byte 24, length of the name of tensor 0"},
      {"tensor_name_past_the_end", tensors(1).u64(99).raw("t").bytes(), Code::gguf_truncated,
       "needs 131 bytes", ""},
      {"tensor_name_with_nul", tensors(1).tensor(nul, {8}, kF32, 0).align(32).zeros(32).bytes(),
       Code::gguf_tensor, "\"a\\x00b\"", "byte 24, name"},
      {"tensor_name_with_escape", tensors(1).tensor("\x1b[1m", {8}, kF32, 0).align(32).zeros(32).bytes(),
       Code::gguf_tensor, "\"\\x1b[1m\"", ""},
      {"tensor_name_with_c1_control", tensors(1).tensor("\xc2\x9b", {8}, kF32, 0).align(32).zeros(32).bytes(),
       Code::gguf_tensor, "only printable UTF-8", ""},
      {"tensor_name_ill_formed", tensors(1).tensor("a\xff", {8}, kF32, 0).align(32).zeros(32).bytes(),
       Code::gguf_tensor, "\"a\\xff\"", ""},
      {"tensor_twice",
       tensors(2).tensor("t", {8}, kF32, 0).tensor("t", {8}, kF32, 32).align(32).zeros(64).bytes(),
       Code::gguf_tensor, "tensors 0 and 1 have the same name \"t\"", "byte 57, name of tensor 1 \"t\""},
      {"dims_0", tensors(1).tensor("t", {}, kF32, 0).align(32).zeros(32).bytes(), Code::gguf_tensor,
       "\"t\" has no dimensions, 1 to 4 allowed", "byte 33, number of dimensions of tensor 0 \"t\""},
      // CVE-2024-21802: more dimensions than the reader has room for.
      {"dims_5", one_tensor({1, 1, 1, 1, 1}, kF32, 0), Code::gguf_limit,
       "number of dimensions is 5, at most 4", "byte 33"},
      // gguf-py#25378
      {"dims_million", tensors(1).string("t").u32(1000000).zeros(64).bytes(), Code::gguf_limit, "1,000,000",
       "byte 33"},
      {"dims_minus_one", tensors(1).string("t").u32(UINT32_MAX).bytes(), Code::gguf_limit, "4,294,967,295",
       ""},
      {"dims_cut", tensors(1).string("t").u32(2).u64(8).u32(1).bytes(), Code::gguf_truncated,
       "needs 53 bytes", "byte 45, dimension of tensor 0 \"t\""},
      {"tensor_without_type", tensors(1).string("t").u32(1).u64(8).bytes(), Code::gguf_truncated, "needs 49",
       "byte 45"},
      {"tensor_without_offset", tensors(1).string("t").u32(1).u64(8).u32(kF32).bytes(), Code::gguf_truncated,
       "needs 57 bytes", "byte 49, offset of tensor 0 \"t\""},
      {"dim_0", one_tensor({0}, kF32, 0), Code::gguf_tensor, "dimension 0 of \"t\" is 0",
       "byte 37, dimension"},
      {"dim_0_last", one_tensor({8, 0}, kF32, 0), Code::gguf_tensor, "dimension 1 of \"t\" is 0", "byte 45"},
      {"dim_minus_one", one_tensor({kMinusOne}, kI8, 0), Code::gguf_tensor, "2^63 elements or more",
       "byte 37, shape"},
      {"dim_2_63", one_tensor({uint64_t{1} << 63}, kI8, 0), Code::gguf_tensor, "2^63 elements or more", ""},
      {"dims_wrap_to_0", one_tensor({uint64_t{1} << 32, uint64_t{1} << 32}, kF32, 0), Code::gguf_tensor,
       "2^63 elements or more", "byte 37"},
      {"dims_wrap_to_8", one_tensor({(uint64_t{1} << 61) + 1, 8}, kF32, 0), Code::gguf_tensor,
       "2^63 elements or more", ""},
      {"dims_wrap_in_four", one_tensor({65536, 65536, 65536, 65536}, kF32, 0), Code::gguf_tensor,
       "2^63 elements", ""},
      {"bytes_2_63", one_tensor({uint64_t{1} << 61}, kF32, 0), Code::gguf_tensor, "2^63 bytes or more",
       "byte 37, shape"},
      // CVE-2025-53630: bytes that wrap to a small number.
      {"bytes_wrap_to_32", one_tensor({(uint64_t{1} << 62) + 8}, kF32, 0), Code::gguf_tensor,
       "2^63 bytes or more", ""},
      {"q4_0_row_of_31", one_tensor({31}, kQ4_0, 0), Code::gguf_tensor,
       "\"t\" has rows of 31 elements, Q4_0 needs a multiple of 32", "byte 45, type"},
      {"q8_0_row_of_33", one_tensor({33, 2}, kQ8_0, 0, 1024), Code::gguf_tensor, "rows of 33", ""},
      {"q4_k_row_of_128", one_tensor({128, 2}, kQ4_K, 0, 1024), Code::gguf_tensor,
       "Q4_K needs a multiple of 256", ""},
      // A multiple in all, but not per row.
      {"q4_0_row_of_16", one_tensor({16, 2}, kQ4_0, 0), Code::gguf_tensor, "rows of 16", ""},
  };
}

std::vector<HostileGguf> hostile_tensor_data() {
  return {
      {"offset_1", one_tensor({8}, kF32, 1), Code::gguf_tensor,
       "\"t\" is at 1, no multiple of the alignment 32", "byte 49, offset of tensor 0 \"t\""},
      {"offset_16", one_tensor({8}, kF32, 16), Code::gguf_tensor, "is at 16", "byte 49"},
      {"offset_32_at_alignment_64",
       RawGguf(1, 1)
           .key("general.alignment", T::uint32)
           .u32(64)
           .tensor("t", {8}, kF32, 32)
           .align(64)
           .zeros(64)
           .bytes(),
       Code::gguf_tensor, "no multiple of the alignment 64", ""},
      {"offset_past_the_end", one_tensor({8}, kF32, 32), Code::gguf_truncated,
       "needs 128 bytes, the file has 96", "byte 49, data of tensor 0 \"t\""},
      {"offset_minus_32", one_tensor({8}, kF32, uint64_t{0} - 32), Code::gguf_tensor, "ends past 2^63 - 1",
       "byte 49"},
      {"offset_2_63", one_tensor({8}, kF32, uint64_t{1} << 63), Code::gguf_tensor, "ends past 2^63 - 1",
       "byte 49"},
      // The sum wraps past the header and back into the file.
      {"offset_wraps_into_the_file", one_tensor({8}, kF32, uint64_t{0} - 64), Code::gguf_tensor,
       "ends past 2^63 - 1", ""},
      {"offset_and_bytes_past_2_63", one_tensor({(uint64_t{1} << 63) - 64}, kI8, 0), Code::gguf_tensor,
       "ends past 2^63 - 1", ""},
      {"data_absent", tensors(1).tensor("t", {8}, kF32, 0).bytes(), Code::gguf_truncated,
       "needs 96 bytes, the file has 57", "data of tensor 0"},
      {"data_short_by_one", one_tensor({8}, kF32, 0, 31), Code::gguf_truncated,
       "needs 96 bytes, the file has 95", ""},
      // CVE-2026-53923: 2^32 + 8 elements are 8 when cut to 32 bits.
      {"dim_cut_to_32_bits", one_tensor({(uint64_t{1} << 32) + 8}, kF32, 0), Code::gguf_truncated,
       "needs 17,179,869,280 bytes, the file has 96", ""},
      // CVE-2025-53630, GHSA-3p4r-fq3f-q74v: padded sizes that sum past 2^64.
      {"sizes_sum_past_2_64",
       tensors(2)
           .tensor("a", {uint64_t{1} << 62}, kI8, 0)
           .tensor("b", {uint64_t{1} << 62}, kI8, uint64_t{1} << 62)
           .align(32)
           .zeros(64)
           .bytes(),
       Code::gguf_truncated, "needs 4,611,686,018,427,388,000 bytes", "data of tensor 0 \"a\""},
      {"tensors_at_the_same_place",
       tensors(2).tensor("a", {8}, kF32, 0).tensor("b", {8}, kF32, 0).align(32).zeros(64).bytes(),
       Code::gguf_tensor, "\"b\" begins at byte 96, inside \"a\", which ends at 128",
       "byte 82, offset of tensor 1 \"b\""},
      {"tensors_overlap",
       tensors(2).tensor("a", {8}, kF32, 32).tensor("b", {9}, kF32, 0).align(32).zeros(128).bytes(),
       Code::gguf_tensor, "\"a\" begins at byte 128, inside \"b\", which ends at 132",
       "offset of tensor 0 \"a\""},
      {"tensor_inside_another",
       tensors(3)
           .tensor("a", {64}, kF32, 0)
           .tensor("c", {8}, kF32, 256)
           .tensor("b", {8}, kF32, 64)
           .align(32)
           .zeros(288)
           .bytes(),
       Code::gguf_tensor, "\"b\" begins", "tensor 2 \"b\""},
      {"unknown_type_inside_another",
       tensors(2).tensor("a", {64}, kF32, 0).tensor("b", {8}, 99, 64).align(32).zeros(256).bytes(),
       Code::gguf_tensor, "\"b\" begins at byte 160", ""},
      {"unknown_type_at_the_end", one_tensor({8}, 99, 32), Code::gguf_truncated,
       "needs 97 bytes, the file has 96", ""},
      {"unknown_type_too_large", one_tensor({kMinusOne, kMinusOne}, 99, 0), Code::gguf_tensor,
       "2^63 elements", ""},
  };
}

}  // namespace

RawGguf& RawGguf::raw(std::string_view text) {
  const auto added = std::as_bytes(std::span(text));
  bytes_.insert(bytes_.end(), added.begin(), added.end());
  return *this;
}

RawGguf& RawGguf::zeros(size_t count) {
  bytes_.resize(bytes_.size() + count);
  return *this;
}

RawGguf& RawGguf::align(size_t alignment) {
  bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  return *this;
}

RawGguf& RawGguf::tensor(std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type,
                         uint64_t offset) {
  string(name).u32(static_cast<uint32_t>(dims.size()));
  for (const uint64_t dim : dims) u64(dim);
  return u32(type).u64(offset);
}

std::vector<std::byte> ordinary_gguf() {
  GgufWriter writer;
  writer.add("general.architecture", "llama");
  writer.add("t.uint8", uint8_t{200});
  writer.add("t.int8", int8_t{-100});
  writer.add("t.uint16", uint16_t{60000});
  writer.add("t.int16", int16_t{-30000});
  writer.add("t.uint32", uint32_t{4000000000});
  writer.add("t.int32", int32_t{-2000000000});
  writer.add("t.float32", 1e-6F);
  writer.add("t.bool", true);
  writer.add("t.uint64", uint64_t{1} << 63);
  writer.add("t.int64", INT64_MIN);
  writer.add("t.float64", std::numbers::pi);
  writer.add("t.empty", "");
  writer.add_strings("tokenizer.ggml.tokens",
                     std::vector<std::string>{"a", "", "\xc4\xa0the", "<|end|>", "x", "y", "z"});
  writer.add_array<float>("tokenizer.ggml.scores", std::vector<float>{0.0F, -1.5F, 2.25F});
  writer.add_array<int32_t>("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1, -3});
  writer.add_array<uint64_t>("t.uint64s", std::vector<uint64_t>{1, UINT64_MAX});
  writer.add_array<double>("t.float64s", std::vector<double>{0.1});
  writer.add_array<uint8_t>("t.none", std::vector<uint8_t>{});
  writer.add("tokenizer.chat_template", "{% for m in messages %}\n{{ m.content }}{% endfor %}");
  const std::vector<std::byte> embedding(64 * 3 * 2, std::byte{0x3c});
  const std::vector<std::byte> norm(5 * 4, std::byte{0});
  const std::vector<std::byte> blocks(18 * 4, std::byte{0x11});
  writer.add_tensor("token_embd.weight", DType::f16, {64, 3}, embedding);
  writer.add_tensor("output_norm.weight", DType::f32, {5}, norm);
  writer.add_tensor("blk.0.attn_q.weight", DType::q4_0, {64, 2}, blocks);
  writer.add_tensor("blk.0.ffn_gate_exps.weight", DType::q4_0, {32, 1, 2, 2}, blocks);
  return writer.bytes();
}

std::vector<OddGguf> odd_ggufs() {
  return {
      {"nothing_in_it", RawGguf(0, 0).bytes()},
      {"version_2", RawGguf(0, 1, 2).key("a", T::uint8).u8(1).bytes()},
      {"alignment_8", RawGguf(1, 1)
                          .key("general.alignment", T::uint32)
                          .u32(8)
                          .tensor("t", {1}, kF32, 8)
                          .align(8)
                          .zeros(12)
                          .bytes()},
      {"alignment_64_kib", RawGguf(1, 1)
                               .key("general.alignment", T::uint32)
                               .u32(65536)
                               .tensor("t", {8}, kF32, 0)
                               .align(65536)
                               .zeros(32)
                               .bytes()},
      {"alignment_is_the_last_key", RawGguf(1, 2)
                                        .key("a", T::uint8)
                                        .u8(1)
                                        .key("general.alignment", T::uint32)
                                        .u32(64)
                                        .tensor("t", {8}, kF32, 64)
                                        .align(64)
                                        .zeros(96)
                                        .bytes()},
      {"no_padding_at_the_end", one_tensor({1}, kF32, 0, 4)},
      {"bytes_after_the_data", one_tensor({8}, kF32, 0, 1000)},
      {"a_hole_and_offsets_out_of_order",
       tensors(2).tensor("a", {8}, kF32, 96).tensor("b", {8}, kF32, 0).align(32).zeros(128).bytes()},
      {"unassigned_type", one_tensor({7, 3}, 99, 0)},
      {"type_taken_out_of_the_format", one_tensor({32}, 31, 0)},
      {"type_of_two_sizes", one_tensor({128}, 42, 0)},
      {"type_without_kernels", one_tensor({256}, 16, 0, 66)},
      {"tensor_name_in_utf8", tensors(1).tensor("\xe5\xb1\x82.0", {8}, kF32, 0).align(32).zeros(32).bytes()},
      {"key_and_string_at_their_limits",
       keys(1).key(std::string(65535, 'k'), T::string).string(std::string(70000, 's')).bytes()},
      {"string_that_is_no_utf8",
       keys(2).key("a", T::string).string("\xff\x00\x1b").array("b", T::string, 1).string("\xc3").bytes()},
      {"not_a_number", keys(2)
                           .key("a", T::float32)
                           .u32(0x7fc00000)
                           .array("b", T::float64, 1)
                           .u64(0x7ff0000000000000)
                           .bytes()},
      {"empty_arrays", keys(2).array("a", T::string, 0).array("b", T::boolean, 0).bytes()},
  };
}

std::vector<HostileGguf> hostile_ggufs() {
  std::vector<HostileGguf> all = hostile_headers();
  for (auto* part : {&hostile_keys, &hostile_arrays, &hostile_tensor_entries, &hostile_tensor_data}) {
    for (HostileGguf& file : part()) all.push_back(std::move(file));
  }
  return all;
}

}  // namespace inferd
