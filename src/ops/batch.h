// What one step works on, as it lies in device memory.
//
// A batch is ragged: each row is one sequence with any number of new tokens, so a prompt chunk, a decode
// token and a draft check are the same thing with different lengths. From the host a step gets rows, block
// tables and the news of slots that changed hands; ids, positions, lengths and slots in the KV pool are
// derived from them and from SeqState on the device, so that a captured step never depends on a number in a
// kernel argument.
#pragma once

#include <cstdint>

namespace inferd {

inline constexpr int kMaxKvGroups = 4;      // full, window, draft, multi-token prediction
inline constexpr int kMaxStopIds = 64;      // end-of-sequence and stop ids of one request
inline constexpr int kMaxLogitBias = 1024;  // entries of one request's logit_bias
inline constexpr int kMaxTopLogprobs = 20;

enum class RowKind : int32_t { prefill = 0, decode = 1, draft = 2 };

// One sequence's part of a step. A padding row has slot −1 and q_len 0; every verb skips it.
struct BatchRow {
  int32_t slot;     // index into SeqState
  int32_t q_len;    // new tokens: positions length[slot] … length[slot] + q_len − 1
  RowKind kind;     // data, never a branch of the host: one captured step serves all kinds
  int32_t logits;   // the last `logits` of the new tokens get a row of logits (0: a prompt chunk that is not
                    // the last)
  int32_t adapter;  // adapter slot; −1: none
};

struct LogitBias {
  int32_t id;
  float bias;
};

// One request's sampling, as the device reads it (fields: docs/api.md; order of use: docs/numerics.md).
struct SampleParams {
  uint64_t seed;
  uint32_t choice;             // index among the n of its prompt: part of the random counter
  float temperature;           // 0: arg-max
  int32_t top_k;               // 0: off
  float top_p;                 // 1: off
  float min_p;                 // 0: off
  float repetition;            // 1: off
  float presence;              // 0: off
  float frequency;             // 0: off
  int32_t min_tokens;          // stop ids cannot be drawn before this many output tokens
  int32_t logprobs;            // −1: none; 0 … kMaxTopLogprobs alternatives beside the chosen token
  int32_t processed_logprobs;  // 1: log-probabilities after the sampling steps instead of the raw model's
  int32_t stop_count;
  int32_t bias_count;
  int32_t stop_ids[kMaxStopIds];
  LogitBias bias[kMaxLogitBias];
};

// A slot that a sequence enters: admission, re-admission after a preemption, or a fork.
struct SlotUpdate {
  int32_t slot;
  int32_t length;  // tokens whose K and V are already in its pages (a prefix hit), the first new position
  int32_t prompt_tokens;  // how many of the ids are prompt; the rest were generated before a preemption
  int32_t token_offset;   // its ids are tokens[token_offset … + token_count)
  int32_t token_count;
  SampleParams params;
};

// State of every running sequence, indexed by slot; lives on the device from load to unload.
struct SeqState {
  int32_t slots = 0;
  int32_t ctx = 0;                   // ids a slot can hold
  int32_t* ids = nullptr;            // (slots, ctx) prompt, then output
  int32_t* known = nullptr;          // (slots) ids that are set: prompt and everything drawn so far
  int32_t* length = nullptr;         // (slots) tokens whose K and V are stored; length ≤ known
  int32_t* prompt_tokens = nullptr;  // (slots)
  int32_t* stopped = nullptr;        // (slots) 1 once a stop id was drawn
  SampleParams* params = nullptr;    // (slots)
};

// A fork's last partial page: all layers of page `source` are copied to page `target`.
struct PageCopy {
  int32_t source;
  int32_t target;
};

// One step. The first part is uploaded, the second is written by Ops::begin_step.
struct BatchView {
  // From the host. Counts are those of the padded bucket, so they are constants of a captured graph.
  int32_t rows = 0;
  int32_t tokens = 0;                             // total new tokens, padding included
  int32_t logit_rows = 0;                         // total rows of logits, padding included
  int32_t groups = 1;                             // KV groups
  const BatchRow* row = nullptr;                  // (rows)
  const int32_t* block_table[kMaxKvGroups] = {};  // each (rows, max_blocks): page ids of the row's sequence
  int32_t max_blocks[kMaxKvGroups] = {};
  const int32_t* update_count = nullptr;         // (1)
  const SlotUpdate* updates = nullptr;           // (*update_count)
  const int32_t* update_tokens = nullptr;        // ids of all updates, one after another
  const int32_t* copy_count[kMaxKvGroups] = {};  // each (1)
  const PageCopy* copies[kMaxKvGroups] = {};     // each (*copy_count): forks, done before anything is stored
  // Bit i of word i / 32 is 1 when id i may never be drawn (ids the tokenizer does not have); null: all may.
  const uint32_t* banned = nullptr;  // (ceil(vocab / 32))

  // Derived. Row lengths 2, 3, 1 give cu_seqlens_q 0, 2, 5, 6.
  int32_t* cu_seqlens_q = nullptr;  // (rows + 1)
  int32_t* kv_lens = nullptr;       // (rows) tokens in the cache at the end of this step
  int32_t* ids = nullptr;           // (tokens); −1 on padding
  int32_t* positions = nullptr;     // (tokens); −1 on padding
  int32_t* token_row = nullptr;     // (tokens); −1 on padding
  int32_t* logit_token = nullptr;   // (logit_rows): which token; −1 on padding
};

// What was drawn for one row of logits.
struct SampleResult {
  // not_a_number: a logit is NaN or +infinity. nothing_allowed: every id is banned or at −infinity. Both
  // leave the rest 0.
  enum Status : int32_t { ok = 0, not_a_number = 1, nothing_allowed = 2 };
  Status status;
  int32_t id;         // −1 unless ok
  float logprob;      // of `id`, when the row asked for log-probabilities
  int32_t top_count;  // entries of top_*, the likeliest first, ties to the lower id
  int32_t top_ids[kMaxTopLogprobs];
  float top_logprobs[kMaxTopLogprobs];
};

}  // namespace inferd
