// The two long descriptions made from the option table: the manual page (roff, man macros) that `inferd man`
// prints, and docs/options.md, which a test holds to this.
#pragma once

#include <string>

namespace inferd {

std::string man_page();
std::string options_page();

}  // namespace inferd
