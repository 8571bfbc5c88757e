#include "engine/scheduler.h"

#include <algorithm>

#include "base/check.h"

namespace inferd {
namespace {

template <typename Sequence>
void insert_by_age(std::vector<Sequence*>& list, Sequence* sequence) {
  const auto at = std::ranges::lower_bound(list, sequence->id, {}, [](const Sequence* s) { return s->id; });
  list.insert(at, sequence);
}

}  // namespace

Scheduler::Scheduler(const SchedulerOptions& options, ScheduleListener& listener)
    : options_(options), listener_(listener), pool_(options.pool), busy_chunk_(options.prefill_chunk) {
  INFERD_CHECK(
      options.max_seqs >= 1 && options.ctx >= 1 && options.prefill_chunk >= 1 && options.max_advance >= 1,
      "scheduler options");
  for (int32_t slot = options.max_seqs - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

int32_t Scheduler::max_sequence_tokens(const SchedulerOptions& options) {
  return static_cast<int32_t>(
      std::min(int64_t{options.ctx}, int64_t{options.pool.pages} * options.pool.page_tokens));
}

Status Scheduler::check_fits(const SchedulerOptions& options, int64_t prompt_tokens, int64_t max_tokens) {
  if (prompt_tokens + 1 > options.ctx) {
    return Error{
        .code = Code::req_context,
        .detail = cat(with_commas(prompt_tokens), " prompt tokens and at least 1 of output, the context has ",
                      with_commas(options.ctx)),
        .param = "prompt"};
  }
  if (prompt_tokens + max_tokens > options.ctx) {
    return Error{.code = Code::req_context,
                 .detail = cat(with_commas(prompt_tokens), " prompt tokens and max_tokens ",
                               with_commas(max_tokens), ", the context has ", with_commas(options.ctx)),
                 .fix = "lower max_tokens, shorten the prompt, or start the server with a larger --ctx",
                 .param = "max_tokens"};
  }
  const int64_t pool_tokens = int64_t{options.pool.pages} * options.pool.page_tokens;
  // The last token drawn is never computed, so it needs no place in the pool.
  if (prompt_tokens + max_tokens - 1 > pool_tokens) {
    return Error{.code = Code::kv_never_fits,
                 .detail = cat("it needs ", with_commas(prompt_tokens + max_tokens - 1),
                               " tokens of KV, the pool has ", with_commas(pool_tokens)),
                 .param = prompt_tokens > pool_tokens ? "prompt" : "max_tokens"};
  }
  return {};
}

SequenceId Scheduler::submit(SequenceSpec spec) {
  INFERD_CHECK(!spec.prompt.empty() && spec.max_tokens >= 1, "a sequence needs a prompt and max_tokens");
  auto sequence = std::make_unique<Sequence>();
  sequence->id = next_id_++;
  sequence->prompt_tokens = static_cast<int32_t>(spec.prompt.size());
  sequence->ids = std::move(spec.prompt);
  sequence->max_tokens = spec.max_tokens;
  sequence->leader = spec.leader;
  sequence->table.root = pool_.open_root(spec.cache_key);
  sequence->stats.prompt_tokens = sequence->prompt_tokens;
  insert_by_age(waiting_, sequence.get());
  const SequenceId id = sequence->id;
  sequences_[id] = std::move(sequence);
  return id;
}

bool Scheduler::cancel(SequenceId id, FinishReason reason) {
  const auto entry = sequences_.find(id);
  if (entry == sequences_.end() || entry->second->state == State::ended) return false;
  finish(*entry->second, reason);
  remove_if_done(*entry->second);
  return true;
}

std::optional<SequenceId> Scheduler::longest_waiting() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.front()->id;
}

StepPlan Scheduler::plan() {
  StepPlan plan;
  plan_decode_rows(plan);
  int32_t budget = plan.decode_rows == 0
                       ? options_.prefill_chunk
                       : std::min(options_.prefill_chunk, std::max(busy_chunk_, pool_.page_tokens()));
  plan_prefill_rows(plan, budget);
  admit(plan, budget);
  // Tables may have grown, and with them moved, after their row was added.
  for (StepPlan::Row& row : plan.rows) row.pages = sequences_.at(row.sequence)->table.pages;
  for (const StepPlan::Row& row : plan.rows) {
    plan.tokens += row.row.q_len;
    plan.logit_rows += row.row.logits;
  }
  return plan;
}

void Scheduler::plan_decode_rows(StepPlan& plan) {
  // By index: preempting takes sequences out behind the current one.
  for (size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.prefilling()) continue;
    // The last token that it may draw is never computed; when this is not positive, all it may draw is in
    // flight.
    const int32_t last = sequence.prompt_tokens + sequence.max_tokens - 1;
    const int32_t q_len = std::min(options_.max_advance, last - sequence.planned_length);
    if (q_len < 1) continue;
    if (!find_pages(sequence, sequence.planned_length + q_len)) continue;
    plan.rows.push_back({sequence.id,
                         {.slot = sequence.slot,
                          .q_len = q_len,
                          .kind = options_.max_advance > 1 ? RowKind::draft : RowKind::decode,
                          .logits = q_len,
                          .adapter = -1},
                         {}});
    sequence.planned_length += q_len;
    ++sequence.steps_in_flight;
    ++plan.decode_rows;
  }
}

// Pages for a decode row, preempting the youngest as long as that helps. False: the row has to wait (or was
// itself the youngest).
bool Scheduler::find_pages(Sequence& sequence, int32_t tokens) {
  while (!pool_.grow(sequence.table, tokens)) {
    if (leaving_ > 0) return false;  // their pages come back soon
    Sequence& youngest = *running_.back();
    preempt(youngest);
    if (&youngest == &sequence) return false;
  }
  return true;
}

void Scheduler::plan_prefill_rows(StepPlan& plan, int32_t& budget) {
  for (Sequence* sequence : running_) {
    if (budget == 0) return;
    if (sequence->prefilling()) add_prefill_row(plan, *sequence, budget);
  }
}

void Scheduler::add_prefill_row(StepPlan& plan, Sequence& sequence, int32_t& budget) {
  const int32_t left = sequence.prefill_end - sequence.planned_length;
  const int32_t q_len = std::min(left, budget);
  const bool last = q_len == left;
  budget -= q_len;
  if (!last) ++split_chunks_;
  plan.rows.push_back({sequence.id,
                       {.slot = sequence.slot,
                        .q_len = q_len,
                        .kind = RowKind::prefill,
                        .logits = last ? 1 : 0,
                        .adapter = -1},
                       {}});
  sequence.planned_length += q_len;
  ++sequence.steps_in_flight;
}

void Scheduler::admit(StepPlan& plan, int32_t& budget) {
  for (size_t i = 0; i < waiting_.size() && budget > 0 && !free_slots_.empty();) {
    Sequence& sequence = *waiting_[i];
    const Admission admission = try_admit(plan, sequence);
    if (admission == Admission::no_room) return;  // first come, first served: nobody overtakes
    if (admission == Admission::not_yet) {
      ++i;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    insert_by_age(running_, &sequence);
    add_prefill_row(plan, sequence, budget);
  }
}

Scheduler::Admission Scheduler::try_admit(StepPlan& plan, Sequence& sequence) {
  const auto known = static_cast<int32_t>(sequence.ids.size());
  int32_t covered = 0;
  std::optional<std::pair<int32_t, int32_t>> copy;
  if (const auto leader = sequence.leader ? sequences_.find(*sequence.leader) : sequences_.end();
      leader != sequences_.end() && sequence.output_tokens() == 0 && known > 1) {
    const Sequence& first = *leader->second;
    if (first.state == State::running && first.length >= known - 1) {
      PagePool::Fork fork = pool_.fork(sequence.table, first.table, known - 1);
      if (!fork.ok) return Admission::no_room;
      covered = known - 1;
      copy = fork.copy;
    } else if (first.state != State::ended) {
      return Admission::not_yet;  // its pages are still being written
    }
  }
  if (covered == 0) covered = pool_.take_prefix(sequence.table, sequence.ids);
  // Besides its own pages leave one for each running sequence, else its first step would preempt somebody.
  const int32_t own = pool_.pages_for(known) - static_cast<int32_t>(sequence.table.pages.size());
  const int32_t others = static_cast<int32_t>(running_.size());
  if ((own + others > pool_.available() && (others > 0 || leaving_ > 0)) ||
      !pool_.grow(sequence.table, known)) {
    pool_.release(sequence.table);
    return Admission::no_room;
  }
  if (copy) {
    plan.copies.push_back({copy->first, copy->second});
    ++forks_;
  }
  sequence.state = State::running;
  sequence.slot = free_slots_.back();
  free_slots_.pop_back();
  sequence.length = sequence.planned_length = covered;
  sequence.prefill_end = known;
  const bool first_time = sequence.stats.preemptions == 0;
  if (first_time) sequence.stats.cached_tokens = covered;
  plan.entries.push_back({sequence.id, sequence.slot, covered, sequence.prompt_tokens, sequence.ids});
  listener_.on_admitted(sequence.id, sequence.stats, first_time);
  return Admission::admitted;
}

void Scheduler::preempt(Sequence& sequence) {
  ++preemptions_;
  ++sequence.stats.preemptions;
  std::erase(running_, &sequence);
  if (sequence.steps_in_flight > 0) {
    sequence.state = State::preempting;
    ++leaving_;
  } else {
    requeue(sequence);
  }
}

void Scheduler::leave_slot(Sequence& sequence) {
  pool_.release(sequence.table);
  if (sequence.slot >= 0) free_slots_.push_back(sequence.slot);
  sequence.slot = -1;
}

void Scheduler::requeue(Sequence& sequence) {
  leave_slot(sequence);
  sequence.state = State::waiting;
  sequence.length = sequence.planned_length = sequence.prefill_end = 0;
  insert_by_age(waiting_, &sequence);
}

void Scheduler::finish(Sequence& sequence, FinishReason reason) {
  if (sequence.state == State::waiting) std::erase(waiting_, &sequence);
  if (sequence.state == State::running) {
    std::erase(running_, &sequence);
    if (sequence.steps_in_flight > 0) ++leaving_;
  }
  sequence.state = State::ended;
  sequence.stats.output_tokens = sequence.output_tokens();
  listener_.on_finished(sequence.id, reason, sequence.stats);
}

// Forgets an ended sequence once no step in flight names it.
void Scheduler::remove_if_done(Sequence& sequence) {
  if (sequence.state != State::ended || sequence.steps_in_flight > 0) return;
  leave_slot(sequence);
  pool_.close_root(sequence.table.root);
  sequences_.erase(sequence.id);
}

void Scheduler::commit(const StepPlan& plan, std::span<const RowResult> results) {
  INFERD_CHECK(results.size() == plan.rows.size(), results.size(), " results for ", plan.rows.size(),
               " rows");
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    const BatchRow& row = plan.rows[i].row;
    Sequence& sequence = *sequences_.at(plan.rows[i].sequence);
    --sequence.steps_in_flight;
    const bool leaving = sequence.state != State::running;
    const std::span<const SampleResult> drawn = results[i].drawn;
    const int32_t advance = row.kind == RowKind::prefill ? row.q_len : static_cast<int32_t>(drawn.size());
    INFERD_CHECK(advance <= row.q_len, "a row of ", row.q_len, " tokens moved on by ", advance);
    if (sequence.state != State::ended) {
      sequence.length += advance;
      sequence.planned_length -= row.q_len - advance;
      for (const SampleResult& result : drawn) {
        std::optional<FinishReason> reason = listener_.on_token(sequence.id, result);
        if (result.status != SampleResult::ok) {
          reason = FinishReason::error;
        } else {
          sequence.ids.push_back(result.id);
        }
        if (!reason && sequence.output_tokens() >= sequence.max_tokens) reason = FinishReason::length;
        if (reason) {
          // Full pages stay findable for the next turn of a conversation.
          pool_.commit(sequence.table, sequence.ids,
                       std::min(sequence.length, static_cast<int32_t>(sequence.ids.size())));
          finish(sequence, *reason);
          break;
        }
      }
    }
    if (sequence.state != State::ended) {
      pool_.commit(sequence.table, sequence.ids,
                   std::min(sequence.length, static_cast<int32_t>(sequence.ids.size())));
    }
    if (sequence.steps_in_flight > 0) continue;
    if (leaving) --leaving_;
    if (sequence.state == State::preempting) {
      requeue(sequence);
    } else {
      remove_if_done(sequence);
    }
  }
}

void Scheduler::check_invariants() const {
  pool_.check_invariants();
  int32_t slots = 0;
  int32_t leaving = 0;
  for (const auto& [id, sequence] : sequences_) {
    slots += sequence->slot >= 0 ? 1 : 0;
    const bool waits_for_steps = sequence->steps_in_flight > 0 && sequence->state != State::running;
    leaving += waits_for_steps ? 1 : 0;
    INFERD_CHECK(sequence->state != State::ended || sequence->steps_in_flight > 0, "sequence ", id,
                 " lingers");
    INFERD_CHECK(sequence->length <= sequence->planned_length, "sequence ", id, " is ahead of its plan");
    INFERD_CHECK((sequence->state == State::waiting) == (sequence->slot < 0), "sequence ", id,
                 " and its slot disagree");
    INFERD_CHECK(sequence->table.pages.size() * static_cast<size_t>(pool_.page_tokens()) >=
                     static_cast<size_t>(sequence->planned_length),
                 "sequence ", id, " has planned past its pages");
  }
  INFERD_CHECK(leaving == leaving_, leaving, " sequences leave, the books say ", leaving_);
  INFERD_CHECK(slots + static_cast<int32_t>(free_slots_.size()) == options_.max_seqs, slots,
               " slots in use, ", free_slots_.size(), " free, ", options_.max_seqs, " in all");
  if (sequences_.empty()) INFERD_CHECK(pool_.active() == 0, pool_.active(), " pages are active, nobody runs");
}

}  // namespace inferd
