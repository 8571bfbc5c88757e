// version, and what all commands share.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <iterator>

#include "base/progress.h"
#include "base/utf8.h"
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

Status check_utf8(std::string_view text, std::string_view where) {
  const size_t at = find_invalid_utf8(text);
  if (at == std::string_view::npos) return {};
  return Error{.code = Code::arg_value,
               .detail = cat("the text is no UTF-8: byte ", static_cast<unsigned char>(text[at]) + 0,
                             " at offset ", with_commas(static_cast<int64_t>(at))),
               .where = std::string(where),
               .fix = "`iconv -f ISO-8859-1 -t UTF-8` makes UTF-8 of Latin-1 text"};
}

Result<std::string> text_argument(const std::string& argument) {
  if (argument != "-") {
    INFERD_TRY_STATUS(check_utf8(argument, "the text on the command line"));
    return argument;
  }
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
  INFERD_TRY_STATUS(check_utf8(text, "stdin"));
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
