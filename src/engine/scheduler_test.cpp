// The scheduler against a fake device: no model, ids that are a function of what came before, so that every
// output is known beforehand whatever the scheduler does.
#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

namespace inferd {
namespace {

// The next id after a sequence whose rolling hash is `prefix`.
int32_t next_id(uint64_t prefix) {
  return static_cast<int32_t>(prefix * 0x9E3779B97F4A7C15 >> 59);
}  // 0 … 31
uint64_t extend(uint64_t prefix, int32_t id) {
  return (prefix + static_cast<uint64_t>(id) + 1) * 0xD1342543DE82EF95 + 1;
}
constexpr int32_t kStopId = 31;

// What the sequence must produce, computed alone.
std::vector<int32_t> expected_output(const std::vector<int32_t>& prompt, int32_t max_tokens) {
  uint64_t hash = 0;
  for (const int32_t id : prompt) hash = extend(hash, id);
  std::vector<int32_t> output;
  while (static_cast<int32_t>(output.size()) < max_tokens) {
    output.push_back(next_id(hash));
    hash = extend(hash, output.back());
    if (output.back() == kStopId) break;
  }
  return output;
}

// Runs plans in order. Its pages hold, per token, the hash of everything up to it: reading a page that was
// overwritten, freed too early or belongs to somebody else shows at once.
class FakeDevice {
 public:
  FakeDevice(const SchedulerOptions& options, uint32_t seed)
      : page_tokens_(options.pool.page_tokens),
        pages_(static_cast<size_t>(options.pool.pages * page_tokens_), 0),
        slots_(static_cast<size_t>(options.max_seqs)),
        random_(seed) {}

  std::vector<std::vector<SampleResult>> run(const StepPlan& plan) {
    for (const StepPlan::Entry& entry : plan.entries) {
      Slot& slot = slots_.at(static_cast<size_t>(entry.slot));
      slot.ids.assign(entry.ids.begin(), entry.ids.end());
      slot.length = entry.length;
    }
    for (const PageCopy& copy : plan.copies) {
      std::copy_n(pages_.begin() + copy.source * page_tokens_, page_tokens_,
                  pages_.begin() + copy.target * page_tokens_);
    }
    std::vector<std::vector<SampleResult>> results;
    std::map<int32_t, SequenceId> writers;
    for (const StepPlan::Row& row : plan.rows) results.push_back(run_row(row, writers));
    return results;
  }

 private:
  struct Slot {
    std::vector<int32_t> ids;
    int32_t length = 0;
  };

  std::vector<SampleResult> run_row(const StepPlan::Row& row, std::map<int32_t, SequenceId>& writers) {
    Slot& slot = slots_.at(static_cast<size_t>(row.row.slot));
    const auto cell = [&](int32_t position) -> uint64_t& {
      const int32_t page = row.pages[static_cast<size_t>(position / page_tokens_)];
      return pages_.at(static_cast<size_t>(page * page_tokens_ + position % page_tokens_));
    };
    uint64_t hash = 0;
    for (int32_t t = 0; t < slot.length; ++t) {
      hash = extend(hash, slot.ids.at(static_cast<size_t>(t)));
      INFERD_CHECK(cell(t) == hash, "sequence ", row.sequence, ": token ", t, " is not in its page");
    }
    const auto write = [&](int32_t position, uint64_t value) {
      const int32_t page = row.pages[static_cast<size_t>(position / page_tokens_)];
      const auto [writer, first] = writers.try_emplace(page, row.sequence);
      INFERD_CHECK(first || writer->second == row.sequence, "two sequences write page ", page);
      cell(position) = value;
    };
    const bool draft = row.row.kind == RowKind::draft;
    const int32_t feed = draft ? 1 : row.row.q_len;
    for (int32_t i = 0; i < feed; ++i) {
      hash = extend(hash, slot.ids.at(static_cast<size_t>(slot.length + i)));
      write(slot.length + i, hash);
    }
    std::vector<SampleResult> drawn;
    int32_t draws = row.row.logits > 0 ? 1 : 0;
    if (draft) draws = static_cast<int32_t>(random_() % static_cast<uint32_t>(row.row.q_len + 1));
    for (int32_t i = 0; i < draws; ++i) {
      SampleResult result{};
      result.id = next_id(hash);
      drawn.push_back(result);
      slot.ids.push_back(result.id);
      if (i + 1 < draws) {
        hash = extend(hash, result.id);
        write(slot.length + i + 1, hash);
      }
    }
    const int32_t advance = draft ? draws : row.row.q_len;
    for (int32_t i = std::max(advance, 1); i < row.row.q_len; ++i)
      write(slot.length + i, ~uint64_t{0});  // rejected drafts
    slot.length += advance;
    return drawn;
  }

  const int32_t page_tokens_;
  std::vector<uint64_t> pages_;
  std::vector<Slot> slots_;
  std::mt19937 random_;
};

// Scheduler, fake device and the books that a caller would keep, for one lag.
class Harness : public ScheduleListener {
 public:
  Harness(const SchedulerOptions& options, int lag, uint32_t seed = 1)
      : options_(options), lag_(lag), scheduler_(options, *this), device_(options, seed) {}

  SequenceId submit(const std::vector<int32_t>& prompt, int32_t max_tokens, const std::string& key = "",
                    std::optional<SequenceId> leader = std::nullopt) {
    EXPECT_TRUE(Scheduler::check_fits(options_, static_cast<int64_t>(prompt.size()), max_tokens).ok());
    const SequenceId id = scheduler_.submit({prompt, max_tokens, key, leader});
    open_[id] = {prompt, max_tokens, {}};
    return id;
  }

  void cancel(SequenceId id) {
    cancelled_.insert(id);
    scheduler_.cancel(id);
  }

  // One turn of the step loop; false when nothing was left to do.
  bool step() {
    StepPlan plan = scheduler_.plan();
    const bool launched = !plan.empty();
    if (launched) {
      most_rows_ = std::max(most_rows_, plan.rows.size());
      flight_.push_back({plan, device_.run(plan)});
    }
    const size_t allowed = launched ? static_cast<size_t>(lag_) : 0;
    const bool busy = !flight_.empty();
    while (flight_.size() > allowed) {
      std::vector<RowResult> results;
      for (const auto& drawn : flight_.front().results) results.push_back({drawn});
      scheduler_.commit(flight_.front().plan, results);
      flight_.pop_front();
    }
    return busy;
  }

  void run_to_end() {
    int idle_turns = 0;
    while (!scheduler_.idle()) {
      idle_turns = step() ? 0 : idle_turns + 1;
      ASSERT_LT(idle_turns, 2) << "stuck with " << scheduler_.waiting() << " waiting";
    }
    scheduler_.check_invariants();
    EXPECT_TRUE(open_.empty());
  }

  void on_admitted(SequenceId, const SequenceStats&, bool) override { ++admissions_; }
  std::optional<FinishReason> on_token(SequenceId id, const SampleResult& drawn) override {
    open_.at(id).output.push_back(drawn.id);
    if (drawn.id == kStopId) return FinishReason::stop_id;
    return std::nullopt;
  }
  void on_finished(SequenceId id, FinishReason reason, const SequenceStats& stats) override {
    const Open& sequence = open_.at(id);
    const std::vector<int32_t> expected = expected_output(sequence.prompt, sequence.max_tokens);
    if (reason == FinishReason::cancelled) {
      EXPECT_TRUE(cancelled_.contains(id));
      EXPECT_LE(sequence.output.size(), expected.size());
      EXPECT_TRUE(std::equal(sequence.output.begin(), sequence.output.end(), expected.begin()));
    } else {
      EXPECT_EQ(sequence.output, expected) << "sequence " << id;
      EXPECT_EQ(reason, expected.back() == kStopId ? FinishReason::stop_id : FinishReason::length);
    }
    EXPECT_EQ(stats.output_tokens, static_cast<int32_t>(sequence.output.size()));
    ++finished_;
    cached_tokens_ += stats.cached_tokens;
    last_stats_ = stats;
    open_.erase(id);
  }

  struct Open {
    std::vector<int32_t> prompt;
    int32_t max_tokens;
    std::vector<int32_t> output;
  };
  struct Flight {
    StepPlan plan;
    std::vector<std::vector<SampleResult>> results;
  };

  const SchedulerOptions options_;
  const int lag_;
  Scheduler scheduler_;
  FakeDevice device_;
  std::map<SequenceId, Open> open_;
  std::set<SequenceId> cancelled_;
  std::deque<Flight> flight_;
  int64_t admissions_ = 0;
  int64_t finished_ = 0;
  int64_t cached_tokens_ = 0;
  size_t most_rows_ = 0;
  SequenceStats last_stats_;
};

std::vector<int32_t> prompt_of(int32_t length, int32_t first = 0) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < length; ++i) ids.push_back((first * 7 + i * 13) % 29);
  return ids;
}

class SchedulerLag : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Lag, SchedulerLag, testing::Values(0, 1));

TEST_P(SchedulerLag, a_long_prompt_is_cut_into_chunks_and_rides_with_decode_rows) {
  Harness h({.max_seqs = 4, .ctx = 256, .prefill_chunk = 32, .pool = {.pages = 64}}, GetParam());
  h.submit(prompt_of(10, 1), 40);
  h.step();
  h.step();
  h.submit(prompt_of(100, 2), 5);
  StepPlan plan = h.scheduler_.plan();
  ASSERT_EQ(plan.rows.size(), 2u);
  EXPECT_EQ(plan.rows[0].row.kind, RowKind::decode);
  EXPECT_EQ(plan.rows[0].row.q_len, 1);
  EXPECT_EQ(plan.rows[1].row.kind, RowKind::prefill);
  EXPECT_EQ(plan.rows[1].row.q_len, 32);
  EXPECT_EQ(plan.rows[1].row.logits, 0);
  EXPECT_EQ(plan.tokens, 33);
  EXPECT_EQ(plan.logit_rows, 1);
  h.flight_.push_back({plan, h.device_.run(plan)});
  h.run_to_end();
  EXPECT_EQ(h.scheduler_.split_chunks(), 3);
}

TEST_P(SchedulerLag, the_busy_chunk_bounds_prompts_only_while_others_decode) {
  Harness h({.max_seqs = 4, .ctx = 256, .prefill_chunk = 64, .pool = {.pages = 64}}, GetParam());
  h.scheduler_.set_busy_chunk(16);
  h.submit(prompt_of(64, 1), 50);
  StepPlan alone = h.scheduler_.plan();
  EXPECT_EQ(alone.rows[0].row.q_len, 64);
  h.flight_.push_back({alone, h.device_.run(alone)});
  h.step();
  h.submit(prompt_of(64, 2), 5);
  StepPlan busy = h.scheduler_.plan();
  ASSERT_EQ(busy.rows.size(), 2u);
  EXPECT_EQ(busy.rows[1].row.q_len, 16);
  h.flight_.push_back({busy, h.device_.run(busy)});
  h.run_to_end();
}

TEST_P(SchedulerLag, a_second_identical_prompt_computes_only_its_last_page) {
  Harness h({.max_seqs = 4, .ctx = 256, .prefill_chunk = 64, .pool = {.pages = 64}}, GetParam());
  h.submit(prompt_of(50), 4);
  h.run_to_end();
  h.submit(prompt_of(50), 4);
  h.run_to_end();
  EXPECT_EQ(h.last_stats_.cached_tokens, 48);
  h.submit(prompt_of(50), 4, "another tenant");
  h.run_to_end();
  EXPECT_EQ(h.last_stats_.cached_tokens, 0);
}

TEST_P(SchedulerLag, siblings_fork_from_their_leader_once_its_prompt_is_computed) {
  Harness h({.max_seqs = 8, .ctx = 256, .prefill_chunk = 16, .pool = {.pages = 64, .prefix_cache = false}},
            GetParam());
  const SequenceId leader = h.submit(prompt_of(40), 30);
  for (int i = 0; i < 3; ++i) h.submit(prompt_of(40), 30, "", leader);
  const SequenceId stranger = h.submit(prompt_of(5, 9), 30);
  h.step();
  h.step();
  // The stranger is not held up by siblings that wait for their leader.
  EXPECT_TRUE(h.open_.contains(stranger));
  EXPECT_EQ(h.scheduler_.waiting(), 3 + (h.scheduler_.running() == 1 ? 1 : 0));
  h.run_to_end();
  EXPECT_EQ(h.scheduler_.forks(), 3);  // 39 shared tokens end inside a page of 16
  EXPECT_EQ(h.cached_tokens_, 3 * 39);
}

TEST_P(SchedulerLag, growth_preempts_the_youngest_and_its_output_does_not_change) {
  Harness h({.max_seqs = 4,
             .ctx = 128,
             .prefill_chunk = 64,
             .pool = {.pages = 9, .page_tokens = 4, .prefix_cache = false}},
            GetParam());
  // Four prompts whose outputs run to their full length: together they need 36 pages, the pool has 9.
  for (int32_t i = 0; h.open_.size() < 4; ++i) {
    if (expected_output(prompt_of(6, i), 30).size() == 30) h.submit(prompt_of(6, i), 30);
  }
  h.run_to_end();
  EXPECT_EQ(h.finished_, 4);
  EXPECT_GT(h.scheduler_.preemptions(), 0);
}

TEST_P(SchedulerLag, a_sequence_that_needs_the_whole_pool_runs_after_the_others) {
  Harness h({.max_seqs = 4, .ctx = 64, .prefill_chunk = 64, .pool = {.pages = 4}}, GetParam());
  for (int32_t i = 0; i < 3; ++i) h.submit(prompt_of(10, i), 20);
  h.submit(prompt_of(40, 8), 24);
  for (int32_t i = 4; i < 6; ++i) h.submit(prompt_of(10, i), 20);
  h.run_to_end();
  EXPECT_EQ(h.finished_, 6);
}

TEST_P(SchedulerLag, cancelling_frees_the_pages_within_lag_plus_one_steps) {
  Harness h({.max_seqs = 4, .ctx = 256, .prefill_chunk = 16, .pool = {.pages = 64, .prefix_cache = false}},
            GetParam());
  const SequenceId decoding = h.submit(prompt_of(10), 200);
  for (int i = 0; i < 5; ++i) h.step();
  const SequenceId prefilling = h.submit(prompt_of(100, 3), 10);
  h.step();
  h.step();
  const SequenceId waiting = h.submit(prompt_of(100, 4), 10);
  for (const SequenceId id : {decoding, prefilling, waiting}) h.cancel(id);
  EXPECT_TRUE(h.open_.empty());
  for (int i = 0; i < GetParam() + 1; ++i) h.step();
  EXPECT_EQ(h.scheduler_.pool().active(), 0);
  EXPECT_TRUE(h.scheduler_.idle());
  h.scheduler_.check_invariants();
}

TEST(Scheduler, what_can_never_run_is_refused_with_both_numbers) {
  const SchedulerOptions options{.ctx = 2048, .pool = {.pages = 32}};
  EXPECT_TRUE(Scheduler::check_fits(options, 500, 13).ok());
  const Error pool = Scheduler::check_fits(options, 1000, 16).error();
  EXPECT_EQ(pool.code, Code::kv_never_fits);
  EXPECT_EQ(pool.detail, "it needs 1,015 tokens of KV, the pool has 512");
  const Error context = Scheduler::check_fits(options, 16384, 16).error();
  EXPECT_EQ(context.code, Code::req_context);
  EXPECT_EQ(context.detail, "16,384 prompt tokens and at least 1 of output, the context has 2,048");
  EXPECT_EQ(Scheduler::check_fits(options, 2000, 100).error().param, "max_tokens");
}

// Submits, cancels, siblings and steps at random against expected_output(), which knows nothing of any of
// them.
void survive(int lag, int32_t max_advance, int operations) {
  std::mt19937 random(static_cast<uint32_t>(1000 * lag + max_advance));
  const auto below = [&](int32_t n) { return static_cast<int32_t>(random() % static_cast<uint32_t>(n)); };
  const SchedulerOptions options{.max_seqs = 6,
                                 .ctx = 60,
                                 .prefill_chunk = 16,
                                 .max_advance = max_advance,
                                 .pool = {.pages = 26, .page_tokens = 4, .hash_mask = 0xFF}};
  Harness h(options, lag, static_cast<uint32_t>(lag + 77));
  for (int i = 0; i < operations; ++i) {
    const int32_t action = below(16);
    if (action < 3 && h.open_.size() < 40) {
      // Few different prompts, so that prefixes are shared.
      const int32_t length = 1 + below(30);
      const int32_t max_tokens = 1 + below(60 - length);
      const std::vector<int32_t> prompt = prompt_of(length, below(3));
      const std::string key(1, static_cast<char>('a' + below(2)));
      const SequenceId leader = h.submit(prompt, max_tokens, key);
      if (below(4) == 0) {
        for (int32_t n = below(4); n > 0; --n) h.submit(prompt, max_tokens, key, leader);
      }
    } else if (action == 3 && !h.open_.empty()) {
      h.cancel(std::next(h.open_.begin(), below(static_cast<int32_t>(h.open_.size())))->first);
    } else {
      h.step();
      if (i % 64 == 0) h.scheduler_.check_invariants();
    }
    if (i % 5000 == 0) h.scheduler_.set_busy_chunk(1 + below(20));
    if (testing::Test::HasFailure()) FAIL() << "operation " << i;
  }
  h.run_to_end();
  EXPECT_EQ(h.scheduler_.pool().active(), 0);
  EXPECT_GT(h.finished_, operations / 20);
  EXPECT_GT(h.scheduler_.preemptions(), operations / 1000);
  EXPECT_GT(h.scheduler_.forks(), operations / 1000);
  EXPECT_GT(h.cached_tokens_, operations / 10);
  EXPECT_EQ(h.most_rows_, 6u);
}

#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
constexpr int kOperations = 1000000;
#else
constexpr int kOperations = 100000;  // sanitizers make a step about ten times slower
#endif

TEST_P(SchedulerLag, survives_random_operations) {
  survive(GetParam(), 1, kOperations);
}
TEST_P(SchedulerLag, survives_random_operations_when_rows_advance_by_0_to_8_tokens) {
  survive(GetParam(), 8, kOperations);
}

}  // namespace
}  // namespace inferd
