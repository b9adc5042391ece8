// SPDX-License-Identifier: Apache-2.0

#include "gpu/host_pool_memory.hpp"

#include "gpu/memory_limits.hpp"

#include <utility>

namespace kvtide::gpu {

namespace {

/// Takes back the first `count` pieces, the last one first.
void unregister(memory_registrar& registrar, const registration_pieces& pieces,
                std::uint64_t count) noexcept {
  while (count > 0)
    registrar.remove(pieces[--count].first);
}

/// What the memory-lock limit may have to do with a refusal. Some drivers pin
/// without asking for it, so it never is the reason by itself.
std::string lock_hint(std::uint64_t bytes) {
  const auto limit = memory_lock_limit();
  if (!limit || *limit >= bytes)
    return {};
  return "; some drivers obey the memory-lock limit (RLIMIT_MEMLOCK), which is "
       + in_words(*limit)
       + " here: raise it (ulimit -l, LimitMEMLOCK= of a unit, docker --ulimit "
         "memlock=-1)";
}

result<registration_pieces> cut(const slot_pool& pool, std::uint64_t slot_bytes,
                                std::uint64_t page_bytes,
                                std::uint64_t largest) {
  // Whole huge pages serve a driver best. Slots of an odd size may have no such
  // pieces, but the system also pins parts of a huge page.
  auto made = registration_pieces::cut(pool, slot_bytes, page_bytes, largest);
  if (made || page_bytes == base_page_bytes())
    return made;
  return registration_pieces::cut(pool, slot_bytes, base_page_bytes(), largest);
}

/// @returns no error if all pieces are registered; else none is.
error register_all(memory_registrar& registrar,
                   const registration_pieces& pieces, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < pieces.count(); ++i) {
    const auto [first, length] = pieces[i];
    auto refused = registrar.add(first, length);
    if (refused.code == ec::none)
      continue;
    unregister(registrar, pieces, i);
    return {refused.code, "registering piece " + std::to_string(i + 1) + " of "
                            + std::to_string(pieces.count())
                            + " of the host pool, " + in_words(length)
                            + ", was refused: " + refused.text
                            + lock_hint(bytes)};
  }
  return {};
}

/// What has to be the same for the chunks of another process to be chunks of
/// this one.
pool_identity identity_of(const geometry& geometry, const kv_memory& memory,
                          std::uint32_t slots, digest_function digest) {
  std::vector<std::uint64_t> form{geometry.groups(),
                                  geometry.blocks_per_chunk()};
  for (const auto& ref : memory.references)
    form.insert(form.end(), {ref.group, ref.layer, ref.bytes});
  const auto& model = memory.model_fingerprint;
  return {slots, geometry.slot_bytes(),
          digest(form.data(), form.size() * sizeof(form[0])),
          digest(model.data(), model.size())};
}

} // namespace

std::string to_string(const host_pool_status& status) {
  auto out = "host pool: " + in_words(status.memory.bytes) + " of "
           + std::to_string(status.asked_bytes) + " asked for, "
           + std::to_string(status.slots) + " slots of "
           + std::to_string(status.slot_bytes) + " bytes, pages of "
           + std::to_string(status.memory.page_bytes >> 10) + " KiB";
  if (status.memory.mapped_bytes > status.memory.bytes)
    out += ", " + std::to_string(status.memory.mapped_bytes)
         + " bytes taken from the system";
  out += status.memory.reserved ? ", reserved" : ", not reserved";
  if (status.memory.numa_node)
    out += ", NUMA node " + std::to_string(*status.memory.numa_node);
  if (status.pinned)
    out += ", pinned in " + std::to_string(status.pieces.count())
         + (status.pieces.count() == 1 ? " piece" : " pieces");
  else
    out += ", not pinned";
  return out;
}

std::vector<std::string> notes_of(const host_pool_status& status) {
  auto out = std::vector{to_string(status)};
  for (const auto* notes : {&status.memory.notes, &status.notes})
    out.insert(out.end(), notes->begin(), notes->end());
  return out;
}

host_pool_memory::~host_pool_memory() {
  if (registrar_)
    unregister(*registrar_, status_.pieces, status_.pieces.count());
}

result<slot_pool> host_pool_memory::open(const geometry& geometry,
                                         const kv_memory& memory,
                                         const host_pool_config& config) {
  std::vector<piece> form;
  form.reserve(memory.references.size());
  for (const auto& ref : memory.references)
    form.push_back({ref.group, ref.layer, ref.bytes});
  const std::lock_guard lock{mutex_};
  if (opened_) {
    if (form != form_ || geometry.slot_bytes() != status_.slot_bytes)
      return error{ec::invalid_argument,
                   "the host pool holds chunks of another form: register the "
                   "same references in the same order, or start anew"};
    return pool_;
  }
  host_pool_status made;
  made.asked_bytes = config.host_bytes;
  made.slot_bytes = geometry.slot_bytes();
  made.slots = geometry.slots_in(config.host_bytes);
  if (made.slots == 0 && config.host_bytes > 0)
    return error{ec::invalid_options, "host_bytes is "
                                        + std::to_string(config.host_bytes)
                                        + ", but one chunk takes "
                                        + std::to_string(geometry.slot_bytes())
                                        + " bytes: make it larger"};
  auto named = std::shared_ptr<named_pool>{};
  auto place = file_place{};
  if (config.named && made.slots > 0) {
    auto found = named_pool::open(
      *config.named,
      identity_of(geometry, memory, made.slots, config.named->digest));
    if (!found)
      return found.failure();
    named = std::move(found).value();
    place = {named->descriptor(), named->slots_offset(), config.named->folder};
  }
  auto mapped
    = host_memory::map(made.slots * made.slot_bytes, config.memory, place);
  if (!mapped)
    return mapped.failure();
  made.memory = mapped.value().facts();
  const auto pool = slot_pool{mapped.value().data(), made.slots};
  if (config.registrar && made.slots > 0) {
    auto pieces = cut(pool, made.slot_bytes, made.memory.page_bytes,
                      config.largest_piece);
    auto refused = pieces ? register_all(*config.registrar, pieces.value(),
                                         made.memory.bytes)
                          : pieces.failure();
    made.pinned = refused.code == ec::none;
    if (made.pinned)
      made.pieces = pieces.value();
    else if (config.allow_pageable)
      made.notes.push_back("the host pool is not pinned, so copies go through "
                           "buffers and are slower: "
                           + refused.text);
    else
      return error{refused.code,
                   std::move(refused.text)
                     + "; or lower host_bytes, or allow a pool that "
                       "is not pinned, whose copies are slower"};
  }
  if (named) {
    named->complete(pool.base);
    made.notes.push_back(named->note());
  }
  if (made.pinned)
    registrar_ = config.registrar;
  named_ = std::move(named);
  memory_ = std::move(mapped).value();
  pool_ = pool;
  form_ = std::move(form);
  status_ = std::move(made);
  opened_ = true;
  return pool_;
}

host_pool_status host_pool_memory::status() const {
  const std::lock_guard lock{mutex_};
  return status_;
}

std::shared_ptr<named_pool> host_pool_memory::named() const {
  const std::lock_guard lock{mutex_};
  return named_;
}

} // namespace kvtide::gpu
