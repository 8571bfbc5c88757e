// The reference backend: every verb as a plain loop in float over dequantised weights. It is the
// specification that tests compare the other backends with, and is itself compared with other people's
// libraries. Slow by design.
#pragma once

#include "ops/ops.h"

namespace inferd {

// `threads` only splits the rows of linear; results do not depend on it.
Backend make_reference_backend(int threads = 1);

}  // namespace inferd
