// What the program takes from its environment. Nothing below apps/ reads environment variables.
#pragma once

#include <termios.h>

#include <atomic>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "hub/hub_settings.h"
#include "options.h"

namespace inferd {

// The folder of model files, from XDG_DATA_HOME and HOME.
Result<std::string> model_folder();

// ./inferd.toml, the user's inferd.toml, and the environment.
ConfigurationPlaces configuration_places();

// Folders of a user's: those where servers leave notes, the first to be written to; the history of chats.
// Empty when the environment names none.
std::vector<std::string> server_note_folders();
std::string history_path();
// "~/notes.json" with the home folder in place of the tilde.
std::string expand_home(const std::string& path);
bool wants_colour(int fd);  // a terminal, and neither NO_COLOR nor TERM=dumb
bool is_dumb_terminal();

// The Hugging Face hub and its cache.
Result<HubSettings> hub_settings();
// HF_HUB_OFFLINE, which is no option of ours as INFERD_OFFLINE is.
bool offline_by_environment();

// "NAME=value" of this process, for child processes.
std::vector<std::string> child_environment();

// A bar on a terminal, plain lines elsewhere and under TERM=dumb.
ProgressStyle progress_style(int fd);

// Progress on stderr, in the style that fits it.
ProgressPrinter stderr_progress();

// After watch_signals(): the first SIGINT or SIGTERM sets interrupted() and wakes wait_for_wakeup(), a second
// one ends the process at once with 128 + its number.
void watch_signals();
const std::atomic<bool>& interrupted();
int interrupt_signal();   // which one; 0: none yet
void forget_interrupt();  // the interrupt was handled; the next one is a first one again

// After watch_signals(): readable after such a signal, and, once watch_resizes() was called, after the
// terminal was resized; until clear_wakeup().
int wakeup_descriptor();
void clear_wakeup();
void watch_resizes();
// A second signal, which ends the process at once, gives the terminal behind `fd` these modes before.
void restore_at_once(int fd, const termios& modes);

// Sleeps until a signal came or wake() was called; each wakes one call.
void wait_for_wakeup();
void wake();

// SIGPIPE becomes a write error; SIGBUS on a mapped model file, which somebody has cut short, becomes
// E-IO-005.
void install_fault_handlers();

}  // namespace inferd
