#include "completion.h"

#include <gtest/gtest.h>

namespace inferd {
namespace {

std::string offered(const std::vector<std::string>& words) {
  const Completion completion = complete(words, {.here = {"tiny", "a model"}, .fetchable = {"smollm2"}});
  std::string all;
  for (const Candidate& candidate : completion.candidates) all += candidate.text + " ";
  return all + (completion.files ? ":files" : "");
}

TEST(Completion, commands_come_first) {
  EXPECT_EQ(offered({"s"}), "serve stop show score ");
  EXPECT_EQ(offered({"-"}), "--help --version ");
  EXPECT_EQ(offered({"nonsense", ""}), "");
  EXPECT_EQ(offered({}), "");
}

TEST(Completion, a_model_is_a_name_that_is_here_or_a_file_and_pull_takes_names_to_fetch) {
  EXPECT_EQ(offered({"run", ""}), "tiny a model :files");
  EXPECT_EQ(offered({"pull", ""}), "smollm2 ");
  EXPECT_EQ(offered({"pull", "hf:a/b", "s"}), "smollm2 ");
  EXPECT_EQ(offered({"serve", "--port", "1", "ti"}), "tiny :files");
  EXPECT_EQ(offered({"run", "tiny", ""}), "");  // the prompt
  EXPECT_EQ(offered({"bench", ""}), "engine ");
  EXPECT_EQ(offered({"bench", "engine", "t"}), "tiny :files");
}

TEST(Completion, options_of_the_command_that_were_not_given_yet) {
  EXPECT_EQ(offered({"serve", "--a"}), "--alias --api-key-file ");
  EXPECT_EQ(offered({"serve", "--alias", "x", "--api-key-file=k", "--a"}), "--alias ");
  EXPECT_EQ(offered({"version", "-"}), "--json --help ");
  EXPECT_EQ(offered({"run", "tiny", "--", "--t"}), "");  // behind -- there are no options
}

TEST(Completion, values_where_there_is_a_fixed_list) {
  EXPECT_EQ(offered({"serve", "--kv-dtype", ""}), "f32 f16 bf16 q8_0 ");
  EXPECT_EQ(offered({"serve", "--kv-dtype=f"}), "--kv-dtype=f32 --kv-dtype=f16 ");
  EXPECT_EQ(offered({"serve", "--port", ""}), "");
  EXPECT_EQ(offered({"serve", "--chat-template", ""}), ":files");
  EXPECT_EQ(offered({"serve", "--no-api-key="}), "--no-api-key=true --no-api-key=false ");
}

TEST(Completion, config_goes_on_with_the_options_of_its_command) {
  EXPECT_EQ(offered({"config", "ser"}), "serve ");
  EXPECT_EQ(offered({"config", "serve", "--po"}), "--port ");
  EXPECT_EQ(offered({"config", "serve", "--sh"}), "--show-origin ");
  EXPECT_EQ(offered({"config", "serve", "--kv-dtype", "q"}), "q8_0 ");
}

TEST(Completion, a_name_that_could_move_the_cursor_is_not_offered) {
  const Completion completion =
      complete(std::vector<std::string>{"show", ""}, {.here = {"good", "a\nb", "c\x1b[2J", "d\te", "f\x7f"}});
  EXPECT_EQ(completion_lines(completion), "good\there\n:files\n");
}

}  // namespace
}  // namespace inferd
