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

result<std::vector<std::string>> files_below(const std::string& path) {
  auto files = std::vector<std::string>{};
  auto code = std::error_code{};
  auto pos = fs::recursive_directory_iterator{path, code};
  for (; !code && pos != fs::recursive_directory_iterator{};
       pos.increment(code)) {
    auto ignored = std::error_code{};
    if (pos->path().extension() == ".jsonl" && pos->is_regular_file(ignored))
      files.push_back(pos->path().string());
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
find_vector_files(const std::vector<std::string>& paths) {
  auto files = std::vector<std::string>{};
  for (const auto& path : paths) {
    auto code = std::error_code{};
    const auto status = fs::status(path, code);
    if (status.type() == fs::file_type::not_found)
      return problem(path, "does not exist");
    if (fs::is_regular_file(status)) {
      files.push_back(path);
    } else if (fs::is_directory(status)) {
      auto below = files_below(path);
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
