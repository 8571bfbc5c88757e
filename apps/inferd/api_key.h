// The key that a server asks for, in a file of its owner's.
#pragma once

#include <string>

#include "base/result.h"

namespace inferd {

// At least 16 printable characters, in a file that only its owner can read. E-NET-004 for anything else.
Result<std::string> read_api_key(const std::string& path);

}  // namespace inferd
