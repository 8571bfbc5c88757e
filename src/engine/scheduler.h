// The scheduler decides, step by step, which sequences run and how many tokens each gets. It knows ids and
// page numbers, no model and no device, so it is tested with plans alone. One thread.
//
//   plan(n+1) may come before commit(n): the loop runs ahead of the device by its lag. So pages are reserved
//   for the largest advance of every step in flight, and a sequence that ends keeps its slot and pages until
//   the last step that names it is committed.
//
// Order: decode rows of all running sequences, oldest first; then prompt chunks of admitted ones; then
// admissions, first come first served. Admission reserves what the known tokens need, not the worst case;
// when a decode row finds no page, the youngest running sequence is preempted: it gives everything back and
// later computes its tokens again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/request.h"
#include "kv/page_pool.h"
#include "ops/batch.h"

namespace inferd {

using SequenceId = uint64_t;

struct SchedulerOptions {
  int32_t max_seqs = 16;        // sequences that run at once: slots
  int32_t ctx = 4096;           // tokens a sequence may have
  int32_t prefill_chunk = 512;  // prompt tokens of one step when nothing decodes
  int32_t max_advance = 1;  // most tokens a decode row may move on in one step; above 1 rows are draft checks
  PagePoolOptions pool;
};

// What one step does. Spans borrow from the scheduler and hold until its next call.
struct StepPlan {
  struct Row {
    SequenceId sequence = 0;
    BatchRow row{};
    std::span<const int32_t> pages;  // block table
  };
  // A sequence that enters a slot in this step.
  struct Entry {
    SequenceId sequence = 0;
    int32_t slot = 0;
    int32_t length = 0;  // tokens that are already in its pages
    int32_t prompt_tokens = 0;
    std::span<const int32_t> ids;  // all known ids
  };
  std::vector<Row> rows;
  std::vector<Entry> entries;
  std::vector<PageCopy> copies;
  int32_t tokens = 0;  // of all rows
  int32_t logit_rows = 0;
  int32_t decode_rows = 0;

  bool empty() const { return rows.empty(); }
};

// What came out for one row. A prompt chunk moves on by its whole length and draws at most one token; a
// decode row moves on by as many tokens as it draws, 0 to max_advance.
struct RowResult {
  std::span<const SampleResult> drawn;
};

struct SequenceStats {
  int32_t prompt_tokens = 0;
  int32_t cached_tokens = 0;  // of the prompt, not computed because a prefix or a sibling had them
  int32_t output_tokens = 0;
  int32_t preemptions = 0;
};

// Told of everything that happens to sequences, inside plan(), commit() and cancel().
class ScheduleListener {
 public:
  virtual ~ScheduleListener() = default;
  virtual void on_admitted(SequenceId sequence, const SequenceStats& stats, bool first_time) = 0;
  // A token was drawn; a reason ends the sequence with it. A status other than ok ends it with
  // FinishReason::error, and the result is not part of the sequence.
  virtual std::optional<FinishReason> on_token(SequenceId sequence, const SampleResult& drawn) = 0;
  // Exactly once; nothing about the sequence follows.
  virtual void on_finished(SequenceId sequence, FinishReason reason, const SequenceStats& stats) = 0;
};

struct SequenceSpec {
  std::vector<int32_t> prompt;
  int32_t max_tokens = 1;  // ≥ 1
  std::string cache_key;   // sequences with different keys share no pages
  std::optional<SequenceId>
      leader;  // shares the prompt of this earlier sequence: forked from it when that is possible
};

class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, ScheduleListener& listener);

  // E-REQ-006 or E-KV-001 when a sequence of these lengths can never run; pure, any thread.
  static Status check_fits(const SchedulerOptions& options, int64_t prompt_tokens, int64_t max_tokens);
  // The most tokens one sequence can have: the smaller of the context and the pool.
  static int32_t max_sequence_tokens(const SchedulerOptions& options);

  // Requires check_fits().
  SequenceId submit(SequenceSpec spec);

  // Ends a sequence in any state. False when it is unknown or has ended.
  bool cancel(SequenceId sequence, FinishReason reason = FinishReason::cancelled);

  // Prompt tokens of a step that also has decode rows: how much one prompt may delay the others. From a fixed
  // ladder, set by load; at least one page.
  void set_busy_chunk(int32_t tokens) { busy_chunk_ = tokens; }
  int32_t busy_chunk() const { return busy_chunk_; }

  // The next step; empty when nothing can run now.
  StepPlan plan();

  // Takes in a step's results, in the order the steps were planned. results[i] belongs to plan.rows[i].
  void commit(const StepPlan& plan, std::span<const RowResult> results);

  int32_t running() const { return static_cast<int32_t>(running_.size()); }
  int32_t waiting() const { return static_cast<int32_t>(waiting_.size()); }
  bool idle() const { return sequences_.empty(); }
  std::optional<SequenceId> longest_waiting() const;
  const PagePool& pool() const { return pool_; }
  int64_t preemptions() const { return preemptions_; }
  int64_t forks() const { return forks_; }                // page copies made for siblings
  int64_t split_chunks() const { return split_chunks_; }  // prompt chunks that were not a prompt's whole rest

  // Ends the process when the books are wrong: pages, slots, counts of steps in flight.
  void check_invariants() const;

 private:
  enum class State { waiting, running, preempting, ended };
  struct Sequence {
    SequenceId id = 0;
    State state = State::waiting;
    std::vector<int32_t> ids;  // prompt, then output
    int32_t prompt_tokens = 0;
    int32_t max_tokens = 0;
    std::optional<SequenceId> leader;
    BlockTable table;
    int32_t slot = -1;
    int32_t length = 0;           // committed tokens in its pages
    int32_t planned_length = 0;   // the same with the largest advance of all steps in flight
    int32_t prefill_end = 0;      // known tokens at admission; prompt chunks run up to here
    int32_t steps_in_flight = 0;  // rows in flight
    SequenceStats stats;

    int32_t output_tokens() const { return static_cast<int32_t>(ids.size()) - prompt_tokens; }
    bool prefilling() const { return planned_length < prefill_end; }
  };

  void plan_decode_rows(StepPlan& plan);
  void plan_prefill_rows(StepPlan& plan, int32_t& budget);
  void admit(StepPlan& plan, int32_t& budget);
  enum class Admission { admitted, not_yet, no_room };
  Admission try_admit(StepPlan& plan, Sequence& sequence);
  void add_prefill_row(StepPlan& plan, Sequence& sequence, int32_t& budget);
  bool find_pages(Sequence& sequence, int32_t tokens);
  void preempt(Sequence& sequence);
  void leave_slot(Sequence& sequence);
  void requeue(Sequence& sequence);
  void finish(Sequence& sequence, FinishReason reason);
  void remove_if_done(Sequence& sequence);

  const SchedulerOptions options_;
  ScheduleListener& listener_;
  PagePool pool_;
  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> running_;  // hold a slot and may get rows; oldest first
  std::vector<Sequence*> waiting_;  // oldest first
  std::vector<int32_t> free_slots_;
  SequenceId next_id_ = 1;
  int32_t busy_chunk_;
  int32_t leaving_ = 0;  // sequences that will give pages back once their steps in flight are committed
  int64_t preemptions_ = 0;
  int64_t forks_ = 0;
  int64_t split_chunks_ = 0;
};

}  // namespace inferd
