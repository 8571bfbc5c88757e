// version, and what all commands share.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>

#include "base/progress.h"
#include "commands.h"
#include "cpu/isa.h"
#include "error_text.h"
#include "library_versions.h"
#include "version.h"

namespace inferd {
namespace {

std::string isa_list() {
  std::string list;
  for (const IsaLevel level : available_isa_levels()) list += cat(list.empty() ? "" : ", ", isa_name(level));
  return list;
}

}  // namespace

int report(const Error& error) {
  const std::string text = error.terminal_text();
  std::fputs(::isatty(STDERR_FILENO) != 0 ? error_lines(text, terminal_columns(STDERR_FILENO)).c_str()
                                          : text.c_str(),
             stderr);
  return error_row(error.code).exit_code;
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
}
void print_json(const Json& json) {
  print(to_json(json) + "\n");
}

Result<std::string> text_argument(const std::string& argument) {
  if (argument != "-") return argument;
  constexpr size_t kMost = size_t{64} << 20;
  std::string text;
  for (std::istreambuf_iterator<char> at(std::cin), end; at != end; ++at) {
    if (text.size() == kMost) {
      return Error{.code = Code::arg_value,
                   .detail = cat("stdin has more than ", human_bytes(kMost)),
                   .where = "-",
                   .fix = "give less text"};
    }
    text.push_back(*at);
  }
  return text;
}

int version_command(const Options& options) {
  if (!options.json) {
    std::fputs(cat("inferd ", kVersion, " (", kCommit, ")\n", kCompiler,
                   "\ninstruction sets here: ", isa_list(), "\n")
                   .c_str(),
               stdout);
    return kExitOk;
  }
  Json::Array levels;
  for (const IsaLevel level : available_isa_levels()) levels.push_back(isa_name(level));
  Json::Object libraries;
  for (const LibraryVersion& library : library_versions())
    libraries.emplace_back(std::string(library.name), library.version);
  const Json json = Json::Object{
      {"version", kVersion},
      {"commit", kCommit},
      {"compiler", kCompiler},
      {"isa", Json::Object{{"available", std::move(levels)}, {"chosen", isa_name(default_isa_level())}}},
      {"libraries", std::move(libraries)}};
  print_json(json);
  return kExitOk;
}

}  // namespace inferd
