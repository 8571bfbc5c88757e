// What an ordinary safetensors file reads as, and files with an index, right and wrong.

#include "formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "formats/golden_path.h"
#include "formats/safetensors_samples.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Safetensors, an_ordinary_file_gives_names_types_shapes_and_bytes) {
  const auto bytes = ordinary_safetensors();
  const SafetensorsFile file = SafetensorsFile::parse(bytes, "a.safetensors").value();
  EXPECT_EQ(file.name(), "a.safetensors");
  EXPECT_EQ(file.data_offset() % 8, 0);
  EXPECT_THAT(file.metadata(), ElementsAre(std::pair<std::string, std::string>("format", "pt")));
  ASSERT_EQ(file.tensors().size(), 16U);

  // In the order of the data, not of the header.
  const SafetensorsTensor& matrix = file.tensors()[0];
  EXPECT_EQ(matrix.name, "matrix");
  EXPECT_EQ(matrix.dtype, SafetensorsDType::f32);
  EXPECT_THAT(matrix.shape, ElementsAre(2, 3));
  EXPECT_EQ(matrix.elements, 6);
  EXPECT_EQ(matrix.offset, file.data_offset());
  EXPECT_EQ(matrix.data.size(), 24U);
  EXPECT_EQ(matrix.data[23], std::byte{23});
  EXPECT_EQ(file.find("matrix"), &matrix);

  const SafetensorsTensor* half = file.find("BF16");
  ASSERT_NE(half, nullptr);
  EXPECT_EQ(safetensors_dtype_name(half->dtype), "BF16");
  EXPECT_EQ(half->data.size(), 4U);
  EXPECT_EQ(half->data.data(), file.bytes().data() + half->offset);
  for (const SafetensorsTensor& tensor : file.tensors().subspan(1)) {
    EXPECT_EQ(safetensors_dtype_name(tensor.dtype), tensor.name);
    EXPECT_EQ(std::ssize(tensor.data), 2 * safetensors_dtype_bytes(tensor.dtype)) << tensor.name;
  }
  EXPECT_EQ(file.find("F33"), nullptr);
  EXPECT_EQ(file.mapping(), nullptr);
}

TEST(Safetensors, kernels_know_the_floats) {
  EXPECT_EQ(safetensors_compute_type(SafetensorsDType::f32), DType::f32);
  EXPECT_EQ(safetensors_compute_type(SafetensorsDType::f16), DType::f16);
  EXPECT_EQ(safetensors_compute_type(SafetensorsDType::bf16), DType::bf16);
  EXPECT_EQ(safetensors_compute_type(SafetensorsDType::f8_e4m3), DType::f8_e4m3);
  EXPECT_EQ(safetensors_compute_type(SafetensorsDType::f8_e5m2), std::nullopt);
  EXPECT_EQ(safetensors_compute_type(SafetensorsDType::f64), std::nullopt);
}

TEST(Safetensors, odd_files_load) {
  for (const OddSafetensors& odd : odd_safetensors()) {
    const auto parsed = SafetensorsFile::parse(odd.bytes, odd.name);
    EXPECT_TRUE(parsed.ok()) << odd.name << ": " << (parsed.ok() ? "" : parsed.error().terminal_text());
  }
  const auto escaped = raw_safetensors(R"({"\u5c42":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", 1);
  EXPECT_EQ(SafetensorsFile::parse(escaped, "escaped").value().tensors()[0].name, "\xe5\xb1\x82");
}

// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() : path_(cat(testing::TempDir(), "safetensors_test.", ::getpid())) { fs::create_directory(path_); }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, std::string_view text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
    return path_ + "/" + name;
  }
  // A file with tensors of 4 bytes of those names.
  void write_tensors(const std::string& name, const std::vector<std::string>& tensors) const {
    std::string header = "{";
    int64_t at = 0;
    for (const std::string& tensor : tensors) {
      header += cat(at == 0 ? "" : ",", "\"", tensor, R"(":{"dtype":"F32","shape":[1],"data_offsets":[)", at,
                    ",", at + 4, "]}");
      at += 4;
    }
    const auto bytes = raw_safetensors(header + "}", static_cast<size_t>(at));
    write(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr std::string_view kTwoFiles =
    R"({"metadata":{"total_size":12},"weight_map":{"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"}})";

TEST(SafetensorsModel, opens_a_folder_an_index_or_a_file) {
  const Folder folder;
  folder.write_tensors("1.safetensors", {"b", "a"});
  folder.write_tensors("2.safetensors", {"c", "not in the index"});
  const std::string index = folder.write("model.safetensors.index.json", kTwoFiles);
  for (const std::string& path : {folder.path(), index}) {
    const SafetensorsModel model = SafetensorsModel::open(path).value();
    EXPECT_EQ(model.files().size(), 2U);
    ASSERT_EQ(model.tensors().size(), 3U);
    EXPECT_EQ(model.tensors()[1].tensor->name, "b");
    EXPECT_EQ(model.find("c")->file, 1);
    EXPECT_EQ(model.find("c")->tensor, model.files()[1].find("c"));
    EXPECT_EQ(model.find("not in the index"), nullptr);
  }
  const SafetensorsModel one = SafetensorsModel::open(folder.path() + "/1.safetensors").value();
  EXPECT_EQ(one.tensors().size(), 2U);
  EXPECT_NE(one.files()[0].mapping(), nullptr);

  // As transformers has it, model.safetensors comes before an index.
  folder.write_tensors("model.safetensors", {"a"});
  EXPECT_EQ(SafetensorsModel::open(folder.path()).value().tensors().size(), 1U);
}

TEST(SafetensorsModel, refuses_what_is_wrong_with_an_index) {
  const Folder folder;
  folder.write_tensors("1.safetensors", {"a", "b"});
  folder.write_tensors("2.safetensors", {"c"});
  folder.write_tensors("3.safetensors", {"a"});
  const auto error_of = [&](std::string_view index) {
    return SafetensorsModel::open(folder.write("model.safetensors.index.json", index)).error();
  };
  struct Wrong {
    std::string_view index;
    std::string_view detail;
    std::string_view where = "";
  };
  const Wrong table[] = {
      {"", "unexpected end of input"},
      {"[]", "of type array, object expected"},
      {"{", "unexpected end of input", "byte"},
      {R"({"metadata":{}})", "the field weight_map is missing", "weight_map"},
      {R"({"weight_map":["1.safetensors"]})", "of type array, object expected", "weight_map"},
      {R"({"weight_map":{}})", "it names no tensor"},
      {R"({"weight_map":{"a":1}})", "of type integer, the name of a file expected", "tensor \"a\""},
      {R"({"weight_map":{"a":"1.safetensors","a":"2.safetensors"}})", "duplicate key \"a\""},
      {R"({"weight_map":{"a":""}})", "it is in \"\", the name of a .safetensors file"},
      {R"({"weight_map":{"a":"../1.safetensors"}})", "it is in \"../1.safetensors\"", "tensor \"a\""},
      {R"({"weight_map":{"a":"/etc/1.safetensors"}})", "it is in \"/etc/1.safetensors\""},
      {R"({"weight_map":{"a":"pytorch_model.bin"}})", "it is in \"pytorch_model.bin\""},
      {R"({"weight_map":{"a":"1\u0000.safetensors"}})", "it is in \"1\\x00.safetensors\""},
      {R"({"weight_map":{"a":"1.safetensors","d":"4.safetensors"}})",
       "it names \"4.safetensors\", which is not there"},
      {R"({"weight_map":{"c":"1.safetensors"}})",
       "it should be in \"1.safetensors\", which has no such tensor", "tensor \"c\""},
      {R"({"weight_map":{"a":"1.safetensors","b":"3.safetensors"}})", "\"3.safetensors\", which has no such"},
  };
  for (const Wrong& wrong : table) {
    SCOPED_TRACE(wrong.index);
    const Error error = error_of(wrong.index);
    EXPECT_EQ(error.code, Code::safetensors_index);
    EXPECT_THAT(error.detail, HasSubstr(std::string(wrong.detail)));
    EXPECT_THAT(error.where, HasSubstr("model.safetensors.index.json"));
    EXPECT_THAT(error.where, HasSubstr(std::string(wrong.where)));
  }
  // "a" is in a second file that the index needs for something else.
  folder.write_tensors("3.safetensors", {"a", "d"});
  const Error twice = error_of(R"({"weight_map":{"a":"1.safetensors","d":"3.safetensors"}})");
  EXPECT_EQ(twice.code, Code::safetensors_index);
  EXPECT_THAT(twice.detail, HasSubstr("1.safetensors\" and in "));
  // What is wrong with a file is said of the file.
  folder.write("2.safetensors", "short");
  const Error cut = error_of(kTwoFiles);
  EXPECT_EQ(cut.code, Code::safetensors_truncated);
  EXPECT_THAT(cut.where, HasSubstr("2.safetensors, byte 0"));
}

TEST(SafetensorsModel, says_what_a_folder_lacks) {
  const Folder folder;
  const Error error = SafetensorsModel::open(folder.path()).error();
  EXPECT_EQ(error.code, Code::io_not_found);
  EXPECT_EQ(error.detail, "neither model.safetensors nor model.safetensors.index.json is in the folder");
  EXPECT_EQ(SafetensorsModel::open(folder.path() + "/absent.safetensors").error().code, Code::io_not_found);
}

// Those of the golden models that have no GGUF twin (gguf_tiny_test.cpp compares the others).
TEST(SafetensorsModel, opens_the_golden_models_without_a_twin) {
  struct Model {
    std::string family;
    size_t tensors;
    std::string_view dtype;
    std::string name;
    std::vector<int64_t> shape;
  };
  const Model table[] = {
      {"mistral", 21, "F16", "model.layers.1.self_attn.k_proj.weight", {32, 64}},
      {"qwen3_5", 55, "BF16", "model.layers.0.linear_attn.conv1d.weight", {128, 1, 4}},
  };
  for (const Model& wanted : table) {
    const SafetensorsModel model =
        SafetensorsModel::open(golden_path("tiny/" + wanted.family + "/hf")).value();
    EXPECT_EQ(model.tensors().size(), wanted.tensors) << wanted.family;
    for (const SafetensorsModel::Entry& entry : model.tensors()) {
      EXPECT_EQ(safetensors_dtype_name(entry.tensor->dtype), wanted.dtype) << entry.tensor->name;
    }
    ASSERT_NE(model.find(wanted.name), nullptr) << wanted.family;
    EXPECT_EQ(model.find(wanted.name)->tensor->shape, wanted.shape);
  }
}

}  // namespace
}  // namespace inferd
