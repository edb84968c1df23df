// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The boundary between one Verilated block and Rust: ports by name, evaluation, messages.
// src/ffi.rs holds the same declarations. The build script includes this file behind the model,
// with BLOCK_NAME, BLOCK_MODEL and BLOCK_PORTS, a BLOCK_NARROW or BLOCK_WIDE for each port.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <vector>

#include "hooks.h"
#include "verilated.h"

namespace {

struct BlockPort {
    const char* name;
    void* data;  // little endian
    uint32_t bits;
    uint32_t bytes;  // of `data`
    uint32_t output;
};

struct BlockModel {
    std::unique_ptr<VerilatedContext> context;
    std::unique_ptr<BLOCK_MODEL> top;
    ferronic::Messages messages;
    std::vector<BlockPort> ports;
};

void* block_create(uint64_t seed) {
    std::unique_ptr<BlockModel> model{new (std::nothrow) BlockModel};
    if (!model) return nullptr;
    ferronic::collect(&model->messages);
    try {
        model->context = std::make_unique<VerilatedContext>();
        // Whatever is not reset starts with random bits, so that a missing reset shows.
        model->context->randReset(2);
        model->context->randSeed(static_cast<int>((seed & 0x3fffffff) + 1));
        model->context->assertOn(false);  // until Rust says so
        model->top = std::make_unique<BLOCK_MODEL>(model->context.get(), "block");
        BLOCK_MODEL& top = *model->top;
#define BLOCK_NARROW(port_, bits_, output_) \
    model->ports.push_back({#port_, &top.port_, bits_, sizeof(top.port_), output_});
#define BLOCK_WIDE(port_, bits_, output_) \
    model->ports.push_back({#port_, top.port_.data(), bits_, (bits_ + 31) / 32 * 4, output_});
        BLOCK_PORTS
        for (const BlockPort& port : model->ports) {
            if (port.output == 0) std::memset(port.data, 0, port.bytes);
        }
        top.eval();
    } catch (const std::exception&) {
        ferronic::collect(nullptr);
        return nullptr;
    }
    ferronic::collect(nullptr);
    return model.release();
}

void block_destroy(void* handle) {
    BlockModel* model = static_cast<BlockModel*>(handle);
    ferronic::collect(&model->messages);
    try {
        model->top->final();
    } catch (const std::exception&) {
    }
    delete model;
    ferronic::collect(nullptr);
}

const BlockPort* block_ports(void* handle, size_t* count) {
    BlockModel* model = static_cast<BlockModel*>(handle);
    *count = model->ports.size();
    return model->ports.data();
}

void block_assertions(void* handle, int32_t on) {
    static_cast<BlockModel*>(handle)->context->assertOn(on != 0);
}

int32_t block_eval(void* handle) {
    BlockModel* model = static_cast<BlockModel*>(handle);
    ferronic::collect(&model->messages);
    try {
        model->context->timeInc(1);
        model->top->eval();
    } catch (const std::exception&) {
        model->messages.failed = true;
    }
    ferronic::collect(nullptr);
    return model->messages.failed ? 1 : 0;
}

size_t block_messages(void* handle, char* buffer, size_t size) {
    BlockModel* model = static_cast<BlockModel*>(handle);
    const size_t length = std::min(model->messages.text.size(), size);
    std::memcpy(buffer, model->messages.text.data(), length);
    model->messages.text.clear();
    return length;
}

struct BlockApi {
    // Null if there is no memory or an initial block failed.
    void* (*create)(uint64_t seed);
    void (*destroy)(void* model);
    // The ports, valid as long as the model.
    const BlockPort* (*ports)(void* model, size_t* count);
    void (*assertions)(void* model, int32_t on);
    // 0: fine; 1: the model reported an error (see `messages`).
    int32_t (*eval)(void* model);
    // Copies what the model printed since the last call; returns its length.
    size_t (*messages)(void* model, char* buffer, size_t size);
};

}  // namespace

#define BLOCK_PASTE_(a, b) a##b
#define BLOCK_PASTE(a, b) BLOCK_PASTE_(a, b)

extern "C" const BlockApi* BLOCK_PASTE(ferronic_block_, BLOCK_NAME)() {
    static const BlockApi api = {
        block_create,     block_destroy, block_ports,
        block_assertions, block_eval,    block_messages,
    };
    return &api;
}
