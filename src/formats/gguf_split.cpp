// GgufFile::open: one file, or all parts of a split model.
// Source of names and keys: llama.cpp, tools/gguf-split.

#include <algorithm>
#include <numeric>

#include "base/strings.h"
#include "formats/gguf.h"

namespace inferd {
namespace {

// Of NAME-00001-of-00003.gguf: NAME, 1 and 3.
struct PartName {
  std::string_view stem;
  int64_t number = 0;
  int64_t count = 0;
};

constexpr size_t kDigits = 5;

std::optional<int64_t> five_digits(std::string_view text) {
  const auto number = parse_int(text.substr(0, kDigits));
  return number && *number >= 0 ? number : std::nullopt;
}

std::optional<PartName> parse_part_name(std::string_view path) {
  constexpr std::string_view kForm = "-00001-of-00003.gguf";
  if (path.size() <= kForm.size()) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kForm.size());
  const auto number = five_digits(tail.substr(1));
  const auto count = five_digits(tail.substr(10));
  if (!number || !count || tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf")
    return std::nullopt;
  return PartName{path.substr(0, path.size() - kForm.size()), *number, *count};
}

std::string part_path(std::string_view stem, int64_t number, int64_t count) {
  const auto padded = [](int64_t value) {
    const std::string digits = cat(value);
    return std::string(kDigits - digits.size(), '0') + digits;
  };
  return cat(stem, "-", padded(number), "-of-", padded(count), ".gguf");
}

bool same_value(const GgufValue& a, const GgufValue& b) {
  return a.type == b.type && a.element_type == b.element_type && a.count == b.count &&
         std::ranges::equal(a.payload, b.payload);
}

}  // namespace

class GgufJoiner {
 public:
  // Maps and parses one file, whatever its keys say of parts.
  static Result<GgufFile> open_one(const std::string& path) {
    INFERD_TRY(MappedFile mapping, MappedFile::open(path));
    INFERD_TRY(GgufFile file, GgufFile::parse(mapping.bytes(), path));
    file.mapping_ = std::move(mapping);  // the mapped bytes stay where they are
    return file;
  }

  // All parts of the model that `given`, opened at `path`, is a part of. Requires split.count > 1.
  static Result<GgufFile> join(const GgufFile& given, const std::string& path) {
    INFERD_TRY(const Keys keys, read_keys(given));
    const auto name = parse_part_name(path);
    if (!name) {
      return error(path, "name",
                   cat("it is part ", keys.number + 1, " of ", keys.count, ", so its name must end in ",
                       part_path("", keys.number + 1, keys.count)));
    }
    if (name->number != keys.number + 1 || name->count != keys.count) {
      return error(path, "name",
                   cat("by its name it is part ", name->number, " of ", name->count, ", by its keys part ",
                       keys.number + 1, " of ", keys.count));
    }
    std::optional<GgufFile> whole;
    for (int64_t number = 1; number <= keys.count; ++number) {
      const std::string part = part_path(name->stem, number, keys.count);
      Result<GgufFile> opened = open_one(part);
      if (!opened.ok() && opened.error().code == Code::io_not_found)
        return error(part, "file", cat("part ", number, " of ", keys.count, " is missing"));
      if (!opened.ok()) return std::move(opened).error();
      INFERD_TRY_STATUS(check_keys(*opened, {keys.count, number - 1, keys.tensors}));
      if (!whole) {
        whole = std::move(opened).value();
      } else {
        INFERD_TRY_STATUS(add(*whole, std::move(opened).value()));
      }
    }
    if (std::ssize(whole->tensors_) != keys.tensors) {
      return error(whole->name_, "key split.tensors.count",
                   cat("the parts have ", whole->tensors_.size(), " tensors together, not ", keys.tensors));
    }
    INFERD_TRY_STATUS(index_tensors(*whole));
    return std::move(*whole);
  }

 private:
  struct Keys {
    int64_t count;
    int64_t number;   // from 0
    int64_t tensors;  // of all parts
  };

  static Error error(const std::string& path, std::string_view place, std::string detail) {
    return {.code = Code::gguf_split, .detail = std::move(detail), .where = cat(path, ", ", place)};
  }

  static Result<Keys> read_keys(const GgufFile& file) {
    Keys keys{};
    INFERD_TRY(keys.count, file.integer("split.count"));
    INFERD_TRY(keys.number, file.integer("split.no"));
    INFERD_TRY(keys.tensors, file.integer("split.tensors.count"));
    if (keys.count < 2 || keys.count > kGgufMaxParts) {
      return error(file.name(), "key split.count",
                   cat("it is ", keys.count, ", 2 to ", with_commas(kGgufMaxParts), " allowed"));
    }
    if (keys.number < 0 || keys.number >= keys.count) {
      return error(file.name(), "key split.no",
                   cat("it is ", keys.number, ", 0 to ", keys.count - 1, " allowed"));
    }
    if (keys.tensors < 0 || keys.tensors > static_cast<int64_t>(kGgufMaxTensors)) {
      return error(file.name(), "key split.tensors.count",
                   cat("it is ", keys.tensors, ", 0 to ", with_commas(static_cast<int64_t>(kGgufMaxTensors)),
                       " allowed"));
    }
    return keys;
  }

  static Status check_keys(const GgufFile& part, const Keys& expected) {
    INFERD_TRY(const Keys keys, read_keys(part));
    const auto check = [&](std::string_view key, int64_t got, int64_t wanted) -> Status {
      if (got == wanted) return {};
      return error(part.name(), cat("key ", key), cat("it is ", got, ", ", wanted, " expected"));
    };
    INFERD_TRY_STATUS(check("split.count", keys.count, expected.count));
    INFERD_TRY_STATUS(check("split.no", keys.number, expected.number));
    return check("split.tensors.count", keys.tensors, expected.tensors);
  }

  static Status add(GgufFile& whole, GgufFile part) {
    for (const GgufValue& value : part.values_) {
      if (value.key.starts_with("split.")) continue;
      const GgufValue* first = whole.find(value.key);
      if (first != nullptr && same_value(*first, value)) continue;
      return error(part.name_, cat("byte ", value.offset, ", key ", printable(value.key)),
                   first == nullptr ? cat("the first part lacks this key: it is of another model")
                                    : cat("the first part has another value: it is of another model"));
    }
    const auto number = static_cast<int32_t>(whole.parts());
    for (GgufTensor& tensor : part.tensors_) {
      tensor.part = number;
      whole.tensors_.push_back(tensor);
    }
    whole.other_parts_.push_back(std::move(*part.mapping_));
    return {};
  }

  static Status index_tensors(GgufFile& whole) {
    const auto& tensors = whole.tensors_;
    whole.tensors_by_name_.resize(tensors.size());
    std::iota(whole.tensors_by_name_.begin(), whole.tensors_by_name_.end(), uint32_t{0});
    std::sort(whole.tensors_by_name_.begin(), whole.tensors_by_name_.end(), [&](uint32_t a, uint32_t b) {
      return tensors[a].name != tensors[b].name ? tensors[a].name < tensors[b].name : a < b;
    });
    for (size_t i = 1; i < tensors.size(); ++i) {
      const GgufTensor& first = tensors[whole.tensors_by_name_[i - 1]];
      const GgufTensor& second = tensors[whole.tensors_by_name_[i]];
      if (first.name != second.name) continue;
      return error(whole.name_of_part(second.part),
                   cat("byte ", second.entry_offset, ", tensor ", printable(second.name)),
                   cat("it is in parts ", first.part + 1, " and ", second.part + 1));
    }
    return {};
  }
};

Result<GgufFile> GgufFile::open(const std::string& path) {
  INFERD_TRY(GgufFile file, GgufJoiner::open_one(path));
  INFERD_TRY(const int64_t count, file.integer("split.count", 1));
  if (count == 0 || count == 1) return file;  // 0: parts that were merged again
  return GgufJoiner::join(file, path);
}

}  // namespace inferd
