/* SPDX-License-Identifier: Apache-2.0 */

/* kvtide.h needs no other header before it, and may come twice. */
#include <kvtide/kvtide.h>
#include <kvtide/kvtide.h> /* again */

typedef char is_no_empty_unit[KVTIDE_VERSION > 0 ? 1 : -1];
