// An Ops that does what another one does, but for one fault: shows that the registry sees it.
#pragma once

#include "ops/ops.h"

namespace inferd::test {

enum class Fault {
  none,
  shifted_output,      // select_rows writes each row one column late
  last_bit,            // add is wrong in the last place of one element
  byte_behind,         // rmsnorm writes one byte behind its last row
  byte_between_rows,   // silu_mul writes one byte behind its first row
  input_changed,       // linear writes to x
  weights_off,         // linear is wrong by one part in a thousand
  padding_written,     // select_rows writes the rows of index −1
  keys_by_q_weight,    // qk_norm takes the weight of q for k too
  window_longer,       // attention sees one position more than its window
  scores_uncapped,     // attention leaves out the soft cap
  gelu_is_silu,        // gelu_mul computes silu_mul
  scale_rounded,       // scale rounds its factor to bf16
  capped_twice,        // softcap is applied twice
  other_page,          // store_kv writes a byte of a page that is nobody's
  fusion_differs,      // add_rmsnorm differs from its default body in the last place
  batch_changes_rows,  // linear over more than eight rows computes row 0 in another way
};

Backend with_fault(Backend backend, Fault fault);

}  // namespace inferd::test
