// SPDX-License-Identifier: Apache-2.0

/// @file
/// XXH3 from xxHash's header alone: its functions become part of the sources
/// that include this, so that nobody who links kvtide needs libxxhash, and so
/// that a hash of a short key does not cost a call. The only file that includes
/// <xxhash.h>.

#pragma once

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>
