// Cases of sample().
#include "ops_registry.h"
#include "ops_sampling.h"

namespace inferd::test {
namespace {

constexpr int32_t kKnown = 9;  // ids of each sequence before the draw

struct Draw {
  SampleParams params;
  std::vector<float> logits;
  std::vector<int32_t> ids;  // (kKnown)
  int32_t prompt;
};

std::vector<Draw> random_draws(Random& random, int64_t vocab, int32_t count) {
  std::vector<Draw> draws;
  for (int32_t i = 0; i < count; ++i) {
    Draw d{random_params(random, vocab),
           random_logits(static_cast<LogitKind>(i % 4), vocab, random),
           {},
           kKnown - i % 5};
    d.params.seed = random.bits() + (uint64_t{random.bits()} << 32);
    for (int32_t t = 0; t < kKnown; ++t) d.ids.push_back(random.below(30) % static_cast<int32_t>(vocab));
    draws.push_back(std::move(d));
  }
  return draws;
}

// One row of the batch for each draw.
void sample(Rig& rig, std::span<const Draw> draws, int64_t vocab, const std::vector<bool>& banned,
            int32_t padding) {
  Random pages(1);
  Step step(std::vector<StepRow>(draws.size(), {kKnown - 1, 1, 1}), 64, 16, pages, padding);
  SeqState host = step.state();
  std::vector<float> logits;
  for (size_t i = 0; i < draws.size(); ++i) {
    const int32_t slot = step.slot(i);
    step.params(i) = draws[i].params;
    std::copy(draws[i].ids.begin(), draws[i].ids.end(), host.ids + slot * host.ctx);
    host.prompt_tokens[slot] = draws[i].prompt;
    logits.insert(logits.end(), draws[i].logits.begin(), draws[i].logits.end());
  }
  PlacedStep placed = rig.place(step);
  if (!banned.empty()) placed.b.banned = rig.input("banned", mask_words(banned));
  rig.ops().begin_step(placed.b, placed.state);
  const int64_t rows = placed.b.logit_rows;
  logits.resize(static_cast<size_t>(rows * vocab));
  const MatrixView x = rig.lost("logits", rows, vocab, logits);
  rig.ops().sample(rig.results(rows), x, placed.b, placed.state, {vocab});
}

VerbCase draws_case(int64_t vocab, int32_t count, bool some_banned, int part) {
  return {.name = cat("sample, vocabulary of ", vocab, some_banned ? ", ids banned" : "", ", part ", part),
          .verb = "sample",
          .tolerance = Tolerance::log_probability,
          .run = [=](Rig& rig) {
            const std::vector<Draw> draws = random_draws(rig.random(), vocab, count);
            std::vector<bool> banned(some_banned ? static_cast<size_t>(vocab) : 0);
            for (size_t id = 0; id < banned.size(); ++id) banned[id] = rig.random().below(3) != 0;
            sample(rig, draws, vocab, banned, 2);
          }};
}

// Rows of logits of one sequence: each sees what was drawn for those before it.
VerbCase several_rows() {
  return {.name = "sample, several rows of logits of a sequence",
          .verb = "sample",
          .tolerance = Tolerance::log_probability,
          .run = [](Rig& rig) {
            Step step({{2, 4, 3}, {0, 0, 0}, {2, 1, 1}}, 64, 16, rig.random(), 1);
            step.params(0) = random_params(rig.random(), 100);
            step.params(0).presence = 2;
            step.params(0).logprobs = 3;
            const PlacedStep placed = rig.place(step);
            rig.ops().begin_step(placed.b, placed.state);
            const MatrixView logits = rig.lost("logits", 5, 100, rig.random().floats(500, -2, 2));
            rig.ops().sample(rig.results(5), logits, placed.b, placed.state, {100});
          }};
}

VerbCase refusals() {
  return {.name = "sample, NaN, infinity and nothing allowed",
          .verb = "sample",
          .tolerance = Tolerance::log_probability,
          .run = [](Rig& rig) {
            std::vector<Draw> draws = random_draws(rig.random(), 300, 7);
            draws[0].logits[0] = NAN;
            draws[1].logits[17] = -NAN;
            draws[2].logits[299] = INFINITY;
            draws[4].logits.assign(300, -INFINITY);
            draws[5].logits.assign(300, -INFINITY);
            draws[5].logits[150] = 1;
            sample(rig, draws, 300, {}, 0);
          }};
}

VerbCase no_rows() {
  return {.name = "sample, no rows",
          .verb = "sample",
          .tolerance = Tolerance::log_probability,
          .run = [](Rig& rig) { sample(rig, {}, 33, {}, 0); }};
}

}  // namespace

std::vector<VerbCase> sample_cases() {
  std::vector<VerbCase> cases = {no_rows(), several_rows(), refusals()};
  // Around vectors, blocks of 64 and tiles of 1,024; then enough for one row to be cut among threads.
  for (const int64_t vocab : {1, 2, 31, 33, 63, 64, 65, 300, 1023, 1025, 2500}) {
    for (int part = 0; part < 4; ++part) cases.push_back(draws_case(vocab, 16, part % 2 == 1, part));
  }
  cases.push_back(draws_case(30000, 8, false, 0));
  cases.push_back(draws_case(30000, 1, false, 1));
  return cases;
}

std::vector<std::string> Comparison::check_sample_alone() {
  constexpr int64_t kVocab = 30000;
  constexpr size_t kDraws = 12;
  Random random(8);
  const std::vector<Draw> draws = random_draws(random, kVocab, kDraws);
  std::vector<std::string> failures;
  // Ids, counts and log-probabilities of one call, a row each.
  const auto drawn = [&](std::span<const Draw> some) {
    Outcome outcome =
        run(backend_, [&](Rig& rig) { sample(rig, some, kVocab, {}, 0); }, "draws", Tolerance::itself);
    failures.insert(failures.end(), outcome.failures.begin(), outcome.failures.end());
    std::vector<std::vector<std::byte>> rows(some.size());
    for (const Output& o : std::span(outcome.outputs).last(2)) {
      const int64_t bytes = std::ssize(o.bytes) / std::ssize(some);
      for (size_t i = 0; i < rows.size(); ++i) {
        const auto begin = o.bytes.begin() + static_cast<int64_t>(i) * bytes;
        rows[i].insert(rows[i].end(), begin, begin + bytes);
      }
    }
    return rows;
  };
  const auto batched = drawn(draws);
  for (size_t i = 0; i < kDraws; ++i) {
    if (drawn(std::span(draws).subspan(i, 1)).front() != batched[i])
      failures.push_back(cat("draw ", i, " is another one alone"));
  }
  return failures;
}

}  // namespace inferd::test
