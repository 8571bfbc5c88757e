#include "sampling/params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace inferd {
namespace {

std::string refusal(const std::function<void(SamplingParams&)>& change) {
  SamplingParams params;
  change(params);
  const Status status = validate(params, 100);
  return status.ok() ? "accepted" : status.error().detail;
}

TEST(SamplingParams, defaults_are_accepted) {
  EXPECT_EQ(refusal([](SamplingParams&) {}), "accepted");
}

TEST(SamplingParams, a_value_out_of_range_is_refused_with_field_got_and_allowed) {
  EXPECT_EQ(refusal([](auto& p) { p.temperature = -0.5; }), "temperature is -0.5, allowed is 0 to 100");
  EXPECT_EQ(refusal([](auto& p) { p.temperature = NAN; }), "temperature is nan, allowed is 0 to 100");
  EXPECT_EQ(refusal([](auto& p) { p.temperature = INFINITY; }), "temperature is inf, allowed is 0 to 100");
  EXPECT_EQ(refusal([](auto& p) { p.top_p = 0; }), "top_p is 0, allowed is above 0 to 1");
  EXPECT_EQ(refusal([](auto& p) { p.top_p = 7; }), "top_p is 7, allowed is above 0 to 1");
  EXPECT_EQ(refusal([](auto& p) { p.top_k = -1; }), "top_k is -1, allowed is 0 (off) to 2147483647");
  EXPECT_EQ(refusal([](auto& p) { p.min_p = 2; }), "min_p is 2, allowed is 0 to 1");
  EXPECT_EQ(refusal([](auto& p) { p.repetition_penalty = INFINITY; }),
            "repetition_penalty is inf, allowed is above 0 to 10");
  EXPECT_EQ(refusal([](auto& p) { p.presence_penalty = -3; }), "presence_penalty is -3, allowed is -2 to 2");
  EXPECT_EQ(refusal([](auto& p) { p.frequency_penalty = 2.5; }),
            "frequency_penalty is 2.5, allowed is -2 to 2");
  EXPECT_EQ(refusal([](auto& p) { p.logit_bias = {{100, 1}}; }),
            "logit_bias is for id 100, allowed is ids 0 to 99");
  EXPECT_EQ(refusal([](auto& p) { p.logit_bias = {{1, 101}}; }),
            "logit_bias is 101 for id 1, allowed is -100 to 100");
  EXPECT_EQ(refusal([](auto& p) { p.logit_bias = {{7, 1}, {3, 1}, {7, 2}}; }),
            "logit_bias is given twice for id 7, allowed is each id once");
  EXPECT_EQ(refusal([](auto& p) { p.logit_bias.resize(1025); }),
            "logit_bias is 1025 entries, allowed is 0 to 1024");
  EXPECT_EQ(refusal([](auto& p) { p.stop_ids = {-1}; }), "stop_token_ids is id -1, allowed is ids 0 to 99");
  EXPECT_EQ(refusal([](auto& p) { p.stop_ids.resize(65); }),
            "stop_token_ids is 65 ids, the model's own included, allowed is at most 64");
  EXPECT_EQ(refusal([](auto& p) { p.logprobs = 21; }), "top_logprobs is 21, allowed is 0 to 20");
}

TEST(SamplingParams, the_device_form_carries_everything) {
  SamplingParams params;
  params.temperature = 0.5;
  params.seed = 0xFFFFFFFF00000001;
  params.stop_ids = {3, 4};
  params.logit_bias = {{9, -2.5f}};
  params.logprobs = 5;
  const SampleParams device = to_device(params, 3);
  EXPECT_EQ(device.seed, 0xFFFFFFFF00000001);
  EXPECT_EQ(device.choice, 3u);
  EXPECT_EQ(device.temperature, 0.5f);
  EXPECT_EQ(device.stop_count, 2);
  EXPECT_EQ(device.stop_ids[1], 4);
  EXPECT_EQ(device.bias[0].id, 9);
  EXPECT_EQ(device.bias[0].bias, -2.5f);
  EXPECT_EQ(device.logprobs, 5);
}

}  // namespace
}  // namespace inferd
