#include "hub/zip_entry.h"

#include <gtest/gtest.h>

#include "hub/test_wheel.h"

namespace inferd {
namespace {

using testing_hub::make_zip;

// Written by CPython 3.11's zipfile: pkg/a.txt stored, pkg/b.bin and pkg/empty deflated.
constexpr std::string_view kPythonZip =
    "504b03041400000000000000215c91eed3890c0000000c00000009000000706b672f612e74787473746f726564207465"
    "78740a504b03041400000008000000215c7ee35823090000006801000009000000706b672f622e62696e4b4c4a4e1c45"
    "b44700504b03041400000008000000215c00000000020000000000000009000000706b672f656d7074790300504b0102"
    "14031400000000000000215c91eed3890c0000000c000000090000000000000000000000800100000000706b672f612e"
    "747874504b010214031400000008000000215c7ee3582309000000680100000900000000000000000000008001330000"
    "00706b672f622e62696e504b010214031400000008000000215c00000000020000000000000009000000000000000000"
    "0000800163000000706b672f656d707479504b05060000000003000300a50000008c0000000000";
constexpr size_t kDirectory = 0x8c, kEnd = 0x8c + 0xa5, kSecondLocal = 0x33,
                 kSecondCentral = kDirectory + 46 + 9;

std::string python_zip() {
  std::string bytes;
  for (size_t i = 0; i < kPythonZip.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(kPythonZip.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

Result<std::string> entry_text(const std::string& zip, std::string_view name) {
  const auto bytes = std::as_bytes(std::span(zip));
  INFERD_TRY(const ZipEntry entry, find_zip_entry(bytes, name));
  std::string text;
  INFERD_TRY_STATUS(read_zip_entry(bytes, entry, [&](std::span<const std::byte> piece) -> Status {
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return {};
  }));
  return text;
}

TEST(ZipEntry, reads_what_python_wrote) {
  const std::string zip = python_zip();
  EXPECT_EQ(entry_text(zip, "pkg/a.txt").value(), "stored text\n");
  EXPECT_EQ(entry_text(zip, "pkg/b.bin").value(), repeated("abcabcabc", 40));
  EXPECT_EQ(entry_text(zip, "pkg/empty").value(), "");
}

TEST(ZipEntry, an_archive_comment_is_no_obstacle) {
  std::string zip = python_zip();
  zip[kEnd + 20] = 5;
  EXPECT_EQ(entry_text(zip + "PK\5\6!", "pkg/a.txt").value(), "stored text\n");
}

TEST(ZipEntry, large_entries_arrive_whole_in_small_pieces) {
  std::string content;
  for (int64_t i = 0; content.size() < 3000000; ++i) content += std::to_string(i * 7919 % 100003);
  for (const bool deflate : {true, false}) {
    const std::string zip = make_zip({{"first", "x"}, {"big", content, deflate}});
    const auto bytes = std::as_bytes(std::span(zip));
    const ZipEntry entry = find_zip_entry(bytes, "big").value();
    std::string text;
    size_t largest = 0;
    ASSERT_TRUE(read_zip_entry(bytes, entry, [&](std::span<const std::byte> piece) -> Status {
                  text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
                  largest = std::max(largest, piece.size());
                  return {};
                }).ok());
    EXPECT_TRUE(text == content);
    EXPECT_LE(largest, size_t{256} << 10);
  }
}

TEST(ZipEntry, an_error_of_the_sink_stops_the_reading) {
  const std::string zip = make_zip({{"big", std::string(1000000, 'a')}});
  const auto bytes = std::as_bytes(std::span(zip));
  int calls = 0;
  const Status status =
      read_zip_entry(bytes, find_zip_entry(bytes, "big").value(), [&](std::span<const std::byte>) -> Status {
        ++calls;
        return Error{.code = Code::io_disk_full};
      });
  EXPECT_EQ(status.error().code, Code::io_disk_full);
  EXPECT_EQ(calls, 1);
}

struct Hostile {
  const char* name;
  size_t at;              // where in the Python archive
  std::string bytes;      // what stands there instead
  const char* complaint;  // part of the error text
};

TEST(ZipEntry, damaged_and_hostile_archives_are_refused_with_the_reason) {
  const std::string ff4 = "\xff\xff\xff\xff";
  const std::vector<Hostile> table = {
      {"no end record", kEnd, "QK", "no end of central directory"},
      {"directory length zip64", kEnd + 12, ff4, "zip64"},
      {"directory begin zip64", kEnd + 16, ff4, "zip64"},
      {"entry count zip64", kEnd + 8, ff4, "zip64"},
      {"second disk", kEnd + 4, {"\x01\0", 2}, "several disks"},
      {"counts differ", kEnd + 8, {"\x02\0", 2}, "several disks"},
      {"directory begins past the file", kEnd + 16, "\xf0\xff\xff\x7f",
       "central directory ends at byte 2147483797"},
      {"directory longer than the file", kEnd + 12, "\xfe\xff\xff\xff", "central directory ends"},
      {"more entries than there are", kEnd + 8, {"\x04\0\x04\0", 4}, "ends inside entry 3"},
      {"fewer entries than there are", kEnd + 8, {"\x02\0\x02\0", 4}, "after the last directory entry"},
      {"central signature", kSecondCentral, "pk", "no central directory entry 1"},
      {"central name past the end", kSecondCentral + 28, "\xff\xff", "ends inside entry 1"},
      {"central extra past the end", kSecondCentral + 30, "\xff\xff", "ends inside entry 1"},
      {"central comment past the end", kSecondCentral + 32, "\xff\xff", "ends inside entry 1"},
      {"another name", kSecondCentral + 46, "pkg/c.bin", "holds no entry \"pkg/b.bin\""},
      {"two of the name", kDirectory + 46, "pkg/b.bin", "two entries"},
      {"encrypted in the directory", kSecondCentral + 8, {"\x01\0", 2}, "encrypted"},
      {"encrypted in the local header", kSecondLocal + 6, {"\x01\0", 2}, "encrypted"},
      {"method bzip2", kSecondCentral + 10, {"\x0c\0", 2}, "compression method 12"},
      {"method differs", kSecondLocal + 8, {"\0\0", 2}, "different compression methods"},
      {"compressed size zip64", kSecondCentral + 20, ff4, "zip64"},
      {"size zip64", kSecondCentral + 24, ff4, "zip64"},
      {"offset zip64", kSecondCentral + 42, ff4, "zip64"},
      {"disk of the entry", kSecondCentral + 34, {"\x07\0", 2}, "several disks"},
      {"stored with two sizes", kSecondCentral + 10, {"\0\0", 2}, "two sizes"},
      {"local header past the data", kSecondCentral + 42, "\xfe\xff\xff\xff", "local header past"},
      {"local header in the directory", kSecondCentral + 42, {"\x8b\0\0\0", 4}, "local header past"},
      {"local header elsewhere", kSecondCentral + 42, {"\x34\0\0\0", 4}, "no local header"},
      {"local header of another entry",
       kSecondCentral + 42,
       {"\0\0\0\0", 4},
       "different compression methods"},
      {"local header names another file", kSecondLocal + 30, "pkg/c", "different files"},
      {"local name too long", kSecondLocal + 26, "\xff\xff", "ends past"},
      {"local extra too long", kSecondLocal + 28, "\xff\xff", "ends past"},
      {"data runs into the directory", kSecondCentral + 20, {"\x80\0\0\0", 4}, "ends past"},
      {"data cut short", kSecondCentral + 20, {"\x05\0\0\0", 4}, "ends early"},
      {"data goes on", kSecondCentral + 20, {"\x0a\0\0\0", 4}, "after the end of the compressed data"},
      {"not deflate", kSecondLocal + 39, "\xff", "damaged compressed data"},
      {"longer than stated", kSecondCentral + 24, {"\x67\x01\0\0", 4}, "longer than its stated 359"},
      {"shorter than stated",
       kSecondCentral + 24,
       {"\x69\x01\0\0", 4},
       "has 360 bytes, the directory says 361"},
      {"a claim of 4 GiB", kSecondCentral + 24, "\xfe\xff\xff\xff", "the directory says 4294967294"},
      {"CRC", kSecondCentral + 16, "\x7f", "CRC-32"},
  };
  for (const Hostile& hostile : table) {
    std::string zip = python_zip();
    zip.replace(hostile.at, hostile.bytes.size(), hostile.bytes);
    const auto text = entry_text(zip, "pkg/b.bin");
    ASSERT_FALSE(text.ok()) << hostile.name;
    EXPECT_EQ(text.error().code, Code::hub_wheel) << hostile.name;
    EXPECT_NE(text.error().detail.find(hostile.complaint), std::string::npos)
        << hostile.name << ": " << text.error().detail;
    EXPECT_NE(text.error().where.find("of the zip file"), std::string::npos) << hostile.name;
  }
}

TEST(ZipEntry, every_truncation_is_refused) {
  const std::string zip = python_zip();
  for (size_t length = 0; length < zip.size(); ++length) {
    EXPECT_FALSE(entry_text(zip.substr(0, length), "pkg/b.bin").ok()) << length << " bytes";
  }
}

TEST(ZipEntry, a_flipped_bit_is_refused_or_changes_nothing) {
  const std::string whole = python_zip();
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string zip = whole;
    zip[bit / 8] = static_cast<char>(zip[bit / 8] ^ 1 << bit % 8);
    const auto text = entry_text(zip, "pkg/b.bin");
    if (text.ok()) {
      EXPECT_EQ(*text, repeated("abcabcabc", 40)) << "bit " << bit;
    }
  }
}

}  // namespace
}  // namespace inferd
