// The one place that knows which backends this program was built with.
#include "cpu/cpu_backend.h"
#include "load.h"

namespace inferd {

Result<Backend> make_backend(const Options& options) {
  CpuOptions cpu;
  cpu.threads = options.threads.value_or(0);
  if (!options.isa.empty()) cpu.isa = parse_isa(options.isa);
  return make_cpu_backend(cpu);
}

}  // namespace inferd
