// The environment (INFERD_NAME) and the two configuration files, read and checked against the option table.
// Called by parse_options(); values are applied there.
#pragma once

#include <string_view>

#include "base/result.h"
#include "options.h"

namespace inferd {

// Every setting of both files and of the environment; each is good for at least one command. E-CFG-001 no
// TOML, -002 a key or variable that no option has, -003 a bad value, -004 a key that does not belong there;
// E-IO-* a file that is there and cannot be read.
Result<Configuration> read_configuration(const ConfigurationPlaces& places);

// $XDG_CONFIG_HOME/inferd/inferd.toml, else $HOME/.config/inferd/inferd.toml; a relative XDG_CONFIG_HOME
// counts as unset, as the XDG base directory specification says. Empty when neither gives a folder.
std::string user_config_path(std::string_view xdg_config_home, std::string_view home);

// The error of a value that `options` cannot take, of any origin.
Error bad_setting(const Setting& setting, Error error);

// Sets all values of a setting. The error is set_option()'s.
Status apply_setting(const Setting& setting, Options& options);

}  // namespace inferd
