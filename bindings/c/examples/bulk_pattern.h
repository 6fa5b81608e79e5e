/* Bytes that depend on their offset: bulk_send sends them and bulk_recv compares them. */
#ifndef BULK_PATTERN_H
#define BULK_PATTERN_H

#include <stddef.h>
#include <stdint.h>

static inline unsigned char bulk_pattern_at(uint64_t offset) { return (unsigned char)((offset * 0x9e3779b97f4a7c15u) >> 56); }

static inline void bulk_pattern(unsigned char *bytes, uint64_t offset, size_t length) {
    for (size_t at = 0; at < length; ++at) {
        bytes[at] = bulk_pattern_at(offset + at);
    }
}

#endif
