// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/network.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace kvtide::test {

/// A folder that goes with its object.
class scratch_folder {
public:
  scratch_folder();
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder();

  [[nodiscard]] std::string path(const std::string& name) const;

  /// Writes a file.
  [[nodiscard]] std::string write(const std::string& name,
                                  const std::string& content) const;

private:
  std::filesystem::path where_;
};

/// What a certificate says; times in seconds from now.
struct wish {
  long from = -3'600;
  long to = 3'600;
};

/// Signs certificates, as tools/make-certificates does.
class authority {
public:
  /// @param name goes into its files' names
  authority(const scratch_folder& folder, const std::string& name);
  ~authority();

  /// Makes a certificate and its key, and names all three files in `opts`.
  void give(network_options& opts, const std::string& name, wish what = {});

  /// Its own certificate.
  [[nodiscard]] const std::string& trusted() const noexcept {
    return trusted_;
  }

private:
  struct impl;

  const scratch_folder& folder_;
  std::string trusted_;
  std::unique_ptr<impl> impl_;
};

} // namespace kvtide::test
