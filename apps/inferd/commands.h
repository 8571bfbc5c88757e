// One function per subcommand: runs it and returns the exit code. Data goes to stdout, everything else to
// stderr.
#pragma once

#include "load.h"
#include "options.h"

namespace inferd {

// Prints the error and returns its exit code.
int report(const Error& error);

// On stdout; a JSON value as one line.
void print(const std::string& text);
void print_json(const Json& json);

int serve_command(const Options& options, const BackendFactory& make = make_backend);
int run_command(const Options& options, const BackendFactory& make = make_backend);
int ps_command(const Options& options);
int stop_command(const Options& options);
int pull_command(const Options& options);
int rm_command(const Options& options);
int list_command(const Options& options);
int show_command(const Options& options);
int plan_command(const Options& options);
int tokenize_command(const Options& options);
int template_command(const Options& options);
int ppl_command(const Options& options);
int score_command(const Options& options);
int bench_engine_command(const Options& options);
int doctor_command(const Options& options);
int version_command(const Options& options);
int config_command(const Options& options);
int completion_command(const Options& options);
int man_command(const Options& options);
int complete_command(const Options& options);

// Text for a model has to be UTF-8; E-ARG-003 names the first byte that is not.
Status check_utf8(std::string_view text, std::string_view where);

// The text of an argument, or stdin when it is "-". E-ARG-003 when it is too long or no UTF-8.
Result<std::string> text_argument(const std::string& argument);

}  // namespace inferd
