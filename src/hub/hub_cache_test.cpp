#include "hub/hub_cache.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "hub/test_wheel.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;
using testing_hub::ScratchFolder;
using testing_hub::write_file;

const std::string kCommit(40, 'a');

// A repository as huggingface_hub leaves it, with these files.
void make_repo(const std::string& cache, const std::string& folder, const std::vector<std::string>& paths) {
  const std::string repo = cat(cache, "/", folder);
  fs::create_directories(repo + "/blobs");
  fs::create_directories(repo + "/refs");
  write_file(repo + "/refs/main", kCommit);
  int n = 0;
  for (const std::string& path : paths) {
    const std::string hash = cat(std::string(39, 'b'), n++);
    write_file(cat(repo, "/blobs/", hash), path);
    const fs::path link = cat(repo, "/snapshots/", kCommit, "/", path);
    fs::create_directories(link.parent_path());
    fs::create_symlink(fs::relative(cat(repo, "/blobs/", hash), link.parent_path()), link);
  }
}

Result<CachedModel> find(const ScratchFolder& scratch, std::string_view name) {
  return find_cached_model(scratch.path, parse_repo_name(name).value());
}

TEST(HubCache, finds_what_another_program_has_fetched) {
  const ScratchFolder scratch;
  make_repo(scratch.path, "models--acme--tiny", {"x/tiny-Q8_0.gguf", "tiny-Q4_K_M.gguf", "config.json"});
  const std::string snapshot = cat(scratch.path, "/models--acme--tiny/snapshots/", kCommit);
  EXPECT_EQ(find(scratch, "hf:acme/tiny")->path, snapshot + "/tiny-Q4_K_M.gguf");
  EXPECT_EQ(find(scratch, "hf:acme/tiny:Q8_0")->path, snapshot + "/x/tiny-Q8_0.gguf");
  EXPECT_EQ(find(scratch, "hf:acme/tiny/x/tiny-Q8_0.gguf")->path, snapshot + "/x/tiny-Q8_0.gguf");
  EXPECT_EQ(find(scratch, "hf:acme/tiny")->commit, kCommit);
}

TEST(HubCache, what_is_not_here_says_how_to_fetch_it) {
  const ScratchFolder scratch;
  make_repo(scratch.path, "models--acme--tiny", {"tiny-Q4_K_M.gguf"});
  const Error other = find(scratch, "hf:acme/tiny:Q8_0").error();
  EXPECT_EQ(other.code, Code::hub_absent);
  EXPECT_EQ(other.detail, "hf:acme/tiny:Q8_0; of its repository there is no Q8_0; there is: Q4_K_M");
  EXPECT_EQ(other.fix, "`inferd pull hf:acme/tiny:Q8_0`");
  EXPECT_EQ(find(scratch, "hf:acme/huge").error().code, Code::hub_absent);
  EXPECT_EQ(find_cached_model(scratch.path + "/absent", parse_repo_name("hf:a/b").value()).error().code,
            Code::hub_absent);
}

TEST(HubCache, a_link_whose_blob_is_gone_counts_as_absent) {
  const ScratchFolder scratch;
  make_repo(scratch.path, "models--acme--tiny", {"tiny-Q4_K_M.gguf"});
  fs::remove_all(scratch.path + "/models--acme--tiny/blobs");
  EXPECT_EQ(find(scratch, "hf:acme/tiny").error().code, Code::hub_absent);
}

TEST(HubCache, a_reference_that_holds_no_commit_counts_as_none) {
  const ScratchFolder scratch;
  make_repo(scratch.path, "models--acme--tiny", {"tiny-Q4_K_M.gguf"});
  for (const std::string& text : {std::string(), std::string("../../../etc"), std::string(41, 'a')}) {
    write_file(scratch.path + "/models--acme--tiny/refs/main", text);
    EXPECT_EQ(find(scratch, "hf:acme/tiny").error().code, Code::hub_absent);
  }
}

TEST(HubCache, a_safetensors_model_is_found_as_a_folder) {
  const ScratchFolder scratch;
  make_repo(scratch.path, "models--acme--full", {"config.json", "model.safetensors"});
  const CachedModel model = find(scratch, "hf:acme/full").value();
  EXPECT_TRUE(model.safetensors);
  EXPECT_EQ(model.path, cat(scratch.path, "/models--acme--full/snapshots/", kCommit));
}

TEST(HubCache, lists_the_models_of_all_repositories) {
  const ScratchFolder scratch;
  make_repo(scratch.path, "models--zoo--b", {"b.gguf", "README.md"});
  make_repo(scratch.path, "models--acme--tiny", {"tiny-Q8_0.gguf", "tiny-Q4_K_M.gguf"});
  make_repo(scratch.path, "datasets--acme--text", {"x.gguf"});
  make_repo(scratch.path, "models--gpt2", {"gpt2.gguf"});  // a name from the hub's first days
  fs::create_directories(scratch.path + "/.locks/models--acme--tiny");
  std::vector<std::string> names;
  for (const CachedFile& file : list_cached_models(scratch.path).value()) {
    names.push_back(file.name);
    EXPECT_TRUE(parse_repo_name(file.name).ok()) << file.name;
    EXPECT_EQ(find(scratch, file.name)->path, file.path);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"hf:acme/tiny/tiny-Q4_K_M.gguf", "hf:acme/tiny/tiny-Q8_0.gguf",
                                             "hf:zoo/b/b.gguf"}));
  EXPECT_TRUE(list_cached_models(scratch.path + "/absent")->empty());
}

}  // namespace
}  // namespace inferd
