// What was typed before, oldest first, kept in a file of this user's (mode 600) that several programs may
// append to at once. An entry is a line of the file; line feeds and backslashes in it are escaped.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace inferd {

class History {
 public:
  // No file: nothing is kept beyond this program.
  History() = default;
  // `limit`: entries that are kept, at most.
  explicit History(std::string path, size_t limit = 1000) : path_(std::move(path)), limit_(limit) {}

  // Reads the file; its folders are made when they are missing. A file that has grown to more than twice the
  // limit is written anew, with the newest entries. After an error nothing is written to the file any more.
  Status load();
  // Not for an empty text, nor for the same as the last one; more than 64 KiB are not written to the file.
  Status add(const std::string& entry);

  const std::vector<std::string>& entries() const { return entries_; }

 private:
  std::string path_;
  size_t limit_ = 1000;
  std::vector<std::string> entries_;
};

}  // namespace inferd
