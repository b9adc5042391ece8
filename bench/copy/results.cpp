// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/results.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <ostream>
#include <string_view>

namespace kvtide::bench {

namespace {

constexpr auto giga = 1e9;
constexpr auto micro = 1e-6;

template <class... Ts>
std::string text_of(const char* format, Ts... values) {
  auto out = std::array<char, 256>{};
  std::snprintf(out.data(), out.size(), format, values...);
  return out.data();
}

std::string version_text(int version) {
  return std::to_string(version / 1'000) + '.'
       + std::to_string(version % 1'000 / 10);
}

std::string median_and_spread(const quantiles& x) {
  return text_of("%5.2f (%5.2f-%5.2f)", x.p50, x.p10, x.p90);
}

void print_facts(const run_facts& facts, std::ostream& out) {
  out << "command  " << facts.command << "\ndate     " << facts.date
      << "\nhost     " << facts.processor << ", " << facts.cores << " cores\n";
  if (facts.device != "cuda") {
    out << "device   host\n";
    return;
  }
  out << "device   " << facts.device_name << " at " << facts.pci_bus_id
      << ", driver for CUDA " << version_text(facts.driver_version)
      << ", runtime " << version_text(facts.runtime_version) << "\nlink     "
      << (facts.link.empty() ? "not told by this system" : facts.link);
  if (!facts.widest_link.empty())
    out << " (device: at most " << facts.widest_link << ')';
  out << '\n';
}

void print_copies(const results& what, std::ostream& out) {
  out << "\nCopies: medians (p10-p90) of " << what.rounds
      << " rounds; ratios of rates in the same round;\nGB/s = 10^9 bytes per "
         "second, both directions together.\n\n"
      << text_of("%-6s %8s %7s %5s %-9s | %-19s | %-19s | %6s | %6s %6s\n",
                 "where", "fragment", "count", "jobs", "way", "by one copy",
                 "by one per fragment", "GB/s", "one", "each");
  for (const auto& row : what.copies)
    out << text_of("%-6s %8s %7llu %5llu %-9s | %-19s | %-19s | %6.1f | "
                   "%6.1f %6.1f\n",
                   name_of(row.where_to), size_text(row.fragment_bytes).c_str(),
                   static_cast<unsigned long long>(row.fragments),
                   static_cast<unsigned long long>(row.jobs), row.way.c_str(),
                   median_and_spread(row.by_one).c_str(),
                   median_and_spread(row.by_each).c_str(), row.rate.p50 / giga,
                   row.rate_of_one.p50 / giga, row.rate_of_each.p50 / giga);
}

void print_decode(const results& what, std::ostream& out) {
  const auto& none = what.decode.front();
  out << "\nDecode: what an iteration and its 4 KiB upload take beside loads, "
         "as multiples of\nthe first row and in microseconds.\n\n"
      << text_of("%-14s | %9s %6s | %9s %6s | %15s | %15s | %6s %7s\n",
                 "beside", "iteration", "p99", "upload", "p99", "iteration",
                 "upload", "GB/s", "by one");
  for (const auto& row : what.decode)
    out << text_of(
      "%-14s | %9.2f %6.2f | %9.2f %6.2f | %7.1f %7.1f | %7.1f %7.1f | "
      "%6.1f %7.2f\n",
      row.load.c_str(), row.iteration.p50 / none.iteration.p50,
      row.iteration.p99 / none.iteration.p99, row.upload.p50 / none.upload.p50,
      row.upload.p99 / none.upload.p99, row.iteration.p50 / micro,
      row.iteration.p99 / micro, row.upload.p50 / micro, row.upload.p99 / micro,
      row.load_rate / giga, row.load_by_one);
}

// -- JSON
// ----------------------------------------------------------------------

std::string quoted(std::string_view text) {
  auto out = std::string{'"'};
  for (const auto c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += text_of("\\u%04x", static_cast<unsigned int>(c));
    else
      out += c;
  }
  return out += '"';
}

std::string json_of(const quantiles& x, double unit) {
  return text_of(R"({"p10": %.6g, "p50": %.6g, "p90": %.6g, "p99": %.6g})",
                 x.p10 / unit, x.p50 / unit, x.p90 / unit, x.p99 / unit);
}

void print_json(const run_facts& facts, std::ostream& out) {
  out << "  \"command\": " << quoted(facts.command)
      << ",\n  \"date\": " << quoted(facts.date)
      << ",\n  \"host\": {\"processor\": " << quoted(facts.processor)
      << ", \"cores\": " << facts.cores
      << "},\n  \"device\": {\"kind\": " << quoted(facts.device)
      << ", \"name\": " << quoted(facts.device_name)
      << ", \"pci_bus_id\": " << quoted(facts.pci_bus_id)
      << ", \"driver_version\": " << facts.driver_version
      << ", \"runtime_version\": " << facts.runtime_version
      << ", \"link\": " << quoted(facts.link)
      << ", \"widest_link\": " << quoted(facts.widest_link) << '}';
}

void print_json(const copy_row& row, std::ostream& out) {
  out << R"(    {"direction": ")" << name_of(row.where_to)
      << R"(", "fragment_bytes": )" << row.fragment_bytes
      << ", \"fragments\": " << row.fragments << ", \"jobs\": " << row.jobs
      << ", \"way\": " << quoted(row.way)
      << ",\n     \"by_one_copy\": " << json_of(row.by_one, 1)
      << ",\n     \"by_copy_per_fragment\": " << json_of(row.by_each, 1)
      << ",\n     \"gb_per_second\": " << json_of(row.rate, giga)
      << ",\n     \"one_copy_gb_per_second\": "
      << json_of(row.rate_of_one, giga)
      << ",\n     \"copy_per_fragment_gb_per_second\": "
      << json_of(row.rate_of_each, giga) << '}';
}

void print_json(const decode_row& row, std::ostream& out) {
  out << "    {\"beside\": " << quoted(row.load)
      << ", \"iterations\": " << row.iterations
      << ",\n     \"iteration_us\": " << json_of(row.iteration, micro)
      << ",\n     \"upload_us\": " << json_of(row.upload, micro)
      << ",\n     \"beside_gb_per_second\": "
      << text_of("%.6g", row.load_rate / giga)
      << ", \"beside_by_one_copy\": " << text_of("%.6g", row.load_by_one)
      << '}';
}

template <class T>
void print_json_list(const char* name, const std::vector<T>& rows,
                     std::ostream& out) {
  out << ",\n  \"" << name << "\": [";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out << (i == 0 ? "\n" : ",\n");
    print_json(rows[i], out);
  }
  out << (rows.empty() ? "]" : "\n  ]");
}

} // namespace

void print_table(const results& what, std::ostream& out) {
  print_facts(what.facts, out);
  if (!what.copies.empty())
    print_copies(what, out);
  if (!what.decode.empty())
    print_decode(what, out);
}

void print_json(const results& what, std::ostream& out) {
  out << "{\n  \"program\": \"bench-copy\",\n";
  print_json(what.facts, out);
  out << ",\n  \"rounds\": " << what.rounds;
  print_json_list("copies", what.copies, out);
  print_json_list("decode", what.decode, out);
  out << "\n}\n";
}

error can_be_written(const std::string& file) {
  if (file.empty() || file == "-"
      || std::ofstream{file, std::ios::app}.is_open())
    return {};
  return {ec::invalid_argument, "cannot write the results to " + file + ": "
                                  + std::strerror(errno)
                                  + "; see bench-copy --help"};
}

error write_json(const results& what, const std::string& file) {
  if (file == "-") {
    print_json(what, std::cout);
    return {};
  }
  auto out = std::ofstream{file};
  print_json(what, out);
  out.close();
  if (out)
    return {};
  return {ec::invalid_argument,
          "cannot write the results to " + file + ": " + std::strerror(errno)};
}

} // namespace kvtide::bench
