// Steps for tests of verbs: sequences with a past, some new tokens each, pages in no particular order. Owns
// all memory that a BatchView and a SeqState point to.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "base/arithmetic.h"
#include "ops_random.h"

namespace inferd::test {

struct StepRow {
  int32_t past = 0;    // tokens whose K and V are stored
  int32_t q_len = 1;   // new tokens; 0: a padding row
  int32_t logits = 1;  // rows of logits
};

class Step {
 public:
  // Row i uses slot i (reversed: slots − 1 − i, so that slot and row differ). Pages are drawn from a shuffled
  // pool; table entries behind a sequence's end are −1. `padding` tokens and rows of logits are added at the
  // end.
  Step(const std::vector<StepRow>& rows, int32_t ctx, int32_t page_tokens, Random& random,
       int32_t padding = 0)
      : slots_(static_cast<int32_t>(rows.size()) + 1), ctx_(ctx) {
    const auto slots = static_cast<size_t>(slots_);
    ids_.assign(slots * static_cast<size_t>(ctx), -7);
    for (std::vector<int32_t>* v : {&known_, &length_, &prompt_, &stopped_}) v->assign(slots, 0);
    params_.resize(slots);
    for (SampleParams& p : params_) p = plain_params();

    const int32_t max_blocks = static_cast<int32_t>(ceil_div(ctx, page_tokens)) + 1;
    int32_t tokens = 0;
    int32_t logits = 0;
    int32_t pages = 0;
    std::vector<int32_t> blocks;
    for (size_t i = 0; i < rows.size(); ++i) {
      const StepRow& row = rows[i];
      const int32_t slot = row.q_len == 0 ? -1 : slots_ - 1 - static_cast<int32_t>(i);
      rows_.push_back({slot, row.q_len, RowKind::prefill, row.q_len == 0 ? 0 : row.logits, -1});
      tokens += row.q_len;
      logits += rows_.back().logits;
      blocks.push_back(row.q_len == 0 ? 0
                                      : static_cast<int32_t>(ceil_div(row.past + row.q_len, page_tokens)));
      pages += blocks.back();
      if (slot < 0) continue;
      length_[static_cast<size_t>(slot)] = row.past;
      known_[static_cast<size_t>(slot)] = row.past + row.q_len;
      prompt_[static_cast<size_t>(slot)] = std::max(1, row.past + row.q_len - 3);
      for (int32_t t = 0; t < row.past + row.q_len; ++t) {
        ids_[static_cast<size_t>(slot * ctx + t)] = random.below(50);
      }
    }
    pages_ = pages + 2;  // two that nobody uses
    std::vector<int32_t> order(static_cast<size_t>(pages_));
    std::iota(order.begin(), order.end(), 0);
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int32_t>(i)))]);
    }
    table_.assign(rows.size() * static_cast<size_t>(max_blocks), -1);
    size_t next = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      for (int32_t block = 0; block < blocks[i]; ++block) {
        table_[i * static_cast<size_t>(max_blocks) + static_cast<size_t>(block)] = order[next++];
      }
    }

    b_.rows = static_cast<int32_t>(rows.size());
    b_.tokens = tokens + padding;
    b_.logit_rows = logits + padding;
    b_.row = rows_.data();
    b_.block_table[0] = table_.data();
    b_.max_blocks[0] = max_blocks;
    b_.update_count = &zero_;
    b_.copy_count[0] = &zero_;
    cu_seqlens_q_.assign(rows.size() + 1, -9);
    kv_lens_.assign(rows.size(), -9);
    new_ids_.assign(static_cast<size_t>(b_.tokens), -9);
    positions_ = token_row_ = new_ids_;
    logit_token_.assign(static_cast<size_t>(b_.logit_rows), -9);
    b_.cu_seqlens_q = cu_seqlens_q_.data();
    b_.kv_lens = kv_lens_.data();
    b_.ids = new_ids_.data();
    b_.positions = positions_.data();
    b_.token_row = token_row_.data();
    b_.logit_token = logit_token_.data();
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  static SampleParams plain_params() {
    SampleParams p = {};
    p.temperature = 1;
    p.top_p = 1;
    p.repetition = 1;
    p.logprobs = -1;
    return p;
  }

  BatchView& batch() { return b_; }
  // Takes the row's pages that hold only positions before `position` out of its table.
  void forget_pages(size_t row, int32_t position, int32_t page_tokens) {
    std::fill_n(table_.begin() + static_cast<std::ptrdiff_t>(row) * b_.max_blocks[0], position / page_tokens,
                -1);
  }
  SeqState state() {
    return {slots_,         ctx_,           ids_.data(),     known_.data(),
            length_.data(), prompt_.data(), stopped_.data(), params_.data()};
  }
  int32_t slot(size_t row) const { return rows_[row].slot; }
  SampleParams& params(size_t row) { return params_[static_cast<size_t>(rows_[row].slot)]; }
  int32_t pages() const { return pages_; }

 private:
  int32_t slots_, ctx_, pages_ = 0, zero_ = 0;
  std::vector<BatchRow> rows_;
  std::vector<int32_t> ids_, known_, length_, prompt_, stopped_, table_;
  std::vector<SampleParams> params_;
  std::vector<int32_t> cu_seqlens_q_, kv_lens_, new_ids_, positions_, token_row_, logit_token_;
  BatchView b_;
};

// A pool of pages in host memory, every byte 0xFF: NaN in each KV type's values and scales but q8_0's (−1).
class Pool {
 public:
  Pool(KvDType dtype, int32_t layers, int32_t kv_heads, int32_t head_dim, int32_t page_tokens,
       int32_t pages) {
    view_.layout = {dtype, layers, kv_heads, head_dim, page_tokens};
    view_.pages = pages;
    bytes_.assign(static_cast<size_t>(view_.layout.page_bytes() * pages), std::byte{0xFF});
    view_.base = bytes_.data();
  }
  const KvView& view() const { return view_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  void fill(const std::vector<std::byte>& bytes) { std::copy(bytes.begin(), bytes.end(), bytes_.begin()); }

 private:
  KvView view_;
  std::vector<std::byte> bytes_;
};

}  // namespace inferd::test
