// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

namespace kvtide::gpu {

/// A folder that plays the root of a machine; gone with its owner.
class scratch_tree {
public:
  scratch_tree() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }

  scratch_tree(const scratch_tree&) = delete;

  scratch_tree& operator=(const scratch_tree&) = delete;

  ~scratch_tree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  [[nodiscard]] const std::string& root() const noexcept {
    return root_;
  }

  /// @param path starts with a slash.
  void write(const std::string& path, const std::string& text) const {
    const auto file = root_ + path;
    std::filesystem::create_directories(
      std::filesystem::path{file}.parent_path());
    std::ofstream{file} << text;
  }

private:
  std::string root_ = ::testing::TempDir() + "kvtide_scratch_tree."
                    + std::to_string(::getpid());
};

} // namespace kvtide::gpu
