// SPDX-License-Identifier: Apache-2.0

/// @file
/// Which order the thread sanitizer may believe in. The stand-in has one lock,
/// and what a lock orders, CUDA does not: a query that says "not ready" takes
/// the lock after the copy that runs, but promises nothing about its bytes. So
/// the lock and what it guards are hidden from the sanitizer, and the order
/// that CUDA promises is told to it edge by edge. Without a sanitizer all of it
/// is a plain lock.

#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__SANITIZE_THREAD__)
#define KVTIDE_STAND_IN_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KVTIDE_STAND_IN_TSAN 1
#endif
#endif

#ifdef KVTIDE_STAND_IN_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
}
#endif

namespace kvtide::stand_in {

/// From here on the sanitizer sees nothing of this thread.
inline void hide() {
#ifdef KVTIDE_STAND_IN_TSAN
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
#endif
}

/// Ends `hide`.
inline void show() {
#ifdef KVTIDE_STAND_IN_TSAN
  AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
}

/// The machine's lock, which orders nothing for the sanitizer. BasicLockable.
class hidden_mutex {
public:
  void lock() {
    hide();
    mutex_.lock();
  }

  void unlock() {
    mutex_.unlock();
    show();
  }

  /// Unlocks, waits for a notification, locks. @pre locked
  void wait(std::condition_variable& changed) {
    std::unique_lock lock{mutex_, std::adopt_lock};
    changed.wait(lock);
    lock.release();
  }

private:
  std::mutex mutex_;
};

/// A point that work can be ordered by: what a thread did before `release` lies
/// before what another one does after `acquire`. Both with the machine locked.
class happens_before {
public:
  void release() {
#ifdef KVTIDE_STAND_IN_TSAN
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    __tsan_release(&point_);
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
#endif
  }

  void acquire() {
#ifdef KVTIDE_STAND_IN_TSAN
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    __tsan_acquire(&point_);
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
#endif
  }

private:
  [[maybe_unused]] long point_ = 0;
};

} // namespace kvtide::stand_in
