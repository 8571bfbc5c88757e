// What the program takes from its environment. Nothing below apps/ reads environment variables.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"

namespace inferd {

// The folder of model files, from XDG_DATA_HOME and HOME.
Result<std::string> model_folder();

// "NAME=value" of this process, for child processes.
std::vector<std::string> child_environment();

// A bar on a terminal, plain lines elsewhere and under TERM=dumb.
ProgressStyle progress_style(int fd);

// Set by the first SIGINT or SIGTERM after watch_signals(); a second one ends the process at once with 130.
const std::atomic<bool>& interrupted();
void watch_signals();
void forget_interrupt();   // the interrupt was handled; the next one is a first one again

// SIGPIPE becomes a write error; SIGBUS on a mapped model file, which somebody has cut short, becomes E-IO-005.
void install_fault_handlers();

}  // namespace inferd
