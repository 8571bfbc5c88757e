// Borrowed views of matrices in device memory. They carry shape and type, own nothing, and are passed by
// value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace inferd {

// (rows, cols), row r at data + r · stride elements. Activations are F32 on the CPU.
struct ConstMatrixView {
  const void* data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements between the starts of two rows

  const float* row_f32(int64_t row) const { return static_cast<const float*>(data) + row * stride; }
};

struct MatrixView {
  void* data = nullptr;
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;

  float* row_f32(int64_t row) const { return static_cast<float*>(data) + row * stride; }
  MatrixView first_rows(int64_t count) const { return {data, dtype, count, cols, stride}; }
  operator ConstMatrixView() const {
    return {data, dtype, rows, cols, stride};
  }  // NOLINT: implicit by design
};

inline MatrixView matrix_f32(float* data, int64_t rows, int64_t cols) {
  return {data, DType::f32, rows, cols, cols};
}
inline ConstMatrixView matrix_f32(const float* data, int64_t rows, int64_t cols) {
  return {data, DType::f32, rows, cols, cols};
}

}  // namespace inferd
