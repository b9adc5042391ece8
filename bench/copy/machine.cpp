// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/machine.hpp"

#include <array>
#include <cctype>
#include <ctime>
#include <fstream>
#include <thread>

namespace kvtide::bench {

namespace {

std::string first_line(const std::string& file) {
  auto out = std::string{};
  auto in = std::ifstream{file};
  std::getline(in, out);
  return out;
}

std::string processor() {
  auto in = std::ifstream{"/proc/cpuinfo"};
  for (std::string line; std::getline(in, line);)
    if (line.rfind("model name", 0) == 0)
      if (const auto colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "unknown processor";
}

std::string link_of(const std::string& folder, const std::string& which) {
  const auto speed = first_line(folder + '/' + which + "_link_speed");
  const auto width = first_line(folder + '/' + which + "_link_width");
  // A virtual machine may say neither, or zero lanes.
  if (speed.empty() || width.empty() || width == "0")
    return {};
  return speed + " x" + width;
}

} // namespace

run_facts facts_of_machine() {
  auto out = run_facts{};
  out.processor = processor();
  out.cores = std::thread::hardware_concurrency();
  const auto now = std::time(nullptr);
  auto parts = std::tm{};
  auto text = std::array<char, 32>{};
  if (::gmtime_r(&now, &parts) != nullptr
      && std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)
           > 0)
    out.date = text.data();
  return out;
}

void add_link(run_facts& facts, const std::string& pci_bus_id,
              const std::string& root) {
  auto name = pci_bus_id;
  for (auto& c : name)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  facts.link = link_of(root + '/' + name, "current");
  facts.widest_link = link_of(root + '/' + name, "max");
}

} // namespace kvtide::bench
