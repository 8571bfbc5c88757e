#include "hub/model_names.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <set>

#include "hub/test_wheel.h"

namespace inferd {
namespace {

using testing_hub::ScratchFolder;
using testing_hub::write_file;

TEST(NamedModels, the_pins_are_whole) {
  std::set<std::string_view> names, hashes;
  for (const NamedModel& model : named_models()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_EQ(model.sha256.size(), 64u) << model.name;
    int64_t sum = 0;
    for (const WheelPart& part : model.parts) {
      EXPECT_EQ(part.wheel_sha256.size(), 64u) << part.package;
      EXPECT_TRUE(hashes.insert(part.wheel_sha256).second) << part.package;
      EXPECT_GT(part.wheel_bytes, 0) << part.package;
      sum += part.entry_bytes;
    }
    EXPECT_EQ(sum, model.bytes) << model.name;
  }
  ASSERT_NE(find_named_model(kDefaultModel), nullptr);
  EXPECT_TRUE(find_named_model(kDefaultModel)->offered);
  EXPECT_EQ(find_named_model("smollm"), nullptr);
}

TEST(ModelFolder, follows_the_xdg_specification) {
  EXPECT_EQ(default_model_folder("/data", "/home/a").value(), "/data/inferd/models");
  EXPECT_EQ(default_model_folder("", "/home/a").value(), "/home/a/.local/share/inferd/models");
  EXPECT_EQ(default_model_folder("relative", "/home/a").value(), "/home/a/.local/share/inferd/models");
  EXPECT_EQ(default_model_folder("", "").error().code, Code::io_not_found);
}

TEST(ResolveModel, a_slash_or_the_suffix_makes_a_path) {
  const ScratchFolder scratch;
  const std::string& folder = scratch.path;
  write_file(folder + "/My.Model.gguf", "x");
  const ModelLocation found = resolve_model(folder + "/My.Model.gguf", "/nowhere").value();
  EXPECT_EQ(found.name, "My.Model");
  EXPECT_EQ(found.path, folder + "/My.Model.gguf");
  EXPECT_EQ(found.known, nullptr);
  EXPECT_TRUE(found.present);
  EXPECT_EQ(resolve_model("./smollm2", folder).error().code, Code::io_not_found);
}

TEST(ResolveModel, names_of_the_table_and_of_the_folder_are_found) {
  const ScratchFolder scratch;
  const std::string& folder = scratch.path;
  const ModelLocation absent = resolve_model("smollm2", folder).value();
  EXPECT_EQ(absent.path, folder + "/smollm2.gguf");
  EXPECT_EQ(absent.known, find_named_model("smollm2"));
  EXPECT_FALSE(absent.present);

  write_file(folder + "/mine.gguf", "x");
  EXPECT_EQ(resolve_model("mine", folder)->path, folder + "/mine.gguf");

  write_file(folder + "/smollm2.gguf", "");
  std::filesystem::resize_file(folder + "/smollm2.gguf", 98362432);  // sparse; the size is what is looked at
  EXPECT_TRUE(resolve_model("smollm2", folder)->present);
  std::filesystem::resize_file(folder + "/smollm2.gguf", 98362431);
  const Error other_size = resolve_model("smollm2", folder).error();
  EXPECT_EQ(other_size.code, Code::model_hash);
  EXPECT_EQ(other_size.detail, "98,362,431 bytes, smollm2 has 98,362,432");
}

TEST(ResolveModel, test_models_are_not_offered_but_found_when_present) {
  const ScratchFolder scratch;
  const std::string& folder = scratch.path;
  EXPECT_EQ(resolve_model("qwen2.5-coder-0.5b", folder).error().code, Code::hub_not_offered);
  EXPECT_EQ(resolve_model("gemma3-270m", folder).error().code, Code::hub_not_offered);
  write_file(folder + "/gemma3-270m.gguf", "");
  std::filesystem::resize_file(folder + "/gemma3-270m.gguf", 253113024);
  EXPECT_TRUE(resolve_model("gemma3-270m", folder)->present);
}

TEST(ResolveModel, a_typing_error_names_the_nearest_model) {
  const ScratchFolder scratch;
  const std::string& folder = scratch.path;
  write_file(folder + "/phi-mini.gguf", "x");
  EXPECT_EQ(resolve_model("smolm2", folder).error().code, Code::model_name);
  EXPECT_EQ(resolve_model("smolm2", folder).error().fix, "did you mean smollm2?");
  EXPECT_EQ(resolve_model("ph1-mini", folder).error().fix, "did you mean phi-mini?");
  EXPECT_EQ(resolve_model("smolm2.gguf", folder).error().fix, "did you mean smollm2?");
  EXPECT_EQ(resolve_model("frobnicate", folder).error().fix, "");
}

TEST(ResolveModel, hostile_names_are_errors) {
  const ScratchFolder scratch;
  const std::string& folder = scratch.path;
  for (const std::string& name : {std::string(), std::string("a\0b", 3), std::string(10000, 'a'),
                                  std::string("\x1b[2J\n"), std::string("..")}) {
    EXPECT_EQ(resolve_model(name, folder).error().code, Code::model_name) << name.size();
    EXPECT_LT(resolve_model(name, folder).error().detail.size(), 120u);
    EXPECT_EQ(resolve_model(name, folder).error().detail.find('\x1b'), std::string::npos);
  }
  EXPECT_EQ(resolve_model("/" + std::string(10000, 'a'), folder).error().code,
            Code::io_read);  // File name too long
}

TEST(ResolveModel, in_a_folder_the_model_is_chosen_as_in_a_repository) {
  const ScratchFolder scratch;
  const std::string& folder = scratch.path;
  EXPECT_EQ(resolve_model(folder, "").error().code, Code::model_format);
  write_file(folder + "/model.safetensors", "x");
  const Error other_format = resolve_model(folder + "/", "").error();
  EXPECT_EQ(other_format.code, Code::model_format);
  EXPECT_EQ(other_format.detail, "a safetensors model");
  write_file(folder + "/tiny-Q8_0.gguf", "x");
  EXPECT_EQ(resolve_model(folder, "")->path, folder + "/tiny-Q8_0.gguf");
  EXPECT_EQ(resolve_model(folder + "/", "")->name, "tiny-Q8_0");
  write_file(folder + "/tiny-Q6_K.gguf", "x");
  const Error several = resolve_model(folder, "").error();
  EXPECT_EQ(several.code, Code::hub_choice);
  EXPECT_EQ(several.detail, "there is no Q4_K_M; there is: Q6_K, Q8_0");
  EXPECT_EQ(several.fix, "give the path of one of the files");
  write_file(folder + "/tiny-Q4_K_M.gguf", "x");
  EXPECT_EQ(resolve_model(folder, "")->path, folder + "/tiny-Q4_K_M.gguf");
}

TEST(ListModels, gives_the_model_files_by_name) {
  const ScratchFolder scratch;
  const std::string& folder = scratch.path;
  EXPECT_TRUE(list_models(folder + "/absent")->empty());
  write_file(folder + "/b.gguf", "12345");
  write_file(folder + "/a.gguf", "1");
  write_file(folder + "/notes.txt", "1");
  write_file(folder + "/.hidden.gguf", "1");
  std::filesystem::create_directory(folder + "/folder.gguf");
  const auto models = list_models(folder).value();
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].name, "a");
  EXPECT_EQ(models[1].path, folder + "/b.gguf");
  EXPECT_EQ(models[1].bytes, 5);
}

TEST(VerifyModelFile, says_both_hashes) {
  const testing_hub::StubModel stub;
  const ScratchFolder scratch;
  const std::string path = scratch.path + "/stub.gguf";
  write_file(path, stub.content);
  EXPECT_TRUE(verify_model_file(stub.model, path).ok());
  write_file(path, "other");
  const Error error = verify_model_file(stub.model, path).error();
  EXPECT_EQ(error.code, Code::model_hash);
  EXPECT_NE(error.detail.find(testing_hub::sha256_text("other")), std::string::npos);
  EXPECT_NE(error.detail.find(stub.model.sha256), std::string::npos);
}

}  // namespace
}  // namespace inferd
