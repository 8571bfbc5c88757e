#include "engine/memory_plan.h"

#include <algorithm>

namespace inferd {
namespace {

constexpr int32_t kDefaultMaxSeqs = 32;
constexpr int32_t kDefaultPrefillChunk = 256;
// Unless told otherwise the pool holds one whole context, and this many tokens for each sequence that may
// run.
constexpr int32_t kDefaultTokensPerSeq = 512;
constexpr int32_t kSmallestDefaultCtx = 512;
constexpr double kMargin = 0.05;

Error bad_value(std::string_view option, int64_t got, int64_t low, int64_t high, std::string_view why = "") {
  return Error{.code = Code::arg_value,
               .detail = cat(option, " is ", with_commas(got), ", allowed are ", with_commas(low), " to ",
                             with_commas(high), why),
               .where = std::string(option)};
}

class Planner {
 public:
  Planner(const DecoderConfig& config, const Backend& backend, const MemoryRequest& request)
      : config_(config), backend_(backend), request_(request) {}

  Result<MemoryPlan> run(const GgufFile& file) {
    INFERD_TRY_STATUS(check());
    plan_.process = request_.process_bytes;
    plan_.available = request_.available_bytes;
    plan_.page_tokens = backend_.device->kv_page_tokens();
    plan_.runner.kv_dtype = request_.kv_dtype;
    plan_.runner.max_seqs = request_.max_seqs.value_or(kDefaultMaxSeqs);
    plan_.runner.prefill_chunk = request_.prefill_chunk.value_or(kDefaultPrefillChunk);
    const KvLayout layout = Decoder::kv_layout(config_, request_.kv_dtype, plan_.page_tokens);
    plan_.kv_page_bytes = layout.page_bytes();

    // From the wish downwards until it fits; what the user gave stays.
    int32_t ctx = request_.ctx.value_or(config_.train_ctx);
    while (true) {
      plan_.runner.ctx = ctx;
      INFERD_TRY(plan_.weights, Decoder::weight_bytes(file, config_, ctx, *backend_.ops));
      for (const int64_t tokens :
           {std::max<int64_t>(ctx, int64_t{plan_.runner.max_seqs} * kDefaultTokensPerSeq), int64_t{ctx}}) {
        plan_.runner.kv_pages = pages(tokens);
        if (fits()) return plan_;
        if (pool_given()) break;
      }
      if (request_.ctx || ctx <= kSmallestDefaultCtx) break;
      ctx = std::max(kSmallestDefaultCtx, ctx / 2);
    }
    return Error{
        .code = Code::mem_plan,
        .detail = cat("it needs ", human_bytes(plan_.total() - plan_.process), " besides the program's ",
                      human_bytes(plan_.process), ", ", human_bytes(usable_memory(plan_.available)),
                      " may be taken of the ", human_bytes(plan_.available), " available"),
        .where = cat("weights ", human_bytes(plan_.weights), ", KV ", human_bytes(plan_.parts.kv),
                     ", activations ", human_bytes(plan_.parts.activations), ", scratch ",
                     human_bytes(plan_.parts.scratch), ", states ", human_bytes(plan_.parts.state), " (ctx ",
                     with_commas(plan_.runner.ctx), ", seqs ", plan_.runner.max_seqs, ")")};
  }

 private:
  Status check() const {
    if (request_.ctx && (*request_.ctx < 16 || *request_.ctx > config_.train_ctx)) {
      return bad_value("--ctx", *request_.ctx, 16, config_.train_ctx, " (what the model was made for)");
    }
    if (request_.max_seqs && (*request_.max_seqs < 1 || *request_.max_seqs > 1024)) {
      return bad_value("--max-seqs", *request_.max_seqs, 1, 1024);
    }
    if (request_.prefill_chunk && (*request_.prefill_chunk < 1 || *request_.prefill_chunk > 4096)) {
      return bad_value("--prefill-chunk", *request_.prefill_chunk, 1, 4096);
    }
    const int64_t page =
        Decoder::kv_layout(config_, request_.kv_dtype, backend_.device->kv_page_tokens()).page_bytes();
    constexpr int64_t kMostPages = int64_t{1} << 24;
    if (request_.kv_pages && (*request_.kv_pages < 1 || *request_.kv_pages > kMostPages)) {
      return bad_value("--kv-blocks", *request_.kv_pages, 1, kMostPages);
    }
    if (request_.kv_bytes && (*request_.kv_bytes < page || *request_.kv_bytes > kMostPages * page)) {
      return bad_value("--kv-memory", *request_.kv_bytes, page, kMostPages * page, " bytes");
    }
    return {};
  }

  bool pool_given() const { return request_.kv_pages.has_value() || request_.kv_bytes.has_value(); }

  int32_t pages(int64_t tokens) const {
    if (request_.kv_pages) return *request_.kv_pages;
    if (request_.kv_bytes) return static_cast<int32_t>(*request_.kv_bytes / plan_.kv_page_bytes);
    return static_cast<int32_t>(ceil_div(tokens, plan_.page_tokens));
  }

  bool fits() {
    plan_.parts = Runner::bytes(config_, plan_.runner, *backend_.device, *backend_.ops);
    return plan_.fits();
  }

  const DecoderConfig& config_;
  const Backend& backend_;
  const MemoryRequest& request_;
  MemoryPlan plan_;
};

}  // namespace

int64_t usable_memory(int64_t available) {
  return static_cast<int64_t>(static_cast<double>(available) * (1 - kMargin));
}

std::string MemoryPlan::text() const {
  std::string out;
  const auto line = [&out](std::string_view name, int64_t bytes, const std::string& note) {
    std::string size = human_bytes(bytes);
    out += cat("  ", name, std::string(14 - name.size(), ' '),
               std::string(size.size() < 10 ? 10 - size.size() : 0, ' '), size);
    out += note.empty() ? "\n" : cat("  ", note, "\n");
  };
  line("weights", weights, "");
  line("KV pool", parts.kv,
       cat(with_commas(pool_tokens()), " tokens in ", with_commas(runner.kv_pages), " pages of ", page_tokens,
           ", ", kv_dtype_name(runner.kv_dtype), ", ", human_bytes(kv_page_bytes / page_tokens), " a token"));
  line("activations", parts.activations,
       cat("steps of up to ", runner.prefill_chunk, " prompt tokens and ", runner.max_seqs, " sequences"));
  line("scratch", parts.scratch, "");
  line("states", parts.state, "");
  line("program", process, "code, tokenizer, file header, threads, connections");
  line("total", total(), cat("of ", human_bytes(available + process), " this process could have"));
  return out;
}

Result<MemoryPlan> plan_memory(const GgufFile& file, const DecoderConfig& config, const Backend& backend,
                               const MemoryRequest& request) {
  return Planner(config, backend, request).run(file);
}

}  // namespace inferd
