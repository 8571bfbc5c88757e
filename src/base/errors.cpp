#include "base/errors.h"

#include <array>

#include "base/check.h"

namespace inferd {
namespace {

constexpr auto kTable = std::to_array<ErrorRow>({
#define INFERD_ERROR_ROW(name, id, http, exit_code, text, fix) \
  ErrorRow{Code::name, #name, id, http, exit_code, text, fix},
    INFERD_ERROR_TABLE(INFERD_ERROR_ROW)
#undef INFERD_ERROR_ROW
});

}  // namespace

std::span<const ErrorRow> error_table() {
  return kTable;
}

const ErrorRow& error_row(Code code) {
  const auto index = static_cast<size_t>(code);
  INFERD_CHECK(index < kTable.size(), "error code ", index);
  return kTable[index];
}

std::string Error::message() const {
  const ErrorRow& row = error_row(code);
  return detail.empty() ? std::string(row.text) : cat(row.text, ": ", detail);
}

std::string Error::terminal_text() const {
  const ErrorRow& row = error_row(code);
  std::string text = cat("error[", row.id, "]: ", message(), "\n");
  if (!where.empty()) text += cat("  at ", where, "\n");
  text += cat("  fix: ", fix.empty() ? row.fix : std::string_view(fix), "\n");
  return text;
}

}  // namespace inferd
