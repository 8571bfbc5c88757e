// Reads one entry out of a zip file that somebody else made (a Python wheel). Format: PKWARE APPNOTE 6.3.10,
// sections 4.3.7 (local header), 4.3.12 (central directory), 4.3.16 (its end). Stored and deflated entries;
// no zip64, no encryption, one disk. Every offset and length is checked before it is used, and memory use
// does not depend on the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace inferd {

struct ZipEntry {
  std::string name;
  bool deflated = false;         // else stored
  uint32_t crc32 = 0;            // of the bytes that come out
  uint64_t compressed_size = 0;  // bytes in the archive
  uint64_t size = 0;             // bytes that come out, as the directory claims
  uint64_t data_offset =
      0;  // of the first compressed byte; data_offset + compressed_size lies inside the archive
};

// The entry of exactly that name. E-HUB-003, naming the place, when the archive is damaged, uses what is not
// supported, or holds no or several such entries.
Result<ZipEntry> find_zip_entry(std::span<const std::byte> archive, std::string_view name);

// Gives the entry's bytes to `sink` in pieces of at most 256 KiB, in order; stops at the first error of the
// sink. E-HUB-003 when they do not have the size and CRC-32 that the entry states. The sink never gets more
// than entry.size bytes in all, so a caller bounds the output by checking entry.size first.
using ByteSink = std::function<Status(std::span<const std::byte>)>;
Status read_zip_entry(std::span<const std::byte> archive, const ZipEntry& entry, const ByteSink& sink);

}  // namespace inferd
