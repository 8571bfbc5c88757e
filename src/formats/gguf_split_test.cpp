// Models split into parts: opened as one from any part, and each way in which parts do not fit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/strings.h"
#include "formats/gguf.h"
#include "formats/gguf_dump.h"
#include "formats/gguf_writer.h"
#include "formats/golden_path.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() : path_(cat(testing::TempDir(), "gguf_split_test.", ::getpid())) { fs::create_directory(path_); }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// What the keys and the name of a part say, right unless a test changes it.
struct Part {
  int number = 1;  // from 1
  int count = 3;
  std::vector<std::string> tensors;
  std::string architecture = "llama";  // written into the first part, and into others when it is another
  int tensors_of_all = 4;
  std::string name = {};  // by number and count when empty
  bool with_keys = true;
};

std::string name_of(const Part& part) {
  if (!part.name.empty()) return part.name;
  return cat("m-0000", part.number, "-of-0000", part.count, ".gguf");
}

void write(const Folder& folder, const Part& part) {
  static const std::vector<std::byte> data(64, std::byte{1});
  GgufWriter writer;
  if (part.number == 1 || part.architecture != "llama") writer.add("general.architecture", part.architecture);
  if (part.with_keys) {
    writer.add("split.no", static_cast<uint16_t>(part.number - 1));
    writer.add("split.count", static_cast<uint16_t>(part.count));
    writer.add("split.tensors.count", static_cast<int32_t>(part.tensors_of_all));
  }
  for (const std::string& tensor : part.tensors) writer.add_tensor(tensor, DType::f32, {16}, data);
  ASSERT_TRUE(writer.write(folder / name_of(part)).ok());
}

// The first part has no tensors, as gguf-split makes it with --no-tensor-first-split.
const std::vector<Part> kRight = {
    {.number = 1}, {.number = 2, .tensors = {"c", "a"}}, {.number = 3, .tensors = {"b", "d"}}};

void write_all(const Folder& folder, const std::vector<Part>& parts) {
  for (const Part& part : parts) write(folder, part);
}

TEST(GgufSplit, any_part_opens_the_whole) {
  const Folder folder;
  write_all(folder, kRight);
  for (const int given : {1, 2, 3}) {
    const GgufFile file = GgufFile::open(folder / cat("m-0000", given, "-of-00003.gguf")).value();
    EXPECT_EQ(file.name(), folder / "m-00001-of-00003.gguf");
    EXPECT_EQ(file.parts(), 3);
    EXPECT_EQ(file.string("general.architecture").value(), "llama");
    std::vector<std::string> names;
    for (const GgufTensor& tensor : file.tensors()) names.emplace_back(tensor.name);
    EXPECT_THAT(names, ElementsAre("c", "a", "b", "d"));
    EXPECT_EQ(file.find_tensor("c")->part, 1);
    const GgufTensor* d = file.tensor("d").value();
    EXPECT_EQ(d->part, 2);
    EXPECT_EQ(d->data.size(), 64U);
    EXPECT_EQ(d->data[63], std::byte{1});
    file.release(*d);
    EXPECT_EQ(d->data[63], std::byte{1});
    int64_t bytes = 0;
    for (const int part : {1, 2, 3})
      bytes += static_cast<int64_t>(fs::file_size(folder / cat("m-0000", part, "-of-00003.gguf")));
    EXPECT_EQ(file.total_bytes(), bytes);
  }
}

TEST(GgufSplit, a_dump_says_which_part_has_a_tensor) {
  const Folder folder;
  write_all(folder, kRight);
  const GgufFile file = GgufFile::open(folder / "m-00001-of-00003.gguf").value();
  EXPECT_THAT(gguf_dump_text(file), HasSubstr(": GGUF version 3, 3 parts, "));
  const Json dump = gguf_dump_json(file);
  EXPECT_EQ(dump.find("parts")->as_integer(), 3);
  EXPECT_EQ(dump.find("tensors")->as_array()[3].find("part")->as_integer(), 3);
}

TEST(GgufSplit, a_golden_model_in_parts_has_the_tensors_of_the_whole) {
  const Folder folder;
  const GgufFile whole = GgufFile::open(golden_path("tiny/llama/gguf/tiny-llama-q8_0.gguf")).value();
  const size_t count = whole.tensors().size();
  for (size_t part = 0; part < 3; ++part) {
    GgufWriter writer;
    if (part == 0) writer.add("general.architecture", whole.string("general.architecture").value());
    writer.add("split.no", static_cast<uint16_t>(part));
    writer.add("split.count", uint16_t{3});
    writer.add("split.tensors.count", static_cast<int32_t>(count));
    for (const GgufTensor& t :
         whole.tensors().subspan(part * count / 3, (part + 1) * count / 3 - part * count / 3)) {
      writer.add_tensor(t.name, t.type, {t.shape.begin(), t.shape.begin() + t.dims}, t.data);
    }
    ASSERT_TRUE(writer.write(folder / cat("tiny-0000", part + 1, "-of-00003.gguf")).ok());
  }
  const GgufFile joined = GgufFile::open(folder / "tiny-00001-of-00003.gguf").value();
  ASSERT_EQ(joined.tensors().size(), count);
  for (const GgufTensor& wanted : whole.tensors()) {
    const GgufTensor* tensor = joined.tensor(wanted.name).value();
    EXPECT_EQ(tensor->type, wanted.type);
    EXPECT_EQ(tensor->shape, wanted.shape);
    EXPECT_TRUE(std::ranges::equal(tensor->data, wanted.data)) << wanted.name;
  }
}

TEST(GgufSplit, a_type_that_is_not_computed_with_is_named_with_its_part) {
  const Folder folder;
  std::vector<Part> parts = kRight;
  parts[1].tensors_of_all = parts[0].tensors_of_all = parts[2].tensors_of_all = 3;
  parts[2].tensors = {};
  write_all(folder, parts);
  GgufWriter writer;
  writer.add("split.no", uint16_t{2});
  writer.add("split.count", uint16_t{3});
  writer.add("split.tensors.count", 3);
  const std::vector<std::byte> data(66);
  writer.add_tensor("iq", 16, {256}, data);
  ASSERT_TRUE(writer.write(folder / "m-00003-of-00003.gguf").ok());
  const GgufFile file = GgufFile::open(folder / "m-00001-of-00003.gguf").value();
  const Error error = file.dtype(*file.tensor("iq").value()).error();
  EXPECT_EQ(error.code, Code::model_tensor_type);
  EXPECT_THAT(error.where, HasSubstr("m-00003-of-00003.gguf, byte "));
}

TEST(GgufSplit, one_part_of_one_is_an_ordinary_file) {
  const Folder folder;
  for (const int count : {0, 1}) {  // 0: parts that were merged again
    write(folder, {.number = 1, .count = count, .tensors = {"a"}, .tensors_of_all = 1, .name = "whole.gguf"});
    const GgufFile file = GgufFile::open(folder / "whole.gguf").value();
    EXPECT_EQ(file.parts(), 1);
    EXPECT_EQ(file.tensors().size(), 1U);
  }
}

struct Wrong {
  std::string name;
  std::function<void(std::vector<Part>&)> change;
  Code code;
  std::string detail;
  std::string where;  // "FILE, place"
  int open = 1;
};
void PrintTo(const Wrong& wrong, std::ostream* out) {
  *out << wrong.name;
}

class WrongParts : public testing::TestWithParam<Wrong> {};

TEST_P(WrongParts, are_refused_by_file_and_reason) {
  const Wrong& wrong = GetParam();
  const Folder folder;
  std::vector<Part> parts = kRight;
  wrong.change(parts);
  const std::string opened = folder / name_of(parts[static_cast<size_t>(wrong.open) - 1]);
  write_all(folder, parts);
  const auto file = GgufFile::open(opened);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(error_row(file.error().code).id, error_row(wrong.code).id) << file.error().terminal_text();
  EXPECT_THAT(file.error().detail, HasSubstr(wrong.detail));
  EXPECT_THAT(file.error().where, HasSubstr(wrong.where));
}

std::vector<Wrong> wrong_parts() {
  const Code split = Code::gguf_split;
  return {
      {"last_is_missing", [](auto& parts) { parts.pop_back(); }, split, "part 3 of 3 is missing",
       "/m-00003-of-00003.gguf, file"},
      {"first_is_missing", [](auto& parts) { parts.erase(parts.begin()); }, split, "part 1 of 3 is missing",
       "/m-00001-of-00003.gguf, file"},
      {"name_of_another_form", [](auto& parts) { parts[0].name = "model.gguf"; }, split,
       "it is part 1 of 3, so its name must end in -00001-of-00003.gguf", "/model.gguf, name"},
      {"name_with_four_digits", [](auto& parts) { parts[0].name = "m-0001-of-0003.gguf"; }, split,
       "so its name must end in", "name"},
      {"name_with_a_sign", [](auto& parts) { parts[0].name = "m--0001-of-00003.gguf"; }, split,
       "so its name must end in", "name"},
      {"names_swapped",
       [](auto& parts) {
         parts[0].name = "m-00002-of-00003.gguf";
         parts[1].name = "m-00001-of-00003.gguf";
       },
       split, "by its name it is part 2 of 3, by its keys part 1 of 3", "/m-00002-of-00003.gguf, name"},
      {"name_of_another_count", [](auto& parts) { parts[0].name = "m-00001-of-00004.gguf"; }, split,
       "by its name it is part 1 of 4, by its keys part 1 of 3", "name"},
      {"later_names_swapped",
       [](auto& parts) {
         parts[1].name = "m-00003-of-00003.gguf";
         parts[2].name = "m-00002-of-00003.gguf";
       },
       split, "it is 2, 1 expected", "/m-00002-of-00003.gguf, key split.no"},
      {"part_of_another_count",
       [](auto& parts) {
         parts[2].count = 4;
         parts[2].name = "m-00003-of-00003.gguf";
       },
       split, "it is 4, 3 expected", "/m-00003-of-00003.gguf, key split.count"},
      {"part_that_is_whole", [](auto& parts) { parts[2].with_keys = false; }, Code::model_metadata,
       "split.count\" is missing", "/m-00003-of-00003.gguf, key \"split.count\""},
      {"part_of_another_model_by_its_keys", [](auto& parts) { parts[1].architecture = "qwen2"; }, split,
       "the first part has another value: it is of another model",
       "m-00002-of-00003.gguf, byte 24, key \"general.architecture\""},
      {"part_of_another_model_by_its_sum", [](auto& parts) { parts[1].tensors_of_all = 5; }, split,
       "it is 5, 4 expected", "/m-00002-of-00003.gguf, key split.tensors.count"},
      {"tensor_twice", [](auto& parts) { parts[2].tensors[1] = "a"; }, split, "it is in parts 2 and 3",
       "tensor \"a\""},
      {"tensor_lost", [](auto& parts) { parts[2].tensors.pop_back(); }, split,
       "the parts have 3 tensors together, not 4", "/m-00001-of-00003.gguf, key split.tensors.count"},
      {"tensor_more", [](auto& parts) { parts[2].tensors.emplace_back("e"); }, split,
       "the parts have 5 tensors together, not 4", ""},
      {"number_past_the_count",
       [](auto& parts) {
         parts[0].number = 4;
         parts[0].name = "m-00001-of-00003.gguf";
       },
       split, "it is 3, 0 to 2 allowed", "key split.no"},
      {"count_past_the_limit",
       [](auto& parts) {
         parts[0].count = 1025;
         parts[0].name = "m-00001-of-01025.gguf";
       },
       split, "it is 1025, 2 to 1,024 allowed", "key split.count"},
      {"tensors_below_0", [](auto& parts) { parts[0].tensors_of_all = -1; }, split,
       "it is -1, 0 to 65,536 allowed", "key split.tensors.count"},
      {"tensors_past_the_limit", [](auto& parts) { parts[0].tensors_of_all = 65537; }, split,
       "it is 65537, 0 to 65,536 allowed", ""},
      {"wrong_when_opened_by_the_second", [](auto& parts) { parts[0].tensors_of_all = 5; }, split,
       "it is 5, 4 expected", "/m-00001-of-00003.gguf, key split.tensors.count", 2},
  };
}

INSTANTIATE_TEST_SUITE_P(GgufSplit, WrongParts, testing::ValuesIn(wrong_parts()),
                         [](const auto& instance) { return instance.param.name; });

TEST(GgufSplit, a_damaged_part_is_refused_as_any_file) {
  const Folder folder;
  write_all(folder, kRight);
  std::ofstream(folder / "m-00002-of-00003.gguf") << "GGUF";
  const Error error = GgufFile::open(folder / "m-00001-of-00003.gguf").error();
  EXPECT_EQ(error.code, Code::gguf_truncated);
  EXPECT_THAT(error.where, HasSubstr("m-00002-of-00003.gguf, byte 4"));

  // A key of the wrong type, or one without the others.
  GgufWriter typed;
  typed.add("split.count", "3");
  ASSERT_TRUE(typed.write(folder / "m-00001-of-00003.gguf").ok());
  EXPECT_EQ(GgufFile::open(folder / "m-00001-of-00003.gguf").error().code, Code::model_metadata);
  GgufWriter lone;
  lone.add("split.count", uint16_t{3});
  ASSERT_TRUE(lone.write(folder / "m-00001-of-00003.gguf").ok());
  const Error missing = GgufFile::open(folder / "m-00001-of-00003.gguf").error();
  EXPECT_EQ(missing.code, Code::model_metadata);
  EXPECT_THAT(missing.where, EndsWith("key \"split.no\""));
}

}  // namespace
}  // namespace inferd
