#include "formats/safetensors_samples.h"

#include <cstring>
#include <utility>

#include "base/strings.h"

namespace inferd {
namespace {

constexpr Code kHeader = Code::safetensors_header;
constexpr Code kTensor = Code::safetensors_tensor;
constexpr Code kTruncated = Code::safetensors_truncated;
constexpr Code kLimit = Code::safetensors_limit;

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// One tensor "t" of 8 bytes, fields as given.
std::vector<std::byte> one(std::string_view dtype, std::string_view shape, std::string_view offsets,
                           size_t data_bytes = 8) {
  return raw_safetensors(
      cat(R"({"t":{"dtype":)", dtype, R"(,"shape":)", shape, R"(,"data_offsets":)", offsets, "}}"),
      data_bytes);
}

std::string entry(std::string_view name, int64_t begin, int64_t end) {
  return cat("\"", name, R"(":{"dtype":"U8","shape":[)", end - begin, R"(],"data_offsets":[)", begin, ",",
             end, "]}");
}

std::vector<HostileSafetensors> hostile_lengths() {
  return {
      {"empty", {}, kTruncated, "needs 8 bytes, the file has 0", "byte 0, length of the header"},
      {"seven_bytes", bytes_of("1234567"), kTruncated, "the file has 7", "byte 0"},
      {"length_only", raw_safetensors(2, "", 0), kTruncated, "needs 10 bytes, the file has 8", "byte 0"},
      {"length_past_the_end", raw_safetensors(100, "{}", 0), kTruncated, "needs 108 bytes, the file has 10",
       ""},
      {"length_100_mb_absent", raw_safetensors(100'000'000, "{}", 0), kTruncated, "needs 100,000,008", ""},
      {"length_over_100_mb", raw_safetensors(100'000'001, "{}", 0), kLimit,
       "100000001 bytes long, at most 100,000,000", "byte 0"},
      {"length_2_63", raw_safetensors(uint64_t{1} << 63, "{}", 0), kLimit, "9223372036854775808", ""},
      {"length_minus_one", raw_safetensors(UINT64_MAX, "{}", 0), kLimit, "18446744073709551615", ""},
      // 8 + length = 2 (mod 2^64).
      {"length_wraps", raw_safetensors(UINT64_MAX - 5, "{}", 8), kLimit, "18446744073709551610", ""},
      {"length_0", raw_safetensors("", 8), kHeader, "it is empty, a JSON object expected", "byte 8"},
      {"big_endian_length", raw_safetensors(__builtin_bswap64(2), "{}", 0), kLimit, "at most", ""},
      {"gguf_file", bytes_of("GGUF\x03xxxxxxxxxxxxxxxxxxx"), kLimit, "at most 100,000,000", ""},
      {"zip_file", bytes_of("PK\x03\x04xxxxxxxxxxxxxxxxxxx"), kLimit, "at most 100,000,000", ""},
  };
}

std::vector<HostileSafetensors> hostile_headers() {
  std::string many = "{";
  for (int i = 0; i < 3000; ++i) many += cat("\"", i, "\":0,");
  return {
      {"space_first", raw_safetensors(" {}", 0), kHeader, "it begins with \" {}\", '{' expected", "byte 8"},
      {"array", raw_safetensors("[]", 0), kHeader, "'{' expected", ""},
      {"number", raw_safetensors("1234", 0), kHeader, "'{' expected", ""},
      {"byte_order_mark", raw_safetensors("\xEF\xBB\xBF{}", 0), kHeader, "'{' expected", ""},
      {"brace_only", raw_safetensors("{", 0), kHeader, "unexpected end of input", "header, byte"},
      {"cut_in_a_string", raw_safetensors("{\"abc", 0), kHeader, "invalid string", "header, byte"},
      {"comma_at_the_end", raw_safetensors(R"({"__metadata__":{},})", 0), kHeader, "syntax error", ""},
      {"two_objects", raw_safetensors("{}{}", 0), kHeader, "syntax error", ""},
      {"comment", raw_safetensors("{}//x", 0), kHeader, "invalid", ""},
      {"nul_after_it", raw_safetensors(std::string_view("{}\0\0", 4), 0), kHeader, "NUL", "header, byte 2"},
      {"not_utf8", raw_safetensors("{\"\xff\":1}", 0), kHeader, "UTF-8", ""},
      {"lone_surrogate", raw_safetensors(R"({"\ud800":1})", 0), kHeader, "surrogate", ""},
      {"key_twice", raw_safetensors(cat("{", entry("a", 0, 4), ",", entry("a", 4, 8), "}"), 8), kHeader,
       "duplicate key \"a\"", "header"},
      {"key_twice_by_escape",
       raw_safetensors(cat("{", entry("a", 0, 4), ",", entry("\\u0061", 4, 8), "}"), 8), kHeader,
       "duplicate key \"a\"", ""},
      {"field_twice",
       raw_safetensors(R"({"t":{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]}})", 8), kHeader,
       "duplicate key \"dtype\"", ""},
      {"metadata_twice", raw_safetensors(R"({"__metadata__":{},"__metadata__":{}})", 0), kHeader,
       "duplicate key \"__metadata__\"", ""},
      {"metadata_is_a_string", raw_safetensors(R"({"__metadata__":"pt"})", 0), kHeader,
       "of type string, an object of strings expected", "__metadata__"},
      {"metadata_of_numbers", raw_safetensors(R"({"__metadata__":{"n":1}})", 0), kHeader,
       "of type integer, string expected", "__metadata__, key \"n\""},
      {"metadata_is_deep", raw_safetensors(R"({"__metadata__":{"n":{"m":{}}}})", 0), kHeader,
       "nested deeper than 3", ""},
      {"nested_10000_deep", raw_safetensors(cat("{\"a\":", std::string(10000, '[')), 0), kHeader,
       "nested deeper than 3", ""},
      {"numbers_one_byte_apart",
       raw_safetensors(
           [] {
             std::string text = "{\"a\":[";
             for (int i = 0; i < 4000; ++i) text += "1,";
             return text + "1]}";
           }(),
           0),
       kHeader, "more than 2,018 values", ""},
      {"cut_after_3000_keys", raw_safetensors(many, 0), kHeader, "", "header"},
  };
}

std::vector<HostileSafetensors> hostile_entries() {
  const std::string long_name(1025, 'n');
  return {
      {"name_empty", raw_safetensors(cat("{", entry("", 0, 8), "}"), 8), kTensor, "it is empty",
       "name of tensor \"\""},
      {"name_with_escape", raw_safetensors(cat("{", entry("\\u001b[2J", 0, 8), "}"), 8), kTensor,
       "control characters", "name of tensor \"\\x1b[2J\""},
      {"name_with_nul", raw_safetensors(cat("{", entry("a\\u0000b", 0, 8), "}"), 8), kTensor,
       "control characters", ""},
      {"name_of_1025_bytes", raw_safetensors(cat("{", entry(long_name, 0, 8), "}"), 8), kLimit,
       "it is 1,025 bytes long, at most 1,024", "name of tensor"},
      {"entry_is_a_number", raw_safetensors(R"({"t":1})", 0), kTensor, "of type integer, object expected",
       "tensor \"t\""},
      {"entry_is_null", raw_safetensors(R"({"t":null})", 0), kTensor, "of type null, object expected", ""},
      {"entry_is_empty", raw_safetensors(R"({"t":{}})", 0), kTensor, "the field dtype is missing",
       "dtype of tensor \"t\""},
      {"no_shape", raw_safetensors(R"({"t":{"dtype":"U8","data_offsets":[0,8]}})", 8), kTensor,
       "the field shape is missing", ""},
      {"no_offsets", raw_safetensors(R"({"t":{"dtype":"U8","shape":[8]}})", 8), kTensor,
       "the field data_offsets is missing", ""},
      {"unknown_field",
       raw_safetensors(R"({"t":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"strides":[1]}})", 8), kTensor,
       "unknown field \"strides\"", "tensor \"t\""},
      {"dtype_of_another_case", one(R"("f32")", "[2]", "[0,8]"), Code::safetensors_dtype,
       "\"f32\", allowed are BOOL U8", "dtype of tensor \"t\""},
      {"dtype_f4", one(R"("F4")", "[16]", "[0,8]"), Code::safetensors_dtype, "\"F4\"", ""},
      {"dtype_c64", one(R"("C64")", "[1]", "[0,8]"), Code::safetensors_dtype, "\"C64\"", ""},
      {"dtype_f8_e8m0", one(R"("F8_E8M0")", "[8]", "[0,8]"), Code::safetensors_dtype, "\"F8_E8M0\"", ""},
      {"dtype_is_a_number", one("1", "[8]", "[0,8]"), kTensor, "of type integer, string expected", ""},
      {"shape_is_a_number", one(R"("U8")", "8", "[0,8]"), kTensor, "of type integer, array expected",
       "shape of tensor"},
      {"shape_of_strings", one(R"("U8")", R"(["8"])", "[0,8]"), kTensor,
       "number 0 is of type string, an integer from 0", ""},
      {"shape_negative", one(R"("U8")", "[-8]", "[0,8]"), kTensor, "number 0 is -8", ""},
      {"shape_of_fractions", one(R"("U8")", "[8.0]", "[0,8]"), kTensor, "number 0 is 8.0", ""},
      {"shape_2_63", one(R"("U8")", "[9223372036854775808]", "[0,8]"), kTensor,
       "number 0 is 9223372036854775808.0", ""},
      {"shape_past_double", one(R"("U8")", "[1e999]", "[0,8]"), kHeader, "number overflow", ""},
      {"shape_of_9_dimensions", one(R"("U8")", "[8,1,1,1,1,1,1,1,1]", "[0,8]"), kLimit,
       "it has 9 dimensions, at most 8", "shape of tensor"},
      // 2^32 · 2^32 = 0 in 64 bits.
      {"shape_wraps_to_0", one(R"("U8")", "[4294967296,4294967296]", "[0,0]", 0), kTensor,
       "2^63 elements or more", "shape of tensor"},
      {"shape_wraps_to_8", one(R"("U8")", "[8,2305843009213693953]", "[0,8]"), kTensor, "2^63 elements", ""},
      // Hides an overflow behind a zero: the product of the first two is past 2^63 already.
      {"shape_wraps_before_a_0", one(R"("U8")", "[4294967296,4294967296,0]", "[0,0]", 0), kTensor,
       "2^63 elements", ""},
      // 2^61 + 1 elements of 8 bytes are 8 in 64 bits.
      {"bytes_wrap_to_8", one(R"("F64")", "[2305843009213693953]", "[0,8]"), kTensor, "2^63 bytes or more",
       ""},
      {"shape_too_small", one(R"("U8")", "[7]", "[0,8]"), kTensor,
       "they span 8 bytes, 7 elements of U8 are 7", "data_offsets of tensor \"t\""},
      {"shape_too_large", one(R"("F32")", "[3]", "[0,8]"), kTensor, "3 elements of F32 are 12", ""},
      {"scalar_of_8_bytes", one(R"("F32")", "[]", "[0,8]"), kTensor, "1 elements of F32 are 4", ""},
      {"empty_tensor_with_bytes", one(R"("F32")", "[0]", "[0,8]"), kTensor, "0 elements of F32 are 0", ""},
  };
}

std::vector<HostileSafetensors> hostile_offsets() {
  return {
      {"offsets_is_a_number", one(R"("U8")", "[8]", "8"), kTensor, "of type integer, array expected",
       "data_offsets of tensor"},
      {"one_offset", one(R"("U8")", "[8]", "[8]"), kTensor, "it holds 1 numbers, 2 expected", ""},
      {"three_offsets", one(R"("U8")", "[8]", "[0,8,8]"), kTensor, "it holds 3 numbers", ""},
      {"offset_negative", one(R"("U8")", "[8]", "[-8,0]"), kTensor, "number 0 is -8", ""},
      {"offset_2_64", one(R"("U8")", "[8]", "[0,18446744073709551616]"), kTensor,
       "number 1 is 18446744073709551616.0", ""},
      {"offsets_backwards", one(R"("U8")", "[8]", "[8,0]"), kTensor,
       "it begins at 8 and ends before that, at 0", ""},
      {"data_absent", one(R"("U8")", "[8]", "[0,8]", 0), kTruncated,
       "it ends at byte 8 of the data, of which the file has 0", "data_offsets of tensor \"t\""},
      {"data_short_by_one", one(R"("U8")", "[8]", "[0,8]", 7), kTruncated, "the file has 7", ""},
      {"data_of_8_eib_absent", one(R"("U8")", "[9223372036854775807]", "[0,9223372036854775807]"), kTruncated,
       "it ends at byte 9223372036854775807", ""},
      {"bytes_after_the_data", one(R"("U8")", "[8]", "[0,8]", 9), kTensor,
       "1 bytes after the last tensor belong to none", "byte 69"},
      {"data_without_tensors", raw_safetensors("{}", 8), kTensor, "8 bytes after the last tensor", "byte 10"},
      {"hole_at_the_start", one(R"("U8")", "[8]", "[8,16]", 16), kTensor,
       "it begins at 8, behind a hole: the data begins at 0", "data_offsets of tensor \"t\""},
      {"hole_between", raw_safetensors(cat("{", entry("a", 0, 4), ",", entry("b", 5, 8), "}"), 8), kTensor,
       "it begins at 5, behind a hole: \"a\" ends at 4", "data_offsets of tensor \"b\""},
      {"tensors_at_the_same_place",
       raw_safetensors(cat("{", entry("a", 0, 8), ",", entry("b", 0, 8), "}"), 8), kTensor,
       "it begins at 0, inside what comes before it: \"a\" ends at 8", "tensor \"b\""},
      {"tensors_overlap", raw_safetensors(cat("{", entry("b", 4, 8), ",", entry("a", 0, 5), "}"), 8), kTensor,
       "it begins at 4, inside what comes before it: \"a\" ends at 5", "tensor \"b\""},
      {"tensor_inside_another", raw_safetensors(cat("{", entry("a", 0, 8), ",", entry("b", 2, 4), "}"), 8),
       kTensor, "it begins at 2", "tensor \"b\""},
      {"empty_tensor_inside_another",
       raw_safetensors(cat("{", entry("a", 0, 8), ",", entry("b", 4, 4), "}"), 8), kTensor, "it begins at 4",
       "tensor \"b\""},
  };
}

}  // namespace

std::vector<std::byte> raw_safetensors(uint64_t length, std::string_view header, size_t data_bytes) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  for (size_t i = 0; i < data_bytes; ++i) bytes[8 + header.size() + i] = static_cast<std::byte>(i);
  return bytes;
}

std::vector<std::byte> raw_safetensors(std::string_view header, size_t data_bytes) {
  return raw_safetensors(header.size(), header, data_bytes);
}

std::vector<std::byte> ordinary_safetensors() {
  // Two elements of each dtype, named by it; a matrix before them in the data and behind them in the header.
  std::string header = R"({"__metadata__":{"format":"pt"})";
  int64_t at = 24;
  const std::pair<std::string_view, int64_t> types[] = {
      {"F64", 8},  {"I64", 8},     {"U64", 8},     {"F32", 4}, {"I32", 4},
      {"U32", 4},  {"F16", 2},     {"BF16", 2},    {"I16", 2}, {"U16", 2},
      {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I8", 1},  {"U8", 1}};
  for (const auto& [name, bytes] : types) {
    header += cat(",\"", name, R"(":{"dtype":")", name, R"(","shape":[2],"data_offsets":[)", at, ",",
                  at + 2 * bytes, "]}");
    at += 2 * bytes;
  }
  header += R"(,"matrix":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  return raw_safetensors(header, static_cast<size_t>(at));
}

std::vector<OddSafetensors> odd_safetensors() {
  return {
      {"nothing_in_it", raw_safetensors("{}", 0)},
      {"metadata_only", raw_safetensors(R"({"__metadata__":{"a":"b","c":""}})", 0)},
      {"no_padding", raw_safetensors(cat("{", entry("a", 0, 3), "}"), 3)},
      {"scalar", one(R"("F64")", "[]", "[0,8]")},
      {"empty_tensor", one(R"("F32")", "[3,0,5]", "[0,0]", 0)},
      {"empty_tensor_between",
       raw_safetensors(cat("{", entry("c", 4, 8), ",", entry("b", 4, 4), ",", entry("a", 0, 4), "}"), 8)},
      {"eight_dimensions", one(R"("U8")", "[1,2,1,2,1,2,1,1]", "[0,8]")},
      {"white_space",
       raw_safetensors("{ \"t\" :\n{ \"shape\":[ 8 ],\"data_offsets\":[0, 8],\"dtype\":\"U8\"} }  ", 8)},
      {"name_in_utf8", raw_safetensors(cat("{", entry("\xe5\xb1\x82.0", 0, 8), "}"), 8)},
      {"name_escaped", raw_safetensors(cat("{", entry("\\u5c42.0", 0, 8), "}"), 8)},
  };
}

std::vector<HostileSafetensors> hostile_safetensors() {
  std::vector<HostileSafetensors> all = hostile_lengths();
  for (auto* part : {&hostile_headers, &hostile_entries, &hostile_offsets}) {
    for (HostileSafetensors& file : part()) all.push_back(std::move(file));
  }
  return all;
}

}  // namespace inferd
