#include "support/golden.h"

#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace inferd::test {
namespace {

template <typename T>
T read_at(const std::string& bytes, size_t offset) {
  INFERD_CHECK(offset + sizeof(T) <= bytes.size(), "file too short");
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

std::string golden_dir() {
  if (const char* folder = std::getenv("INFERD_GOLDEN")) return folder;
  return INFERD_SOURCE_DIR "/../shared/golden";
}

std::string tiny_dir(const std::string& family) {
  const std::string own = cat(INFERD_SOURCE_DIR "/tests/golden/tiny/", family);
  return std::filesystem::exists(own) ? own : cat(golden_dir(), "/tiny/", family);
}

std::string model_dir() {
  if (const char* folder = std::getenv("INFERD_TEST_MODELS")) return folder;
  if (const char* data = std::getenv("XDG_DATA_HOME")) return cat(data, "/inferd/models");
  const char* home = std::getenv("HOME");
  INFERD_CHECK(home != nullptr, "neither INFERD_TEST_MODELS nor XDG_DATA_HOME nor HOME is set");
  return cat(home, "/.local/share/inferd/models");
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  INFERD_CHECK(file, "cannot open ", path);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::string gunzip(const std::string& compressed) {
  z_stream stream{};
  INFERD_CHECK(inflateInit2(&stream, 15 + 16) == Z_OK, "zlib");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::string out;
  std::vector<char> chunk(1 << 16);
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(chunk.data(), chunk.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  INFERD_CHECK(status == Z_STREAM_END, "bad gzip data");
  return out;
}

Json read_json(const std::string& path) {
  std::string text = read_file(path);
  if (path.ends_with(".gz")) text = gunzip(text);
  Result<Json> parsed = parse_json(text, {.depth = 64, .values = INT64_MAX});
  INFERD_CHECK(parsed.ok(), path, ": ", parsed.error().message());
  return std::move(parsed).value();
}

std::vector<Json> read_json_lines(const std::string& path) {
  std::string text = read_file(path);
  if (path.ends_with(".gz")) text = gunzip(text);
  std::vector<Json> lines;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    Result<Json> parsed = parse_json(line);
    INFERD_CHECK(parsed.ok(), path, " line ", lines.size() + 1, ": ", parsed.error().message());
    lines.push_back(std::move(parsed).value());
  }
  return lines;
}

int64_t NpyArray::elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

// Format: numpy.lib.format, versions 1 and 2.
NpyArray parse_npy(const std::string& file) {
  INFERD_CHECK(file.starts_with("\x93NUMPY"), "not an .npy file");
  const bool v1 = file.at(6) == 1;
  const size_t header_bytes = v1 ? read_at<uint16_t>(file, 8) : read_at<uint32_t>(file, 8);
  const size_t header_at = v1 ? 10 : 12;
  const std::string header = file.substr(header_at, header_bytes);
  const auto field = [&](const std::string& name, char open, char close) {
    const size_t key = header.find("'" + name + "'");
    INFERD_CHECK(key != std::string::npos, ".npy header lacks ", name);
    const size_t begin = header.find(open, key + name.size() + 2) + 1;
    return header.substr(begin, header.find(close, begin) - begin);
  };
  NpyArray array;
  array.dtype = field("descr", '\'', '\'');
  const std::string shape = field("shape", '(', ')');
  for (const std::string_view part : split(shape, ',')) {
    if (!trim(part).empty()) array.shape.push_back(parse_int(trim(part)).value());
  }
  array.bytes = file.substr(header_at + header_bytes);
  return array;
}

NpyArray read_npy(const std::string& path) {
  return parse_npy(read_file(path));
}

std::map<std::string, NpyArray> read_npz(const std::string& path) {
  const std::string zip = read_file(path);
  std::map<std::string, NpyArray> arrays;
  // The central directory has the sizes; its end record is the last 22 bytes of a file without comment.
  size_t at = read_at<uint32_t>(zip, zip.size() - 6);
  for (int left = read_at<uint16_t>(zip, zip.size() - 12); left > 0; --left) {
    INFERD_CHECK(read_at<uint32_t>(zip, at) == 0x02014b50, path, ": bad central directory");
    INFERD_CHECK(read_at<uint16_t>(zip, at + 10) == 0, path, ": compressed entry");
    const size_t bytes = read_at<uint32_t>(zip, at + 20);
    const size_t name_bytes = read_at<uint16_t>(zip, at + 28);
    const size_t local = read_at<uint32_t>(zip, at + 42);
    std::string name = zip.substr(at + 46, name_bytes);
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    const size_t data = local + 30 + read_at<uint16_t>(zip, local + 26) + read_at<uint16_t>(zip, local + 28);
    arrays[name] = parse_npy(zip.substr(data, bytes));
    at += 46 + name_bytes + read_at<uint16_t>(zip, at + 30) + read_at<uint16_t>(zip, at + 32);
  }
  return arrays;
}

}  // namespace inferd::test
