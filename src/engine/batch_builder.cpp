#include "engine/batch_builder.h"

#include <algorithm>

namespace inferd {

BatchBuilder::Inputs BatchBuilder::place(const BatchLimits& limits, Arena& arena) {
  const int64_t rows = limits.rows;
  Inputs inputs{};
  inputs.rows = arena.take<BatchRow>(rows);
  inputs.tables = arena.take<int32_t>(rows * limits.max_blocks());
  inputs.update_count = arena.take<int32_t>(1);
  inputs.updates = arena.take<SlotUpdate>(rows);
  inputs.update_tokens = arena.take<int32_t>(rows * limits.ctx);
  inputs.copy_count = arena.take<int32_t>(1);
  inputs.copies = arena.take<PageCopy>(rows);
  return inputs;
}

BatchBuilder::BatchBuilder(const BatchLimits& limits, Arena& device_arena, Arena& host_arena)
    : limits_(limits), host_(place(limits, host_arena)), device_(place(limits, device_arena)) {
  derived_.cu_seqlens_q = device_arena.take<int32_t>(limits.rows + 1);
  derived_.kv_lens = device_arena.take<int32_t>(limits.rows);
  derived_.ids = device_arena.take<int32_t>(limits.tokens);
  derived_.positions = device_arena.take<int32_t>(limits.tokens);
  derived_.token_row = device_arena.take<int32_t>(limits.tokens);
  derived_.logit_token = device_arena.take<int32_t>(limits.logit_rows);
}

BatchView BatchBuilder::build(Device& device, const StepPlan& plan, const ParamsOf& params_of,
                              const uint32_t* banned) {
  const auto rows = static_cast<int32_t>(plan.rows.size());
  INFERD_CHECK(rows <= limits_.rows && plan.tokens <= limits_.tokens && plan.logit_rows <= limits_.logit_rows,
               "a step of ", rows, " rows, ", plan.tokens, " tokens, ", plan.logit_rows,
               " rows of logits is past the limits");
  size_t most_pages = 1;
  for (const StepPlan::Row& row : plan.rows) most_pages = std::max(most_pages, row.pages.size());
  const auto max_blocks = static_cast<int32_t>(most_pages);
  for (size_t r = 0; r < plan.rows.size(); ++r) {
    host_.rows[r] = plan.rows[r].row;
    std::ranges::copy(plan.rows[r].pages, host_.tables + r * most_pages);
  }

  int32_t update_tokens = 0;
  for (size_t u = 0; u < plan.entries.size(); ++u) {
    const StepPlan::Entry& entry = plan.entries[u];
    host_.updates[u] = {.slot = entry.slot,
                        .length = entry.length,
                        .prompt_tokens = entry.prompt_tokens,
                        .token_offset = update_tokens,
                        .token_count = static_cast<int32_t>(entry.ids.size()),
                        .params = params_of(entry.sequence)};
    std::ranges::copy(entry.ids, host_.update_tokens + update_tokens);
    update_tokens += static_cast<int32_t>(entry.ids.size());
  }
  *host_.update_count = static_cast<int32_t>(plan.entries.size());
  std::ranges::copy(plan.copies, host_.copies);
  *host_.copy_count = static_cast<int32_t>(plan.copies.size());

  const auto upload = [&device](auto* to, const auto* from, int64_t count) {
    device.upload(to, from, count * static_cast<int64_t>(sizeof(*from)));
  };
  upload(device_.rows, host_.rows, rows);
  upload(device_.tables, host_.tables, int64_t{rows} * max_blocks);
  upload(device_.update_count, host_.update_count, 1);
  upload(device_.updates, host_.updates, *host_.update_count);
  upload(device_.update_tokens, host_.update_tokens, update_tokens);
  upload(device_.copy_count, host_.copy_count, 1);
  upload(device_.copies, host_.copies, *host_.copy_count);

  BatchView view = derived_;
  view.rows = rows;
  view.tokens = plan.tokens;
  view.logit_rows = plan.logit_rows;
  view.groups = 1;
  view.row = device_.rows;
  view.block_table[0] = device_.tables;
  view.max_blocks[0] = max_blocks;
  view.update_count = device_.update_count;
  view.updates = device_.updates;
  view.update_tokens = device_.update_tokens;
  view.copy_count[0] = device_.copy_count;
  view.copies[0] = device_.copies;
  view.banned = banned;
  return view;
}

}  // namespace inferd
