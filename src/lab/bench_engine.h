// Prefill and decode speed of an engine without HTTP: requests of made-up ids, stepped by hand on the calling
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"

namespace inferd {

struct EngineBenchCase {
  enum class Kind { prefill, decode };
  Kind kind = Kind::decode;
  int32_t tokens = 128;  // prompt tokens (pp) or generated tokens (tg), of each sequence
  int32_t depth = 0;     // tokens in the pool before the measured ones
  int32_t batch = 1;     // sequences at once

  std::string name() const;  // "pp512", "tg128"
  int32_t sequence_tokens() const { return depth + tokens + 2; }
};

struct EngineBenchResult {
  EngineBenchCase test;
  int threads = 0;
  std::vector<double>
      tokens_per_s;  // of all sequences together, one entry a repetition, in the order they were run

  double median() const;
  double lowest() const;
  double highest() const;
};

// Runs one test `repeat` times after one to warm up. The engine must have room for test.batch sequences of
// sequence_tokens() and nothing else to do. Decode is timed from the step after the last prompt, in which all
// sequences decode, to the last token. Prefill at a depth finds the depth in the prefix cache and counts what
// it computes itself. `salt` … salt + repeat make the prompts; no other test on this engine may have used
// them.
EngineBenchResult run_engine_bench(Engine& engine, const EngineBenchCase& test, int threads, int repeat,
                                   uint64_t salt);

Json to_json_value(const EngineBenchResult& result);

}  // namespace inferd
