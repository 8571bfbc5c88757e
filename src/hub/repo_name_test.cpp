#include "hub/repo_name.h"

#include <gtest/gtest.h>

namespace inferd {
namespace {

TEST(RepoName, has_an_owner_a_repository_and_a_choice) {
  const RepoName plain = parse_repo_name("hf:acme/tiny").value();
  EXPECT_EQ(plain.owner, "acme");
  EXPECT_EQ(plain.repo, "tiny");
  EXPECT_EQ(plain.quant + plain.file, "");
  EXPECT_EQ(parse_repo_name("hf:acme/tiny-2.5_x:q8_0").value().quant, "q8_0");
  EXPECT_EQ(parse_repo_name("hf:acme/tiny/a/b c.gguf").value().file, "a/b c.gguf");
  EXPECT_EQ(parse_repo_name("hf:acme/tiny/a:b.gguf").value().file, "a:b.gguf");
  for (const std::string_view text : {"hf:acme/tiny", "hf:acme/tiny:Q8_0", "hf:acme/tiny/a/b.gguf"})
    EXPECT_EQ(parse_repo_name(text).value().text(), text);
}

TEST(RepoName, bad_names_are_refused_with_the_part) {
  const std::string long_name(10000, 'x');
  const std::vector<std::pair<std::string, std::string>> table = {
      {"hf:", "no '/'"},
      {"hf:tiny", "no '/'"},
      {"hf:/tiny", "the owner is empty"},
      {"hf:acme/", "the repository is empty"},
      {"hf:acme/:Q4_0", "the repository is empty"},
      {"hf:../tiny", "the owner is \"..\""},
      {"hf:acme/..", "the repository is \"..\""},
      {"hf:acme/a..b", "which must not hold"},
      {"hf:acme/a--b", "which must not hold"},
      {"hf:.acme/tiny", "begin or end"},
      {"hf:acme/tiny-", "begin or end"},
      {"hf:ac me/tiny", "allowed are letters"},
      {"hf:acme/ti\nny", "the repository is \"ti\\nny\""},
      {"hf:acme/tiny\x1b[2J", "allowed are letters"},
      {std::string("hf:acme/ti\0ny", 13), "allowed are letters"},
      {"hf:acme/t\xc3\xafny", "allowed are letters"},
      {"hf:acme/tiny:", "the quantisation is \"\""},
      {"hf:acme/tiny:Q4/K", "the quantisation is"},
      {"hf:acme/tiny:a b", "the quantisation is"},
      {"hf:acme/tiny/", "the file is \"\""},
      {"hf:acme/tiny/../x", "no path inside"},
      {"hf:acme/tiny/a/../../x", "no path inside"},
      {"hf:acme/tiny//x", "no path inside"},
      {"hf:acme/tiny/a\\..\\x", "no path inside"},
      {"hf:acme/tiny/a\nb", "no path inside"},
      {"hf:acme/tiny/\xff", "no path inside"},
      {"hf:" + long_name + "/tiny", "the owner has 10,000 characters, at most 96 allowed"},
      {"hf:acme/" + long_name, "the repository has 10,000 characters"},
      {"hf:acme/tiny:" + long_name, "the quantisation is"},
      {"hf:acme/tiny/" + long_name, "no path inside"},
  };
  for (const auto& [text, complaint] : table) {
    const Result<RepoName> name = parse_repo_name(text);
    ASSERT_FALSE(name.ok()) << text.substr(0, 100);
    EXPECT_EQ(name.error().code, Code::hub_name);
    EXPECT_NE(name.error().detail.find(complaint), std::string::npos) << name.error().detail;
    EXPECT_LT(name.error().terminal_text().size(), 400u);
  }
}

TEST(RepoName, the_tag_of_a_file_is_its_quantisation) {
  const std::vector<std::pair<std::string_view, std::string_view>> table = {
      {"SmolLM2-135M-Instruct-Q4_K_M.gguf", "Q4_K_M"},
      {"qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "Q4_K_M"},
      {"model.Q8_0.gguf", "Q8_0"},
      {"model_Q5_K_S.gguf", "Q5_K_S"},
      {"folder/gemma-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"},
      {"llama-3.2-1b-IQ4_XS.gguf", "IQ4_XS"},
      {"tiny-TQ1_0.gguf", "TQ1_0"},
      {"Qwen2-BF16.gguf", "BF16"},
      {"phi-f16.gguf", "F16"},
      {"gpt-oss-mxfp4.gguf", "MXFP4"},
      {"model-Q4_K_M-00001-of-00003.gguf", "Q4_K_M"},
      {"Q4_K_M.gguf", "Q4_K_M"},
      {"Qwen2.gguf", ""},
      {"model.gguf", ""},
      {"T5-Quality.gguf", ""},
  };
  for (const auto& [file, tag] : table) EXPECT_EQ(quant_tag(file), tag) << file;
}

std::string chosen(std::string_view quant, std::string_view file, const std::vector<std::string>& paths) {
  std::vector<RepoFile> files;
  for (const std::string& path : paths) files.push_back({.path = path});
  const Result<ModelFiles> model = choose_model_files(quant, file, files);
  return model.ok() ? join(model->paths, " ") : model.error().message();
}

TEST(RepoName, the_model_is_chosen_among_the_files_of_a_repository) {
  EXPECT_EQ(chosen("", "", {"README.md", "only-Q8_0.gguf"}), "only-Q8_0.gguf");
  EXPECT_EQ(chosen("", "", {"a-Q8_0.gguf", "a-Q4_K_M.gguf"}), "a-Q4_K_M.gguf");
  EXPECT_EQ(chosen("Q4_K_M", "", {"a-Q8_0.gguf", "a-UD-Q4_K_M.gguf", "a-Q4_K_M.gguf"}), "a-Q4_K_M.gguf");
  EXPECT_EQ(chosen("", "a-Q8_0.gguf", {"a-Q8_0.gguf", "a-Q4_K_M.gguf"}), "a-Q8_0.gguf");
  EXPECT_EQ(chosen("", "config.json", {"config.json", "model.safetensors"}), "config.json");
  EXPECT_EQ(chosen("", "", {"config.json", "model.safetensors", "x/y.safetensors", "a.py"}),
            "config.json model.safetensors");
  EXPECT_EQ(chosen("", "", {"a.gguf", "model.safetensors"}), "a.gguf");
  EXPECT_EQ(chosen("", "", {"a-Q4_K_M.gguf", "imatrix.gguf", "mmproj-a-F16.gguf"}), "a-Q4_K_M.gguf");
}

TEST(RepoName, when_nothing_or_several_fit_the_choices_are_listed) {
  EXPECT_EQ(chosen("", "", {"a-Q8_0.gguf", "a-Q6_K.gguf", "b.gguf"}),
            "this name does not say which file: there is no Q4_K_M; there is: Q6_K, Q8_0, b.gguf");
  EXPECT_EQ(chosen("Q4_K_M", "", {"a-Q4_K_M.gguf", "b-Q4_K_M.gguf"}),
            "this name does not say which file: 2 files fit: \"a-Q4_K_M.gguf\", \"b-Q4_K_M.gguf\"");
  EXPECT_EQ(chosen("", "", {"a-Q8_0-00001-of-00002.gguf", "a-Q8_0-00002-of-00002.gguf", "a-Q6_K.gguf"}),
            "this name does not say which file: there is no Q4_K_M; there is: Q6_K, Q8_0 (split)");
  EXPECT_EQ(chosen("Q8_0", "", {"a-Q8_0-00001-of-00002.gguf", "a-Q8_0-00002-of-00002.gguf"}),
            "model format that is not supported: a GGUF model in 2 parts");
  EXPECT_EQ(
      chosen("", "a-Q8_0-00001-of-00002.gguf", {"a-Q8_0-00001-of-00002.gguf", "a-Q8_0-00002-of-00002.gguf"}),
      "model format that is not supported: a GGUF model in several parts");
  EXPECT_EQ(chosen("", "x.gguf", {"a-Q8_0.gguf"}),
            "this name does not say which file: there is no \"x.gguf\"; there is: Q8_0");
  EXPECT_EQ(chosen("", "", {"README.md"}),
            "model format that is not supported: there is no GGUF or safetensors model");
  EXPECT_EQ(chosen("Q8_0", "", {"model.safetensors"}),
            "model format that is not supported: there is no GGUF file, so no quantisation to choose");
  std::vector<std::string> many;
  for (int i = 0; i < 100; ++i) many.push_back(cat("model-", i, ".gguf"));
  EXPECT_NE(chosen("", "", many).find("and 60 more"), std::string::npos);
}

}  // namespace
}  // namespace inferd
