#include "formats/gguf.h"
#include "base/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <numbers>

#include "base/rng.h"
#include "formats/gguf_dump.h"
#include "formats/gguf_samples.h"
#include "formats/gguf_writer.h"

namespace inferd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string_view> all_of(const GgufStrings& strings) {
  return {strings.begin(), strings.end()};
}

template <typename Numbers>
auto all_numbers(const Numbers& numbers) {
  std::vector<std::decay_t<decltype(numbers[0])>> out;
  for (int64_t i = 0; i < numbers.size(); ++i) out.push_back(numbers[i]);
  return out;
}

TEST(Gguf, every_value_type_comes_back_as_written) {
  const auto bytes = ordinary_gguf();
  const GgufFile file = GgufFile::parse(bytes, "ordinary.gguf").value();
  EXPECT_EQ(file.version(), 3U);
  EXPECT_EQ(file.alignment(), 32);
  EXPECT_EQ(file.values().size(), 20U);
  EXPECT_EQ(file.string("general.architecture").value(), "llama");
  EXPECT_EQ(file.integer("t.uint8").value(), 200);
  EXPECT_EQ(file.integer("t.int8").value(), -100);
  EXPECT_EQ(file.integer("t.uint16").value(), 60000);
  EXPECT_EQ(file.integer("t.int16").value(), -30000);
  EXPECT_EQ(file.integer("t.uint32").value(), 4000000000);
  EXPECT_EQ(file.integer("t.int32").value(), -2000000000);
  EXPECT_EQ(file.integer("t.int64").value(), INT64_MIN);
  EXPECT_EQ(file.real("t.float32").value(), static_cast<double>(1e-6F));
  EXPECT_EQ(file.real("t.float64").value(), std::numbers::pi);
  EXPECT_TRUE(file.boolean("t.bool").value());
  EXPECT_EQ(file.string("t.empty").value(), "");
  EXPECT_THAT(all_of(file.strings("tokenizer.ggml.tokens").value()),
              ElementsAre("a", "", "\xc4\xa0the", "<|end|>", "x", "y", "z"));
  EXPECT_THAT(all_numbers(file.reals("tokenizer.ggml.scores").value()), ElementsAre(0.0, -1.5, 2.25));
  EXPECT_THAT(all_numbers(file.integers("tokenizer.ggml.token_type").value()), ElementsAre(1, 1, -3));
  EXPECT_THAT(all_numbers(file.reals("t.float64s").value()), ElementsAre(0.1));
  EXPECT_EQ(file.integers("t.none").value().size(), 0);
  EXPECT_EQ(file.find("t.none")->type_name(), "uint8[0]");
}

TEST(Gguf, tensors_lie_where_the_writer_put_them) {
  const auto bytes = ordinary_gguf();
  const GgufFile file = GgufFile::parse(bytes, "ordinary.gguf").value();
  ASSERT_EQ(file.tensors().size(), 4U);
  const GgufTensor* embedding = file.tensor("token_embd.weight").value();
  EXPECT_EQ(embedding->dims, 2);
  EXPECT_THAT(embedding->shape, ElementsAre(64, 3, 1, 1));
  EXPECT_EQ(embedding->elements, 192);
  EXPECT_EQ(embedding->offset, file.data_offset());
  EXPECT_EQ(embedding->data.size(), 384U);
  EXPECT_EQ(embedding->data.data(), bytes.data() + embedding->offset);
  EXPECT_EQ(embedding->data[0], std::byte{0x3c});
  EXPECT_EQ(file.dtype(*embedding).value(), DType::f16);
  const GgufTensor* norm = file.tensor("output_norm.weight").value();
  EXPECT_EQ(norm->offset, file.data_offset() + 384);
  EXPECT_EQ(norm->data.size(), 20U);
  const GgufTensor* query = file.tensor("blk.0.attn_q.weight").value();
  EXPECT_EQ(query->offset, file.data_offset() + 384 + 32);  // 20 bytes, padded to 32
  EXPECT_EQ(query->data.size(), 72U);
  EXPECT_EQ(query->data[71], std::byte{0x11});
  EXPECT_THAT(file.tensor("blk.0.ffn_gate_exps.weight").value()->shape, ElementsAre(32, 1, 2, 2));
}

TEST(Gguf, getters_name_file_key_expected_and_found_type) {
  const auto bytes = ordinary_gguf();
  const GgufFile file = GgufFile::parse(bytes, "ordinary.gguf").value();
  const Error wrong = file.integer("general.architecture").error();
  EXPECT_EQ(wrong.code, Code::model_metadata);
  EXPECT_EQ(wrong.detail, "the key \"general.architecture\" has type string, an integer expected");
  EXPECT_EQ(wrong.where, "ordinary.gguf, byte 24, key \"general.architecture\"");
  const Error missing = file.real("llama.rope.freq_base").error();
  EXPECT_EQ(missing.code, Code::model_metadata);
  EXPECT_EQ(missing.detail, "the key \"llama.rope.freq_base\" is missing");
  EXPECT_EQ(missing.where, "ordinary.gguf, key \"llama.rope.freq_base\"");
  EXPECT_THAT(file.integer("t.uint64").error().detail, HasSubstr("holds 9223372036854775808, at most"));
  EXPECT_THAT(file.integers("t.uint64s").error().detail, HasSubstr("holds 18446744073709551615"));
  EXPECT_THAT(file.boolean("t.uint8").error().detail, HasSubstr("has type uint8, bool expected"));
  EXPECT_THAT(file.string("tokenizer.ggml.tokens").error().detail,
              HasSubstr("has type string[7], string expected"));
  EXPECT_THAT(file.strings("tokenizer.chat_template").error().detail,
              HasSubstr("has type string, an array of strings"));
  EXPECT_THAT(file.integers("t.uint8").error().detail, HasSubstr("has type uint8, an array of integers"));
  EXPECT_THAT(file.real("t.int32").error().detail, HasSubstr("has type int32, float32 or float64"));
  EXPECT_EQ(file.tensor("output.weight").error().code, Code::model_tensor_missing);
  EXPECT_EQ(file.tensor("output.weight").error().detail, "output.weight");
}

TEST(Gguf, exactly_one_getter_fits_each_type) {
  const auto bytes = ordinary_gguf();
  const GgufFile file = GgufFile::parse(bytes, "ordinary.gguf").value();
  for (const GgufValue& value : file.values()) {
    const int fitting = file.integer(value.key).ok() + file.real(value.key).ok() +
                        file.boolean(value.key).ok() + file.string(value.key).ok() +
                        file.strings(value.key).ok() + file.integers(value.key).ok() +
                        file.reals(value.key).ok();
    // The two that hold a uint64 past 2^63 - 1 fit none.
    EXPECT_EQ(fitting, value.element_type == GgufValueType::uint64 ? 0 : 1) << value.key;
  }
}

TEST(Gguf, every_getter_says_that_a_key_is_missing) {
  const auto bytes = RawGguf(0, 0).bytes();
  const GgufFile file = GgufFile::parse(bytes, "empty.gguf").value();
  for (const Error& error : {file.integer("k").error(), file.real("k").error(), file.boolean("k").error(),
                             file.string("k").error(), file.strings("k").error(), file.integers("k").error(),
                             file.reals("k").error()}) {
    EXPECT_EQ(error.code, Code::model_metadata);
    EXPECT_EQ(error.detail, "the key \"k\" is missing");
  }
}

TEST(Gguf, a_fallback_stands_for_an_absent_key_but_not_for_a_wrong_type) {
  const auto bytes = ordinary_gguf();
  const GgufFile file = GgufFile::parse(bytes, "ordinary.gguf").value();
  EXPECT_EQ(file.integer("absent", 7).value(), 7);
  EXPECT_EQ(file.real("absent", 0.5).value(), 0.5);
  EXPECT_FALSE(file.boolean("absent", false).value());
  EXPECT_EQ(file.string("absent", "none").value(), "none");
  EXPECT_EQ(file.integer("t.uint8", 7).value(), 200);
  EXPECT_FALSE(file.integer("t.bool", 7).ok());
}

// llama.cpp#26690: scores declared as uint8 but read as float, three times past their end.
TEST(Gguf, scores_of_another_type_are_not_read_as_floats) {
  GgufWriter writer;
  writer.add_array<uint8_t>("tokenizer.ggml.scores", std::vector<uint8_t>(300));
  const auto bytes = writer.bytes();
  const GgufFile file = GgufFile::parse(bytes, "scores.gguf").value();
  EXPECT_EQ(file.reals("tokenizer.ggml.scores").error().detail,
            "the key \"tokenizer.ggml.scores\" has type uint8[300], an array of float32 or float64 expected");
}

TEST(Gguf, a_type_without_kernels_is_kept_to_be_shown_and_refused_by_name) {
  const std::vector<std::byte> data(256);
  GgufWriter writer;
  writer.add_tensor("blk.0.attn_q.weight", 16, {256}, std::span(data).first(66));
  writer.add_tensor("blk.0.attn_k.weight", 99, {7, 3}, data);
  writer.add_tensor("blk.0.attn_v.weight", 31, {32}, data);
  const auto bytes = writer.bytes();
  const GgufFile file = GgufFile::parse(bytes, "odd.gguf").value();
  const GgufTensor* query = file.find_tensor("blk.0.attn_q.weight");
  EXPECT_EQ(query->data.size(), 66U);
  EXPECT_EQ(file.dtype(*query).error().code, Code::model_tensor_type);
  EXPECT_EQ(file.dtype(*query).error().detail, "blk.0.attn_q.weight has type IQ2_XXS");
  EXPECT_EQ(file.dtype(*query).error().where, "odd.gguf, byte 24, type of tensor \"blk.0.attn_q.weight\"");
  const GgufTensor* key = file.find_tensor("blk.0.attn_k.weight");
  EXPECT_TRUE(key->data.empty());
  EXPECT_EQ(key->elements, 21);
  EXPECT_EQ(file.dtype(*key).error().detail, "blk.0.attn_k.weight has type unknown (99)");
  EXPECT_EQ(file.dtype(*file.find_tensor("blk.0.attn_v.weight")).error().detail,
            "blk.0.attn_v.weight has type Q4_0_4_4");
}

TEST(Gguf, odd_files_that_the_specification_allows_are_read) {
  for (const OddGguf& odd : odd_ggufs()) {
    const auto file = GgufFile::parse(odd.bytes, odd.name);
    EXPECT_TRUE(file.ok()) << odd.name << ": " << (file.ok() ? "" : file.error().terminal_text());
  }
}

TEST(Gguf, counts_at_their_limits_are_read) {
  RawGguf keys(0, kGgufMaxKeys);
  for (uint64_t i = 0; i < kGgufMaxKeys; ++i) keys.key(std::to_string(i), GgufValueType::uint8).u8(1);
  const auto many_keys = keys.bytes();
  const GgufFile file = GgufFile::parse(many_keys, "keys").value();
  EXPECT_EQ(file.integer("65535").value(), 1);
  EXPECT_EQ(file.find("65536"), nullptr);

  RawGguf tensors(kGgufMaxTensors, 0);
  for (uint64_t i = 0; i < kGgufMaxTensors; ++i) tensors.tensor(std::to_string(i), {1}, 0, i * 32);
  const auto many_tensors = tensors.align(32).zeros(kGgufMaxTensors * 32).bytes();
  EXPECT_EQ(GgufFile::parse(many_tensors, "tensors").value().find_tensor("65535")->offset,
            static_cast<int64_t>(many_tensors.size()) - 32);

  const auto long_string =
      RawGguf(0, 1).key("a", GgufValueType::string).string(std::string(kGgufMaxStringBytes, 's')).bytes();
  EXPECT_EQ(GgufFile::parse(long_string, "string").value().string("a").value().size(), kGgufMaxStringBytes);
}

TEST(Gguf, open_maps_the_file_and_survives_being_moved) {
  GgufWriter writer(64);
  const std::vector<std::byte> data(4096, std::byte{7});
  writer.add("general.architecture", "qwen2");
  writer.add_tensor("output.weight", DType::f32, {32, 32}, data);
  const std::string path = cat(testing::TempDir(), ::getpid(), "-open_maps.gguf");
  ASSERT_TRUE(writer.write(path).ok());
  GgufFile opened = GgufFile::open(path).value();
  const GgufFile file = std::move(opened);
  EXPECT_EQ(file.alignment(), 64);
  EXPECT_EQ(file.string("general.architecture").value(), "qwen2");
  EXPECT_EQ(file.tensor("output.weight").value()->data[4095], std::byte{7});
  EXPECT_EQ(file.mapping()->path(), path);
  EXPECT_EQ(GgufFile::open(path + ".absent").error().code, Code::io_not_found);
  EXPECT_FALSE(std::ifstream(path + ".part").good());
  ::unlink(path.c_str());
}

TEST(Gguf, the_writer_says_where_it_cannot_write) {
  EXPECT_EQ(GgufWriter().write("/no/such/folder/model.gguf").error().code, Code::io_write);
}

TEST(GgmlTypes, sizes_are_those_of_the_kernels) {
  for (int i = 0; i < kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::f8_e4m3) continue;  // no GGML type
    const uint32_t number = ggml_type_number(dtype);
    EXPECT_EQ(ggml_compute_type(number), dtype);
    const GgmlType* type = find_ggml_type(number);
    EXPECT_EQ(type->name, dtype_name(dtype));
    EXPECT_EQ(type->block_elements, dtype_info(dtype).block_elements);
    EXPECT_EQ(type->block_bytes, dtype_info(dtype).block_bytes);
  }
  EXPECT_EQ(find_ggml_type(43), nullptr);
  EXPECT_EQ(ggml_type_name(43), "unknown (43)");
  EXPECT_EQ(ggml_compute_type(40), std::nullopt);
}

// A size as 128-bit integers give it, -1 when it is not allowed.
int64_t size_by_int128(const GgmlType& type, std::span<const uint64_t> dims) {
  __extension__ using Wide = unsigned __int128;
  const Wide limit = static_cast<Wide>(INT64_MAX);
  if (dims[0] % static_cast<uint64_t>(type.block_elements) != 0) return -1;
  Wide elements = 1;
  for (const uint64_t dim : dims) {
    elements *= dim;  // at most 2^63 · 2^64
    if (elements == 0 || elements > limit) return -1;
  }
  const Wide size = elements / static_cast<Wide>(type.block_elements) * static_cast<Wide>(type.block_bytes);
  return size > limit ? -1 : static_cast<int64_t>(size);
}

TEST(GgmlTypes, sizes_near_the_edges_agree_with_128_bit_integers) {
  constexpr std::array<uint64_t, 10> kEdges = {0,
                                               32,
                                               256,
                                               uint64_t{1} << 16,
                                               uint64_t{1} << 31,
                                               uint64_t{1} << 32,
                                               (uint64_t{1} << 42) + 1,
                                               uint64_t{1} << 62,
                                               uint64_t{1} << 63,
                                               0};
  int accepted = 0;
  for (uint32_t round = 0; round < 1000000; ++round) {
    const auto draw = Philox::draw({round, 0, 0, 0}, {5, 0});
    const GgmlType* type = find_ggml_type(draw[0] % 43);
    if (type->block_elements == 0) continue;
    std::array<uint64_t, 4> dims{};
    const size_t count = 1 + draw[1] % 4;
    for (size_t i = 0; i < count; ++i) {
      const uint32_t bits = draw[2] >> (8 * i);
      // An edge plus or minus up to 3, or a small number of blocks, which reach the edges by multiplication.
      dims[i] = bits % 2 == 0 ? kEdges[bits / 2 % 10] + bits / 32 % 7 - 3
                              : uint64_t{256} << (bits / 2 % 32) >> (draw[3] >> (8 * i)) % 8;
    }
    const auto shape = std::span(dims).first(count);
    const int64_t expected = size_by_int128(*type, shape);
    ASSERT_EQ(tensor_bytes(*type, shape).value_or(-1), expected) << "round " << round;
    accepted += expected >= 0 ? 1 : 0;
  }
  // Both answers occur often, or the draw would prove nothing.
  EXPECT_GT(accepted, 100000);
  EXPECT_LT(accepted, 900000);
}

TEST(Gguf, a_tensor_is_read_exactly_when_128_bit_integers_place_it_in_the_file) {
  __extension__ using Wide = unsigned __int128;
  constexpr std::array<uint64_t, 6> kEdges = {
      0, 64, 4096, uint64_t{1} << 32, uint64_t{1} << 63, UINT64_MAX - 31};
  int accepted = 0;
  for (uint32_t round = 0; round < 20000; ++round) {
    const auto draw = Philox::draw({round, 0, 0, 0}, {6, 0});
    const uint64_t rows = kEdges[draw[0] % 6] / 32 + draw[0] / 6 % 3;
    const uint64_t offset = kEdges[draw[1] % 6] + 32 * (draw[1] / 6 % 5) + (draw[1] % 16 == 0 ? 8 : 0);
    const auto bytes = RawGguf(1, 0).tensor("t", {32, rows}, 2, offset).align(32).zeros(4096).bytes();
    const Wide end = Wide{96} + offset + Wide{rows} * 18;  // the data begin at byte 96: 24 + 49, padded
    const bool expected = rows > 0 && offset % 32 == 0 && end <= bytes.size();
    ASSERT_EQ(GgufFile::parse(bytes, "t").ok(), expected) << "rows " << rows << " offset " << offset;
    accepted += expected ? 1 : 0;
  }
  EXPECT_GT(accepted, 1000);
}

TEST(GgufDump, text_shows_keys_tensors_and_totals) {
  const auto bytes = ordinary_gguf();
  const std::string text = gguf_dump_text(GgufFile::parse(bytes, "ordinary.gguf").value());
  for (const char* line : {
           "ordinary.gguf: GGUF version 3, 1,664 bytes, 20 keys, 4 tensors, 453 elements, alignment 32, data "
           "at 1,056\n",
           "\nt.float32                  float32     1e-06\n",
           "\nt.uint64                   uint64      9223372036854775808\n",
           "\nt.bool                     bool        true\n",
           "\nt.none                     uint8[0]    []\n",
           "\ntokenizer.ggml.tokens      string[7]   [\"a\", \"\", \"\\xc4\\xa0the\", \"<|end|>\", …, \"y\", "
           "\"z\"]\n",
           "\ntokenizer.chat_template    string      \"{% for m in messages %}\\n{{ m.content }}{% endfor "
           "%}\"\n",
           "\nblk.0.ffn_gate_exps.weight  Q4_0  32 x 1 x 2 x 2  1,568   72\n",
           "\nF16   1        384\n",
           "\nQ4_0  2        144\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST(GgufDump, what_a_file_says_cannot_reach_the_terminal) {
  const auto bytes = RawGguf(1, 2)
                         .key("a", GgufValueType::string)
                         .string("\x1b]0;owned\x07")
                         .array("b", GgufValueType::string, 1)
                         .string("\x1b[2J")
                         .tensor("\xe2\x80\xae.weight", {1}, 0, 0)
                         .align(32)
                         .zeros(4)
                         .bytes();
  const std::string text = gguf_dump_text(GgufFile::parse(bytes, "escape.gguf").value());
  EXPECT_THAT(text, HasSubstr("\"\\x1b]0;owned\\x07\""));
  EXPECT_THAT(text, HasSubstr("[\"\\x1b[2J\"]"));
  EXPECT_THAT(text, HasSubstr("\\xe2\\x80\\xae.weight"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(GgufDump, json_of_odd_files_is_well_formed) {
  for (const OddGguf& odd : odd_ggufs()) {
    EXPECT_TRUE(parse_json(to_json(gguf_dump_json(GgufFile::parse(odd.bytes, odd.name).value()))).ok())
        << odd.name;
  }
}

TEST(GgufDump, json_has_what_scripts_need) {
  std::vector<int32_t> long_array(65);
  for (size_t i = 0; i < long_array.size(); ++i) long_array[i] = static_cast<int32_t>(i);
  const std::vector<std::byte> data(64);
  GgufWriter writer;
  writer.add("a", 0.5F);
  writer.add_array<int32_t>("b", std::span(long_array).first(2));
  writer.add_array<int32_t>("c", long_array);
  writer.add_tensor("t", DType::f32, {8, 2}, data);
  writer.add_tensor("u", 99, {5}, data);
  const auto bytes = writer.bytes();
  EXPECT_EQ(to_json(gguf_dump_json(GgufFile::parse(bytes, "j.gguf").value())),
            "{\"file\":\"j.gguf\",\"version\":3,\"bytes\":576,\"alignment\":32,\"data_offset\":448,\"keys\":["
            "{\"key\":\"a\",\"type\":\"float32\",\"value\":0.5},"
            "{\"key\":\"b\",\"type\":\"array\",\"element_type\":\"int32\",\"length\":2,\"value\":[0,1]},"
            "{\"key\":\"c\",\"type\":\"array\",\"element_type\":\"int32\",\"length\":65,\"first\":[0,1,2,3],"
            "\"last\":[63,64]}],"
            "\"tensors\":[{\"name\":\"t\",\"type\":\"F32\",\"supported\":true,\"shape\":[8,2],\"offset\":448,"
            "\"bytes\":64},"
            "{\"name\":\"u\",\"type\":\"unknown "
            "(99)\",\"supported\":false,\"shape\":[5],\"offset\":512,\"bytes\":null}],"
            "\"elements\":21,\"totals\":[{\"type\":\"F32\",\"tensors\":1,\"bytes\":64},"
            "{\"type\":\"unknown (99)\",\"tensors\":1,\"bytes\":0}]}");
}

}  // namespace
}  // namespace inferd
