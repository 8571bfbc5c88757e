#include "formats/gguf_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/arithmetic.h"
#include "base/check.h"

namespace inferd {
namespace {

template <typename T>
void append_to(std::vector<std::byte>& out, T value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_string(std::vector<std::byte>& out, std::string_view text) {
  append_to(out, uint64_t{text.size()});
  const auto bytes = std::as_bytes(std::span(text));
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void pad(std::vector<std::byte>& out, uint64_t alignment) {
  out.resize(*checked_align(out.size(), alignment));
}

Error write_error(const std::string& path, int number) {
  return {.code = number == EACCES || number == EPERM    ? Code::io_permission
                  : number == ENOSPC || number == EDQUOT ? Code::io_disk_full
                                                         : Code::io_write,
          .detail = std::strerror(number),
          .where = path};
}

// A file that is deleted again unless it was closed and renamed.
class PartFile {
 public:
  explicit PartFile(std::string path) : path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;
  ~PartFile() {
    if (fd_ >= 0) {
      ::close(fd_);
      ::unlink(path_.c_str());
    }
  }

  Status write(std::span<const std::byte> bytes) {
    if (fd_ < 0) return write_error(path_, errno);
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return write_error(path_, errno);
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return {};
  }

  Status finish(const std::string& path) {
    if (::fsync(fd_) != 0) return write_error(path_, errno);
    if (::rename(path_.c_str(), path.c_str()) != 0) return write_error(path, errno);
    ::close(std::exchange(fd_, -1));
    return {};
  }

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace

GgufWriter::GgufWriter(uint32_t alignment) : alignment_(alignment) {
  INFERD_CHECK(
      alignment >= kGgufMinAlignment && alignment <= kGgufMaxAlignment && (alignment & (alignment - 1)) == 0,
      "alignment ", alignment);
  if (alignment != kGgufDefaultAlignment) add("general.alignment", alignment);
}

void GgufWriter::append(const void* data, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  keys_.insert(keys_.end(), begin, begin + bytes);
}

void GgufWriter::begin_value(std::string_view key, GgufValueType type) {
  INFERD_CHECK(!key.empty() && key.size() <= kGgufMaxNameBytes, "key of ", key.size(), " bytes");
  INFERD_CHECK(key_names_.emplace(key).second, "the key ", key, " is there already");
  ++key_count_;
  INFERD_CHECK(key_count_ <= kGgufMaxKeys, "too many keys");
  append_string(keys_, key);
  append_to(keys_, static_cast<uint32_t>(type));
}

void GgufWriter::begin_array(std::string_view key, GgufValueType type, size_t count) {
  INFERD_CHECK(count <= kGgufMaxArrayElements, "array of ", count);
  begin_value(key, GgufValueType::array);
  append_to(keys_, static_cast<uint32_t>(type));
  append_to(keys_, uint64_t{count});
}

void GgufWriter::add(std::string_view key, std::string_view value) {
  INFERD_CHECK(value.size() <= kGgufMaxStringBytes, "string of ", value.size(), " bytes");
  begin_value(key, GgufValueType::string);
  append_string(keys_, value);
}

void GgufWriter::add_strings(std::string_view key, std::span<const std::string> values) {
  begin_array(key, GgufValueType::string, values.size());
  for (const std::string& value : values) {
    INFERD_CHECK(value.size() <= kGgufMaxStringBytes, "string of ", value.size(), " bytes");
    append_string(keys_, value);
  }
}

void GgufWriter::add_tensor(std::string_view name, uint32_t ggml_type, std::vector<int64_t> shape,
                            std::span<const std::byte> data) {
  INFERD_CHECK(!name.empty() && name.size() <= kGgufMaxNameBytes, "name of ", name.size(), " bytes");
  INFERD_CHECK(tensor_names_.emplace(name).second, "the tensor ", name, " is there already");
  INFERD_CHECK(tensors_.size() < kGgufMaxTensors, "too many tensors");
  INFERD_CHECK(!shape.empty() && shape.size() <= kGgufMaxDims, name, " has ", shape.size(), " dimensions");
  const std::vector<uint64_t> dims(shape.begin(), shape.end());
  if (const GgmlType* type = find_ggml_type(ggml_type); type != nullptr && type->block_elements != 0) {
    const auto expected = tensor_bytes(*type, dims);
    INFERD_CHECK(expected == static_cast<int64_t>(data.size()), name, " has ", data.size(),
                 " bytes, its shape ", expected.value_or(-1));
  }
  tensors_.push_back({std::string(name), ggml_type, std::move(shape), data});
}

std::vector<std::byte> GgufWriter::head() const {
  std::vector<std::byte> out;
  for (const char c : {'G', 'G', 'U', 'F'}) append_to(out, c);
  append_to(out, uint32_t{3});
  append_to(out, uint64_t{tensors_.size()});
  append_to(out, key_count_);
  out.insert(out.end(), keys_.begin(), keys_.end());
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    append_string(out, tensor.name);
    append_to(out, static_cast<uint32_t>(tensor.shape.size()));
    for (const int64_t dim : tensor.shape) append_to(out, dim);
    append_to(out, tensor.type);
    append_to(out, offset);
    offset = *checked_align(offset + tensor.data.size(), alignment_);
  }
  pad(out, alignment_);
  return out;
}

std::vector<std::byte> GgufWriter::bytes() const {
  std::vector<std::byte> out = head();
  for (const Tensor& tensor : tensors_) {
    out.insert(out.end(), tensor.data.begin(), tensor.data.end());
    pad(out, alignment_);
  }
  return out;
}

Status GgufWriter::write(const std::string& path) const {
  PartFile file(path + ".part");
  INFERD_TRY_STATUS(file.write(head()));
  const std::vector<std::byte> zeros(alignment_);
  for (const Tensor& tensor : tensors_) {
    INFERD_TRY_STATUS(file.write(tensor.data));
    const uint64_t padded = *checked_align(tensor.data.size(), alignment_);
    INFERD_TRY_STATUS(file.write(std::span(zeros).first(padded - tensor.data.size())));
  }
  return file.finish(path);
}

}  // namespace inferd
