#include "hub/repo_listing.h"

#include <gtest/gtest.h>

#include "hub/repo_name.h"

namespace inferd {
namespace {

// As the hub answers, shortened.
const std::string kListing =
    R"({"_id":"66","id":"acme/tiny","private":false,"gated":"auto","sha":"bbc77c8132af1cc5cf678da3f1ddf2de43606d48",)"
    R"("siblings":[{"rfilename":"README.md","size":5,"blobId":"7cb18dc9bafbfcf74629a4b760af1b160957a83e"},)"
    R"({"rfilename":"a/x.gguf","size":133,"blobId":"d7edf6bd2a681fb0175f7735299831ee1b22b812","lfs":)"
    R"({"sha256":"403450e234d65943a7dcf7e05a771ce3c92faa84dd07db4ac20f592037a1e4bd","size":98362432,"pointerSize":133}}]})";

TEST(RepoListing, gives_the_commit_and_each_file_with_size_and_hash) {
  const RepoListing listing = parse_repo_listing(kListing).value();
  EXPECT_EQ(listing.commit, "bbc77c8132af1cc5cf678da3f1ddf2de43606d48");
  ASSERT_EQ(listing.files.size(), 2u);
  EXPECT_EQ(listing.files[0].path, "README.md");
  EXPECT_EQ(listing.files[0].bytes, 5);
  EXPECT_EQ(listing.files[0].hash, "7cb18dc9bafbfcf74629a4b760af1b160957a83e");
  EXPECT_FALSE(listing.files[0].is_sha256);
  EXPECT_EQ(listing.files[1].path, "a/x.gguf");
  EXPECT_EQ(listing.files[1].bytes, 98362432);
  EXPECT_EQ(listing.files[1].hash, "403450e234d65943a7dcf7e05a771ce3c92faa84dd07db4ac20f592037a1e4bd");
  EXPECT_TRUE(listing.files[1].is_sha256);
}

TEST(RepoListing, addresses_name_the_commit_and_encode_the_path) {
  EXPECT_EQ(listing_target("acme/tiny"), "/api/models/acme/tiny/revision/main?blobs=true");
  EXPECT_EQ(file_target("acme/tiny", "abc", "a b/c#1.gguf"), "/acme/tiny/resolve/abc/a%20b/c%231.gguf");
}

TEST(RepoListing, every_truncation_is_refused) {
  for (size_t length = 0; length < kListing.size(); ++length) {
    const Result<RepoListing> listing = parse_repo_listing(kListing.substr(0, length));
    ASSERT_FALSE(listing.ok()) << length;
    EXPECT_EQ(listing.error().code, Code::hub_answer) << length;
  }
}

TEST(RepoListing, a_changed_byte_is_refused_or_leaves_safe_paths_and_whole_hashes) {
  int refused = 0;
  for (size_t at = 0; at < kListing.size(); ++at) {
    for (const char c : {'/', '.', '"', '\\', '-', '\n', '\0', '\x7f', '\xff', '{', '9'}) {
      std::string changed = kListing;
      changed[at] = c;
      const Result<RepoListing> listing = parse_repo_listing(changed);
      if (!listing.ok()) {
        ++refused;
        continue;
      }
      for (const ListedFile& file : listing->files) {
        EXPECT_TRUE(is_safe_repo_path(file.path)) << at;
        EXPECT_EQ(file.hash.size(), file.is_sha256 ? 64u : 40u) << at;
        EXPECT_EQ(file.hash.find_first_not_of("0123456789abcdef"), std::string::npos) << at;
        EXPECT_GE(file.bytes, 0) << at;
      }
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace inferd
