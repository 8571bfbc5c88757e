// Numbers as people write them: "4k", "1.5GiB", "5m". Pure functions; nullopt when a text is no such number.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace inferd {

// A count of anything: "4096", "4k" (k is 1,024: contexts and batches are powers of two), "1.5k", "2M"
// (1,048,576). Only what comes out whole.
std::optional<int64_t> parse_count(std::string_view text);

// Bytes: "4096", "512MiB", "1.5GiB", "2GB". GiB and GB differ, so a bare "2G" is none.
std::optional<int64_t> parse_bytes(std::string_view text);

// Whole seconds: "30", "30s", "5m", "1.5h".
std::optional<int64_t> parse_seconds(std::string_view text);

// "1", "true", "yes", "on" and their opposites, in any case.
std::optional<bool> parse_switch(std::string_view text);

}  // namespace inferd
