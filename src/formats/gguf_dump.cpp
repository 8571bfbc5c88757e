#include "formats/gguf_dump.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <vector>

#include "base/strings.h"

namespace inferd {
namespace {

constexpr int64_t kWholeArray = 64;  // longer arrays are shown by their ends
constexpr int64_t kFirst = 4;
constexpr int64_t kLast = 2;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Element i of numbers or booleans, as JSON or as text.
Json scalar_json(const GgufValue& value, int64_t i) {
  switch (value.element_type) {
    case GgufValueType::boolean:
      return value.payload[static_cast<size_t>(i)] != std::byte{0};
    case GgufValueType::float32:
    case GgufValueType::float64:
      return GgufReals(value)[i];
    case GgufValueType::uint64: {
      const int64_t bits = GgufIntegers(value)[i];
      return bits >= 0 ? Json(bits) : Json(static_cast<double>(static_cast<uint64_t>(bits)));
    }
    default:
      return GgufIntegers(value)[i];
  }
}

std::string scalar_text(const GgufValue& value, int64_t i) {
  switch (value.element_type) {
    case GgufValueType::boolean:
      return value.payload[static_cast<size_t>(i)] != std::byte{0} ? "true" : "false";
    case GgufValueType::float32: {  // the shortest text of the float, not of the double that equals it
      std::array<char, 40> digits;
      const auto number = static_cast<float>(GgufReals(value)[i]);
      return {digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr};
    }
    case GgufValueType::float64:
      return cat(GgufReals(value)[i]);
    case GgufValueType::uint64:
      return cat(static_cast<uint64_t>(GgufIntegers(value)[i]));
    default:
      return cat(GgufIntegers(value)[i]);
  }
}

// Calls show(i, string or nothing) for the elements of an array in [0, first) and [count - last, count).
template <typename Scalar, typename String>
void visit_ends(const GgufValue& array, int64_t first, int64_t last, Scalar&& on_scalar, String&& on_string) {
  const auto wanted = [&](int64_t i) { return i < first || i >= array.count - last; };
  if (array.element_type == GgufValueType::string) {
    int64_t i = 0;
    for (const std::string_view text : GgufStrings(array)) {
      if (wanted(i)) on_string(i, text);
      ++i;
    }
    return;
  }
  for (int64_t i = 0; i < array.count; i = i == first - 1 ? std::max(first, array.count - last) : i + 1) {
    on_scalar(i);
  }
}

std::string value_text(const GgufValue& value) {
  if (value.type == GgufValueType::string) return printable(as_text(value.payload));
  if (value.type != GgufValueType::array) return scalar_text(value, 0);
  std::string out = "[";
  const auto add = [&](int64_t i, const std::string& text) {
    if (i > 0) out += i == value.count - kLast && i > kFirst ? ", …, " : ", ";
    out += text;
  };
  visit_ends(
      value, kFirst, kLast, [&](int64_t i) { add(i, scalar_text(value, i)); },
      [&](int64_t i, std::string_view text) { add(i, printable(text, 24)); });
  return out + "]";
}

Json::Object value_json(const GgufValue& value) {
  Json::Object out;
  out.emplace_back("key", value.key);
  out.emplace_back("type", gguf_value_type_name(value.type));
  if (value.type == GgufValueType::string) {
    out.emplace_back("value", as_text(value.payload));
  } else if (value.type != GgufValueType::array) {
    out.emplace_back("value", scalar_json(value, 0));
  } else {
    out.emplace_back("element_type", gguf_value_type_name(value.element_type));
    out.emplace_back("length", value.count);
    const bool whole = value.count <= kWholeArray;
    Json::Array first;
    Json::Array last;
    const auto add = [&](int64_t i, Json element) {
      (whole || i < kFirst ? first : last).push_back(std::move(element));
    };
    visit_ends(
        value, whole ? value.count : kFirst, whole ? 0 : kLast,
        [&](int64_t i) { add(i, scalar_json(value, i)); },
        [&](int64_t i, std::string_view text) { add(i, Json(text)); });
    out.emplace_back(whole ? "value" : "first", std::move(first));
    if (!whole) out.emplace_back("last", std::move(last));
  }
  return out;
}

struct Total {
  uint32_t type = 0;
  int64_t tensors = 0;
  int64_t bytes = 0;
};

std::vector<Total> totals_by_type(const GgufFile& file) {
  std::map<uint32_t, Total> by_type;
  for (const GgufTensor& tensor : file.tensors()) {
    Total& total = by_type[tensor.type];
    total.type = tensor.type;
    total.tensors += 1;
    total.bytes += static_cast<int64_t>(tensor.data.size());
  }
  std::vector<Total> totals;
  for (const auto& [type, total] : by_type) totals.push_back(total);
  std::sort(totals.begin(), totals.end(), [](const Total& a, const Total& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.type < b.type;
  });
  return totals;
}

// Tensors do not overlap, but those of a type without a known size may claim any number of elements: no sum
// past 2^63.
int64_t sum_of_elements(const GgufFile& file) {
  int64_t sum = 0;
  for (const GgufTensor& tensor : file.tensors()) {
    if (__builtin_add_overflow(sum, tensor.elements, &sum)) return INT64_MAX;
  }
  return sum;
}

// Left-aligned columns: every cell but the last padded to the widest of its column, up to a limit.
class Table {
 public:
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  void append_to(std::string& out) const {
    static constexpr size_t kWidest = 48;
    std::vector<size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (size_t i = 0; i < row.size(); ++i)
        widths[i] = std::min(kWidest, std::max(widths[i], row[i].size()));
    }
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i) {
        out += row[i];
        if (i + 1 < row.size())
          out.append(row[i].size() < widths[i] ? widths[i] - row[i].size() + 2 : 2, ' ');
      }
      out += '\n';
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Without the quotes that printable() adds.
std::string safe_name(std::string_view name) {
  const std::string quoted = printable(name, 120);
  return name.size() <= 120 ? quoted.substr(1, quoted.size() - 2) : quoted;
}

std::string shape_text(const GgufTensor& tensor) {
  std::string out;
  for (int32_t i = 0; i < tensor.dims; ++i)
    out += cat(i == 0 ? "" : " x ", tensor.shape[static_cast<size_t>(i)]);
  return out;
}

std::string type_text(const GgufTensor& tensor) {
  return cat(ggml_type_name(tensor.type), ggml_compute_type(tensor.type) ? "" : " (not supported)");
}

std::string bytes_text(const GgufTensor& tensor) {
  return tensor.data.empty() ? "?" : with_commas(static_cast<int64_t>(tensor.data.size()));
}

}  // namespace

std::string gguf_dump_text(const GgufFile& file) {
  std::string out =
      cat(file.name(), ": GGUF version ", file.version(), ", ",
          file.parts() > 1 ? cat(file.parts(), " parts, ") : "", with_commas(file.total_bytes()), " bytes, ",
          file.values().size(), " keys, ", file.tensors().size(), " tensors, ",
          with_commas(sum_of_elements(file)), " elements, alignment ", file.alignment(), ", data at ",
          with_commas(file.data_offset()), "\n\n");
  Table keys;
  for (const GgufValue& value : file.values())
    keys.add({safe_name(value.key), value.type_name(), value_text(value)});
  keys.append_to(out);
  out += "\n";
  Table tensors;
  tensors.add({"tensor", "type", "shape", "offset", "bytes"});
  for (const GgufTensor& tensor : file.tensors()) {
    tensors.add({safe_name(tensor.name), type_text(tensor), shape_text(tensor), with_commas(tensor.offset),
                 bytes_text(tensor)});
  }
  tensors.append_to(out);
  out += "\n";
  Table totals;
  totals.add({"type", "tensors", "bytes"});
  for (const Total& total : totals_by_type(file)) {
    totals.add({ggml_type_name(total.type), cat(total.tensors), with_commas(total.bytes)});
  }
  totals.append_to(out);
  return out;
}

Json gguf_dump_json(const GgufFile& file) {
  Json::Array keys;
  for (const GgufValue& value : file.values()) keys.emplace_back(value_json(value));
  Json::Array tensors;
  for (const GgufTensor& tensor : file.tensors()) {
    Json::Array shape;
    for (int32_t i = 0; i < tensor.dims; ++i) shape.emplace_back(tensor.shape[static_cast<size_t>(i)]);
    tensors.emplace_back(Json::Object{
        {"name", tensor.name},
        {"type", ggml_type_name(tensor.type)},
        {"supported", ggml_compute_type(tensor.type).has_value()},
        {"shape", std::move(shape)},
        {"offset", tensor.offset},
        {"bytes", tensor.data.empty() ? Json() : Json(static_cast<int64_t>(tensor.data.size()))},
    });
    if (file.parts() > 1) tensors.back().as_object().emplace_back("part", int64_t{tensor.part} + 1);
  }
  Json::Array totals;
  for (const Total& total : totals_by_type(file)) {
    totals.emplace_back(Json::Object{
        {"type", ggml_type_name(total.type)}, {"tensors", total.tensors}, {"bytes", total.bytes}});
  }
  Json::Object dump{
      {"file", file.name()},
      {"version", static_cast<int64_t>(file.version())},
      {"bytes", file.total_bytes()},
      {"alignment", file.alignment()},
      {"data_offset", file.data_offset()},
      {"keys", std::move(keys)},
      {"tensors", std::move(tensors)},
      {"elements", sum_of_elements(file)},
      {"totals", std::move(totals)},
  };
  if (file.parts() > 1) dump.emplace_back("parts", file.parts());
  return dump;
}

}  // namespace inferd
