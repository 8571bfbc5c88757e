#include "cpu/cpu_ops.h"

#include <algorithm>

#include "cpu/cpu_backend.h"
#include "cpu/packed_weight.h"
#include "ops/host_device.h"

namespace inferd {

Result<Backend> make_cpu_backend(const CpuOptions& options) {
  if (options.threads < 0) {
    return Error{.code = Code::arg_value, .detail = cat("threads ", options.threads, "; 0 (all) or more")};
  }
  const IsaLevel level = options.isa.value_or(default_isa_level());
  INFERD_TRY_STATUS(check_isa(level, available_isa_levels()));
  const cpu::Kernels* kernels = &cpu::portable_kernels();
#if defined(__x86_64__)
  if (level == IsaLevel::avx2) kernels = &cpu::avx2_kernels();
  if (level == IsaLevel::avx512) kernels = &cpu::avx512_kernels();
  if (level == IsaLevel::avx512_bf16) kernels = &cpu::avx512_bf16_kernels();
#endif
  const int threads = options.threads > 0 ? options.threads : usable_cpus();
  auto device = std::make_unique<HostDevice>(cat("cpu (", isa_name(level), ")"));
  auto ops = std::make_unique<cpu::CpuOps>(*device, *kernels, threads, options.pin);
  return Backend{std::move(device), std::move(ops)};
}

namespace cpu {

CpuOps::CpuOps(Device& device, const Kernels& kernels, int threads, bool pin)
    : device_(device), kernels_(kernels), pool_(threads, pin), slabs_(device) {}

int64_t CpuOps::scratch_bytes(const OpsLimits& limits) const {
  Arena arena;
  Scratch().place(arena, limits, pool_.size(), kernels_.linear_bf16_dot != nullptr);
  return arena.used();
}

Status CpuOps::reserve(const OpsLimits& limits) {
  INFERD_TRY(scratch_buffer_, device_.allocate(scratch_bytes(limits), "scratch memory"));
  Arena arena(scratch_buffer_);
  scratch_.place(arena, limits, pool_.size(), kernels_.linear_bf16_dot != nullptr);
  for (const Scratch::Sampler& sampler : scratch_.samplers) std::fill_n(sampler.counts, limits.vocab, 0);
  limits_ = limits;
  return {};
}

void CpuOps::for_each(int64_t count, bool alone, FunctionRef<void(int, int64_t)> body) {
  if (alone || count <= 1 || pool_.size() == 1) {
    for (int64_t item = 0; item < count; ++item) body(0, item);
    return;
  }
  WorkCounter work(count);
  pool_.run([&](int worker) {
    for (int64_t item = work.next(); item >= 0; item = work.next()) body(worker, item);
  });
}

}  // namespace cpu
}  // namespace inferd
