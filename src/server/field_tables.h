// The fields of each POST route, in tables (request_fields.h).
#pragma once

#include "server/request_fields.h"

namespace inferd {

inline constexpr int64_t kMaxChoices = 8;     // n
inline constexpr size_t kMaxStops = 16;       // stop strings
inline constexpr size_t kMaxStopBytes = 256;  // of one
inline constexpr size_t kMaxPrompts = 256;    // of one completions request
inline constexpr size_t kMaxMessages = 2048;
inline constexpr size_t kMaxTools = 128;
inline constexpr size_t kMaxDocuments = 1024;
inline constexpr size_t kMaxSaltBytes = 256;
inline constexpr int64_t kMaxGeneratePrompt = 1000000;  // characters of a /generate prompt

struct RouteFields {
  std::string_view route;  // "POST /v1/completions"
  std::span<const FieldTable> tables;
};

const RouteFields& chat_fields();
const RouteFields& completion_fields();
const RouteFields& generate_fields();
const RouteFields& tokenize_fields();
const RouteFields& detokenize_fields();

// All of them, for docs and tests.
std::span<const RouteFields* const> all_route_fields();

}  // namespace inferd
