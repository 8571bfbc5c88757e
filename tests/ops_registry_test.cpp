// Every verb of every backend against `reference`, over the cases of ops_registry.h; the equal-bytes rules of
// docs/numerics.md; and that the registry sees what is wrong.
#include "ops_registry.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "cpu/cpu_backend.h"
#include "ops_registry_faults.h"
#include "reference/reference_backend.h"

namespace inferd {
namespace {

using test::all_cases;
using test::Comparison;
using test::Fault;
using test::Report;
using test::Subject;
using test::VerbCase;

Backend cpu_backend(IsaLevel level, int threads) {
  auto backend = make_cpu_backend({.threads = threads, .isa = level, .pin = false});
  INFERD_CHECK(backend.ok(), "cpu backend");
  return std::move(backend).value();
}

// Every level that this machine has, with two threads. One thread gives the same bytes, and so do five of the
// portable level, but for the level that multiplies bf16: five threads of its own.
std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const IsaLevel level : available_isa_levels()) {
    const bool bf16_dot = level == IsaLevel::avx512_bf16;
    const IsaLevel equal = bf16_dot ? level : IsaLevel::portable;
    all.push_back(
        {.name = std::string(isa_name(level)),
         .make = [level] { return cpu_backend(level, 2); },
         .equals = {[level] { return cpu_backend(level, 1); }, [equal] { return cpu_backend(equal, 5); }},
         .bounds = bf16_dot ? &test::cpu_bf16_dot_bounds() : &test::cpu_bounds()});
  }
  return all;
}

std::vector<std::string> verbs_of_the_table() {
  std::vector<std::string> verbs;
  for (const VerbCase& c : all_cases()) {
    std::string verb(c.verb);
    if (c.weight.has_value()) verb += cat("_", dtype_name(*c.weight));
    if (std::find(verbs.begin(), verbs.end(), verb) == verbs.end()) verbs.push_back(verb);
  }
  return verbs;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (size_t i = 0; i < lines.size() && i < 8; ++i) text += "\n  " + lines[i];
  return text;
}

// A verb, or a verb and a weight type, of one backend.
struct Part {
  Subject subject;
  std::string verb;
};
void PrintTo(const Part& part, std::ostream* out) {
  *out << part.verb << " of " << part.subject.name;
}

class Verb : public testing::TestWithParam<Part> {};

TEST_P(Verb, agrees_with_reference_and_keeps_to_its_buffers) {
  Comparison comparison(GetParam().subject);
  double used = 0;
  int cases = 0;
  for (const VerbCase& c : all_cases()) {
    const std::string verb =
        c.weight.has_value() ? cat(c.verb, "_", dtype_name(*c.weight)) : std::string(c.verb);
    if (verb != GetParam().verb) continue;
    const Report report = comparison.check(c);
    EXPECT_TRUE(report.failures.empty()) << c.name << joined(report.failures);
    used = std::max(used, report.used);
    ++cases;
  }
  EXPECT_GT(cases, 0);
  RecordProperty("cases", cases);
  RecordProperty("percent_of_the_bound", static_cast<int>(std::ceil(100 * used)));
}

std::vector<Part> verb_parts() {
  std::vector<Part> parts;
  for (const Subject& s : subjects()) {
    for (const std::string& verb : verbs_of_the_table()) parts.push_back({s, verb});
  }
  return parts;
}

INSTANTIATE_TEST_SUITE_P(Every, Verb, testing::ValuesIn(verb_parts()), [](const auto& instance) {
  return cat(instance.param.subject.name, "_", instance.param.verb);
});

class EqualBytes : public testing::TestWithParam<Subject> {};

TEST_P(EqualBytes, a_linears_row_is_the_row_alone_in_batches_of_1_to_65) {
  Comparison comparison(GetParam());
  std::vector<DType> all;
  for (int i = 0; i < kDTypes; ++i) {
    const auto type = static_cast<DType>(i);
    EXPECT_EQ(joined(comparison.check_batch_sizes({type})), "") << dtype_name(type);
    all.push_back(type);
  }
  EXPECT_EQ(joined(comparison.check_batch_sizes(all)), "") << "all types in one weight";
}

TEST_P(EqualBytes, attention_does_not_depend_on_batch_chunks_or_pages) {
  Comparison comparison(GetParam());
  for (const KvDType dtype : {KvDType::f32, KvDType::f16, KvDType::bf16, KvDType::q8_0}) {
    for (const int32_t window : {0, 100}) {
      EXPECT_EQ(joined(comparison.check_attention_alone(dtype, window)), "")
          << kv_dtype_name(dtype) << ", window " << window;
    }
  }
}

TEST_P(EqualBytes, a_draw_does_not_depend_on_batch_mates) {
  Comparison comparison(GetParam());
  EXPECT_EQ(joined(comparison.check_sample_alone()), "");
}

INSTANTIATE_TEST_SUITE_P(Every, EqualBytes, testing::ValuesIn(subjects()),
                         [](const auto& instance) { return instance.param.name; });

// ---- The registry itself

TEST(Registry, has_cases_for_every_verb_of_ops_h) {
  std::ifstream file(cat(INFERD_SOURCE_DIR, "/src/ops/ops.h"));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  text = text.substr(text.find("class Ops {"));
  text = text.substr(0, text.find("\n};"));
  std::set<std::string> wanted;
  const std::regex verb(R"(virtual [^~(]*?(\w+)\()");
  for (std::sregex_iterator it(text.begin(), text.end(), verb); it != std::sregex_iterator(); ++it)
    wanted.insert((*it)[1]);
  EXPECT_EQ(wanted.size(), 23u);
  std::set<std::string> listed;
  for (const VerbCase& c : all_cases()) listed.insert(std::string(c.verb));
  EXPECT_EQ(listed, wanted);
}

TEST(Registry, names_each_case_once_and_every_weight_type) {
  std::set<std::string> names;
  std::set<DType> linear;
  std::set<DType> gather;
  for (const VerbCase& c : all_cases()) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
    if (c.weight.has_value()) (c.verb == "linear" ? linear : gather).insert(*c.weight);
  }
  EXPECT_EQ(linear.size(), static_cast<size_t>(kDTypes));
  EXPECT_EQ(gather.size(), static_cast<size_t>(kDTypes));
}

TEST(Registry, gives_a_reason_for_every_bound) {
  for (size_t i = 0; i < test::kTolerances; ++i) {
    if (static_cast<test::Tolerance>(i) == test::Tolerance::itself) continue;
    EXPECT_NE(test::cpu_bounds()[i].reason, "") << i;
  }
}

// What the registry says of a reference backend with one thing wrong.
std::string verdict(Fault fault, std::string_view verb) {
  Subject s{.name = "faulty",
            .make = [fault] { return test::with_fault(make_reference_backend(), fault); },
            .equals = {},
            .bounds = &test::cpu_bounds(),
            .host_memory = false};  // else AddressSanitizer ends the program before the guards are looked at
  Comparison comparison(s);
  for (const VerbCase& c : all_cases()) {
    if (c.verb != verb) continue;
    const Report report = comparison.check(c);
    if (!report.failures.empty()) return report.failures.front();
  }
  return "";
}

TEST(Registry, finds_nothing_wrong_with_a_backend_that_is_right) {
  for (const std::string_view verb :
       {"add", "rmsnorm", "linear", "select_rows", "store_kv", "begin_step", "add_rmsnorm", "qk_norm",
        "attention", "gelu_mul", "scale", "softcap"}) {
    EXPECT_EQ(verdict(Fault::none, verb), "") << verb;
  }
}

TEST(Registry, finds_each_kind_of_fault) {
  EXPECT_NE(verdict(Fault::shifted_output, "select_rows").find("not written"), std::string::npos);
  EXPECT_NE(verdict(Fault::last_bit, "add").find("[0] is"), std::string::npos);
  EXPECT_NE(verdict(Fault::byte_behind, "rmsnorm").find("guard of y is written to, at byte"),
            std::string::npos);
  EXPECT_NE(verdict(Fault::byte_between_rows, "silu_mul").find("guard of y is written to, at byte"),
            std::string::npos);
  EXPECT_NE(verdict(Fault::input_changed, "linear").find("input x of 1 is written to at byte 0"),
            std::string::npos);
  EXPECT_NE(verdict(Fault::weights_off, "linear").find("apart"), std::string::npos);
  EXPECT_NE(verdict(Fault::padding_written, "select_rows").find("not written"), std::string::npos);
  EXPECT_NE(verdict(Fault::keys_by_q_weight, "qk_norm").find("apart"), std::string::npos);
  EXPECT_NE(verdict(Fault::window_longer, "attention").find("apart"), std::string::npos);
  EXPECT_NE(verdict(Fault::scores_uncapped, "attention").find("apart"), std::string::npos);
  EXPECT_NE(verdict(Fault::gelu_is_silu, "gelu_mul").find("apart"), std::string::npos);
  EXPECT_NE(verdict(Fault::scale_rounded, "scale").find("apart"), std::string::npos);
  EXPECT_NE(verdict(Fault::capped_twice, "softcap").find("apart"), std::string::npos);
  EXPECT_NE(verdict(Fault::other_page, "store_kv").find("not as reference has it: pool"), std::string::npos);
  EXPECT_NE(verdict(Fault::fusion_differs, "add_rmsnorm").find("not as the default body has it"),
            std::string::npos);
}

TEST(Registry, finds_a_row_that_depends_on_its_batch) {
  Subject s{.name = "faulty",
            .make = [] { return test::with_fault(make_reference_backend(), Fault::batch_changes_rows); },
            .equals = {},
            .bounds = &test::cpu_bounds()};
  Comparison comparison(s);
  const std::vector<std::string> failures = comparison.check_batch_sizes({DType::f32});
  ASSERT_EQ(failures.size(), 57u);  // batches of 9 to 65
  EXPECT_EQ(failures.front(), "9 rows: row 0 is not the row alone");
}

}  // namespace
}  // namespace inferd
