// SPDX-License-Identifier: Apache-2.0

/// @file
/// The file of a host pool that outlives its process, and who may have it.

#pragma once

#include "kvtide/ids.hpp"
#include "kvtide/result.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace kvtide::gpu {

/// Where named pools lie unless a test says otherwise.
inline constexpr const char* named_pool_folder = "/dev/shm";

/// Why `name` cannot be that of a pool, or no error: it needs 1 to 64 letters,
/// digits, dots, hyphens or underscores.
[[nodiscard]] error fault_of_pool_name(const std::string& name);

/// Owns the descriptor, and through it the right to use the pool: no other
/// process, and nobody else in this one, has it at the same time. The right
/// ends with the process, however that ends.
class named_pool_file {
public:
  /// Opens or makes `<folder>/kvtide-<name>-rank<rank>`, for this user alone.
  /// @returns `ec::invalid_options` if the name is none or the file is not this
  ///          user's alone, `ec::out_of_order` if somebody has the pool, or
  ///          `ec::unsupported` if the system refuses, each with a sentence
  [[nodiscard]] static result<named_pool_file>
  open(const std::string& name, rank_id rank,
       const std::string& folder = named_pool_folder);

  /// Removes the file of a pool that nobody has. None is no error.
  /// @returns as `open`
  [[nodiscard]] static error remove(const std::string& name, rank_id rank,
                                    const std::string& folder
                                    = named_pool_folder);

  named_pool_file() = default;

  named_pool_file(named_pool_file&& other) noexcept;

  named_pool_file& operator=(named_pool_file&& other) noexcept;

  ~named_pool_file();

  [[nodiscard]] int descriptor() const noexcept {
    return file_;
  }

  [[nodiscard]] const std::string& path() const noexcept {
    return path_;
  }

  /// Zero bytes first, then `bytes` zeros.
  /// @returns an errno value, or zero
  [[nodiscard]] int renew(std::uint64_t bytes) noexcept;

  [[nodiscard]] std::uint64_t bytes() const noexcept;

private:
  named_pool_file(int file, std::string path) noexcept
    : file_(file), path_(std::move(path)) {
    // nop
  }

  int file_ = -1;
  std::string path_;
};

} // namespace kvtide::gpu
