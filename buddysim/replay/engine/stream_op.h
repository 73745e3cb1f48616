/* An operation of a warp in its stream; stream.pxd describes the fields. */
#ifndef BUDDYSIM_STREAM_OP_H
#define BUDDYSIM_STREAM_OP_H
#include <stdint.h>

typedef struct {
    int64_t gap_latency_ps;
    int64_t use_ps;
    uint32_t issue_slots;
    uint16_t unit_busy_slots;
    uint8_t kind : 3;
    uint8_t bank_words : 5;
    uint8_t n_lines;
} StreamOp;

_Static_assert(sizeof(StreamOp) == 24, "an operation and the location of one line fill a cache line of the CPU");
#endif
