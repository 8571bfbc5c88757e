// From stored weights to float: the plain meaning of every weight type, as quant_blocks.h defines it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace inferd::reference {

// out[i] = element i of a row stored as `type`. Multiplies in float in the order of the format's definition.
// Scales that lie beside the rows are not applied. Requires bytes.size() == row_bytes(type, out.size()).
void dequantise_row(std::span<float> out, DType type, std::span<const std::byte> bytes);

}  // namespace inferd::reference
