// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/vector_files.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace kvtide::conformance {

namespace {

namespace fs = std::filesystem;

error problem(const std::string& path, const std::string& what) {
  return {ec::invalid_argument, path + ": " + what};
}

/// What a search does with an entry that is no directory of its own.
enum class entry_kind { vector, linked_directory, unreadable, foreign };

entry_kind kind_of(const fs::directory_entry& entry) {
  auto ignored = std::error_code{};
  const auto target = entry.status(ignored);
  if (fs::is_directory(target))
    return entry.is_symlink(ignored) ? entry_kind::linked_directory
                                     : entry_kind::foreign;
  if (entry.path().extension() != ".jsonl")
    return entry_kind::foreign;
  // Nowhere, or in a circle: whoever opens it learns why.
  const auto usable = fs::is_regular_file(target) || !fs::exists(target);
  return usable ? entry_kind::vector : entry_kind::unreadable;
}

using listener = std::function<void(const std::string&)>;

result<std::vector<std::string>> files_below(const std::string& path,
                                             const listener& skipped) {
  auto files = std::vector<std::string>{};
  auto code = std::error_code{};
  auto pos = fs::recursive_directory_iterator{path, code};
  for (; !code && pos != fs::recursive_directory_iterator{};
       pos.increment(code)) {
    const auto name = pos->path().string();
    switch (kind_of(*pos)) {
      case entry_kind::vector:
        files.push_back(name);
        break;
      case entry_kind::linked_directory:
        skipped(name + ": skipped, a link to a directory");
        break;
      case entry_kind::unreadable:
        skipped(name + ": skipped, not a file");
        break;
      case entry_kind::foreign:
        break;
    }
  }
  if (code)
    return problem(path, "cannot be searched: " + code.message());
  if (files.empty())
    return problem(path, "has no *.jsonl file in it");
  std::sort(files.begin(), files.end());
  return files;
}

} // namespace

result<std::vector<std::string>>
find_vector_files(const std::vector<std::string>& paths,
                  const listener& skipped) {
  auto files = std::vector<std::string>{};
  for (const auto& path : paths) {
    auto code = std::error_code{};
    const auto status = fs::status(path, code);
    if (status.type() == fs::file_type::not_found)
      return problem(path, "does not exist");
    if (fs::is_regular_file(status)) {
      files.push_back(path);
    } else if (fs::is_directory(status)) {
      auto below = files_below(path, skipped);
      if (!below)
        return below.failure();
      files.insert(files.end(), below.value().begin(), below.value().end());
    } else {
      return problem(path, code ? "cannot be read: " + code.message()
                                : "is neither a file nor a directory");
    }
  }
  return files;
}

} // namespace kvtide::conformance
