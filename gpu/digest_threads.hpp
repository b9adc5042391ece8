// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/ids.hpp"

#include "gpu/copy_engine.hpp"
#include "gpu/named_pool.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace kvtide::gpu {

/// One slot whose bytes are to be digested.
struct digest_task {
  job_id job = 0;
  /// Among the contents of the job.
  std::size_t index = 0;
  slot_content content;
  /// The result.
  content_digest digest;
};

/// Threads that read what was just stored, so that nobody who answers others
/// has to. Calls come from one thread at a time.
class digest_threads {
public:
  /// @param wake called whenever `take` may have something, as an engine's.
  /// Throws `std::system_error` if the system refuses a thread.
  digest_threads(const named_pool& pool, wake_function wake,
                 std::uint32_t count);

  digest_threads(const digest_threads&) = delete;

  digest_threads& operator=(const digest_threads&) = delete;

  /// Waits for the slots that are being read, not for the queue.
  ~digest_threads();

  void put(const digest_task& task);

  /// What is ready, in the order in which it became so.
  [[nodiscard]] std::vector<digest_task> take();

  /// Blocks until all that was put is ready.
  void finish();

private:
  void run();

  const named_pool& pool_;
  wake_function wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<digest_task> waiting_;
  std::vector<digest_task> ready_;
  std::size_t running_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

} // namespace kvtide::gpu
