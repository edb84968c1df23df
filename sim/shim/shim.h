// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The boundary between a Verilated ferronic_core and Rust: one call a clock cycle.
// src/model/ffi.rs holds the same declarations; keep the two alike.
#ifndef FERRONIC_SHIM_H
#define FERRONIC_SHIM_H

#include <cstddef>
#include <cstdint>

extern "C" {

// The widest data path, in 64-bit words; narrower models use the first words.
enum { FERRONIC_DATA_WORDS = 8 };

struct FerronicBeat {
    uint8_t valid;
    uint8_t sop;
    uint8_t eop;
    uint8_t unused[5];
    uint32_t hdr[4];
    uint64_t data[FERRONIC_DATA_WORDS];
};

struct FerronicFrameBeat {
    uint8_t valid;
    uint8_t last;
    uint8_t abort;
    uint8_t bytes;
    uint8_t unused[4];
    uint64_t data[FERRONIC_DATA_WORDS];
};

struct FerronicIn {
    uint64_t skip;
    uint8_t rst_n;
    uint8_t pt_ready;
    uint8_t np_ready;
    uint8_t cc_ready;
    uint8_t tx_ready;
    uint8_t unused[3];
    FerronicBeat rq;
    FerronicBeat rc;
    FerronicFrameBeat rx;
};

struct FerronicOut {
    uint64_t time;
    uint64_t deadline;
    uint8_t idle;
    uint8_t rq_ready;
    uint8_t rc_ready;
    uint8_t rx_ready;
    uint8_t unused[4];
    FerronicBeat pt;
    FerronicBeat np;
    FerronicBeat cc;
    FerronicFrameBeat tx;
};

struct FerronicApi {
    uint32_t data_w;
    // `strap` holds strap_t, least significant word first. Null if there is no memory.
    void* (*create)(uint64_t seed, const uint32_t* strap, size_t strap_words);
    // Changes the straps from the next cycle on.
    void (*set_strap)(void* model, const uint32_t* strap, size_t strap_words);
    void (*destroy)(void* model);
    // One clock cycle: applies `in`, clocks, gives the outputs after the edge.
    // 0: fine; 1: the model reported an error (see `messages`).
    int32_t (*step)(void* model, const FerronicIn* in, FerronicOut* out);
    // Copies what the model printed since the last call; returns its length without the final 0.
    size_t (*messages)(void* model, char* buffer, size_t size);
    // Starts an FST trace; 0: fine, 1: built without tracing, 2: the file cannot be written.
    int32_t (*trace)(void* model, const char* path);
    // Writes coverage; 0: fine, 1: built without coverage.
    int32_t (*coverage)(void* model, const char* path);
};

}  // extern "C"

#endif
