#include "hub/zip_entry.h"

#include <zlib.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/arithmetic.h"

namespace inferd {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint64_t kEndSize = 22, kCentralSize = 46, kLocalSize = 30;
constexpr uint32_t kEndSignature = 0x06054b50, kCentralSignature = 0x02014b50, kLocalSignature = 0x04034b50;
constexpr uint64_t kMaxComment = 65535;
constexpr uint32_t kStored = 0, kDeflated = 8;
constexpr uint32_t kEncrypted = 0x0001;                      // general purpose bits
constexpr uint32_t kIn64 = 0xffffffff, kIn64Short = 0xffff;  // "the real value is in a zip64 record"

Error bad(uint64_t offset, std::string detail) {
  return Error{.code = Code::hub_wheel,
               .detail = std::move(detail),
               .where = cat("byte ", offset, " of the zip file")};
}

// Little-endian numbers at a place that the caller has shown to lie inside.
uint32_t u16(Bytes bytes, uint64_t at) {
  return std::to_integer<uint32_t>(bytes[at]) | std::to_integer<uint32_t>(bytes[at + 1]) << 8;
}
uint32_t u32(Bytes bytes, uint64_t at) {
  return u16(bytes, at) | u16(bytes, at + 2) << 16;
}

std::string_view text(Bytes bytes, uint64_t at, uint64_t length) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, length};
}

struct Directory {
  uint64_t begin, end;
  uint32_t entries;
};

// The end record is found from the back: 22 bytes and a comment whose length must reach the end of the file
// exactly.
Result<Directory> find_directory(Bytes archive) {
  const uint64_t size = archive.size();
  if (size < kEndSize) return bad(0, cat("needs at least ", kEndSize, " bytes, has ", size));
  const uint64_t last = size - kEndSize;
  const uint64_t first = last - std::min(last, kMaxComment);
  for (uint64_t at = last + 1; at-- > first;) {
    if (u32(archive, at) != kEndSignature || u16(archive, at + 20) != last - at) continue;
    const uint32_t entries = u16(archive, at + 10), length = u32(archive, at + 12),
                   begin = u32(archive, at + 16);
    if (entries == kIn64Short || length == kIn64 || begin == kIn64) return bad(at, "zip64 is not supported");
    if (u16(archive, at + 4) != 0 || u16(archive, at + 6) != 0 || u16(archive, at + 8) != entries) {
      return bad(at, "archives of several disks are not supported");
    }
    const uint64_t end = uint64_t{begin} + length;
    if (end != at)
      return bad(at, cat("the central directory ends at byte ", end, ", its end record is at ", at));
    return Directory{begin, end, entries};
  }
  return bad(last, "no end of central directory record: not a zip file, or a truncated one");
}

// The local header repeats name and method; it must agree with the directory, for what is extracted is what
// was checked.
Result<ZipEntry> check_local_header(Bytes archive, ZipEntry entry, uint64_t at, uint64_t directory_begin) {
  const auto fixed_end = checked_add(at, kLocalSize);
  if (!fixed_end || *fixed_end > directory_begin) return bad(at, "local header past the file data");
  if (u32(archive, at) != kLocalSignature) return bad(at, "no local header where the directory points");
  if ((u16(archive, at + 6) & kEncrypted) != 0) return bad(at, "encrypted entries are not supported");
  if (u16(archive, at + 8) != (entry.deflated ? kDeflated : kStored)) {
    return bad(at, "local header and directory name different compression methods");
  }
  const uint64_t name_length = u16(archive, at + 26), extra_length = u16(archive, at + 28);
  entry.data_offset = *fixed_end + name_length + extra_length;
  const auto data_end = checked_add(entry.data_offset, entry.compressed_size);
  if (!data_end || *data_end > directory_begin) {
    return bad(at, cat("entry data ends past byte ", directory_begin, ", where the directory begins"));
  }
  if (text(archive, *fixed_end, name_length) != entry.name)
    return bad(at, "local header and directory name different files");
  return entry;
}

}  // namespace

Result<ZipEntry> find_zip_entry(Bytes archive, std::string_view name) {
  INFERD_TRY(const Directory directory, find_directory(archive));
  std::optional<ZipEntry> found;
  uint64_t local_offset = 0;
  uint64_t at = directory.begin;
  for (uint32_t i = 0; i < directory.entries; ++i) {
    if (directory.end - at < kCentralSize) return bad(at, cat("central directory ends inside entry ", i));
    if (u32(archive, at) != kCentralSignature) return bad(at, cat("no central directory entry ", i));
    const uint64_t name_length = u16(archive, at + 28);
    const uint64_t length = kCentralSize + name_length + u16(archive, at + 30) + u16(archive, at + 32);
    if (directory.end - at < length) return bad(at, cat("central directory ends inside entry ", i));
    if (text(archive, at + kCentralSize, name_length) == name) {
      if (found) return bad(at, cat("two entries are named ", printable(name)));
      const uint32_t flags = u16(archive, at + 8), method = u16(archive, at + 10);
      if ((flags & kEncrypted) != 0) return bad(at, "encrypted entries are not supported");
      if (method != kStored && method != kDeflated)
        return bad(at, cat("compression method ", method, " is not supported"));
      const uint32_t compressed_size = u32(archive, at + 20), size = u32(archive, at + 24);
      local_offset = u32(archive, at + 42);
      if (compressed_size == kIn64 || size == kIn64 || local_offset == kIn64)
        return bad(at, "zip64 is not supported");
      if (u16(archive, at + 34) != 0) return bad(at, "archives of several disks are not supported");
      if (method == kStored && compressed_size != size) {
        return bad(at, cat("stored entry with two sizes: ", compressed_size, " and ", size));
      }
      found = ZipEntry{.name = std::string(name),
                       .deflated = method == kDeflated,
                       .crc32 = u32(archive, at + 16),
                       .compressed_size = compressed_size,
                       .size = size};
    }
    at += length;
  }
  if (at != directory.end) return bad(at, cat(directory.end - at, " bytes after the last directory entry"));
  if (!found) return bad(directory.begin, cat("holds no entry ", printable(name, 120)));
  return check_local_header(archive, *std::move(found), local_offset, directory.begin);
}

namespace {

constexpr size_t kPiece = size_t{256} << 10;

// Counts and sums what goes to the sink, so that both ways of reading end in the same two checks.
class Output {
 public:
  Output(const ZipEntry& entry, const ByteSink& sink) : entry_(entry), sink_(sink) {}

  Status write(Bytes piece) {
    if (piece.size() > entry_.size - written_)
      return bad(entry_.data_offset, cat("entry is longer than its stated ", entry_.size, " bytes"));
    written_ += piece.size();
    sum_ = ::crc32(sum_, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(piece.size()));
    return sink_(piece);
  }

  Status finish() const {
    if (written_ != entry_.size)
      return bad(entry_.data_offset, cat("entry has ", written_, " bytes, the directory says ", entry_.size));
    if (sum_ != entry_.crc32)
      return bad(entry_.data_offset, "entry has another CRC-32 than the directory says");
    return {};
  }

 private:
  const ZipEntry& entry_;
  const ByteSink& sink_;
  uint64_t written_ = 0;
  uLong sum_ = ::crc32(0, nullptr, 0);
};

struct Inflater {
  Inflater() { INFERD_CHECK(::inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib refused to start"); }
  ~Inflater() { ::inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream stream{};
};

Status inflate_entry(Bytes data, const ZipEntry& entry, Output& output) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::vector<std::byte> buffer(kPiece);
  size_t taken = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    const size_t given = std::min(data.size() - taken, kPiece);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data.data() + taken));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    state = ::inflate(&stream, Z_NO_FLUSH);
    const size_t used = given - stream.avail_in, made = buffer.size() - stream.avail_out;
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR) {
      return bad(entry.data_offset + taken, "damaged compressed data");
    }
    if (used == 0 && made == 0 && state != Z_STREAM_END)
      return bad(entry.data_offset + taken, "compressed data ends early");
    taken += used;
    INFERD_TRY_STATUS(output.write(Bytes(buffer).first(made)));
  }
  if (taken != data.size())
    return bad(entry.data_offset + taken,
               cat(data.size() - taken, " bytes after the end of the compressed data"));
  return {};
}

}  // namespace

Status read_zip_entry(Bytes archive, const ZipEntry& entry, const ByteSink& sink) {
  INFERD_CHECK(
      entry.data_offset <= archive.size() && entry.compressed_size <= archive.size() - entry.data_offset,
      "an entry of another archive");
  const Bytes data = archive.subspan(entry.data_offset, entry.compressed_size);
  Output output(entry, sink);
  if (entry.deflated) {
    INFERD_TRY_STATUS(inflate_entry(data, entry, output));
  } else {
    for (size_t at = 0; at < data.size(); at += kPiece) {
      INFERD_TRY_STATUS(output.write(data.subspan(at, std::min(kPiece, data.size() - at))));
    }
  }
  return output.finish();
}

}  // namespace inferd
