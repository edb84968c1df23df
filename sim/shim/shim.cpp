// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Compiled once per data path width: FERRONIC_DATA_W, FERRONIC_MODEL and FERRONIC_MODEL_HEADER
// are given on the command line.
#include "shim.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include FERRONIC_MODEL_HEADER
#include "verilated.h"
#if VM_TRACE
#include "verilated_fst_c.h"
#endif
#if VM_COVERAGE
#include "verilated_cov.h"
#endif

namespace {

constexpr size_t kWords = FERRONIC_DATA_W / 64;

struct Model {
    std::unique_ptr<VerilatedContext> context;
    std::unique_ptr<FERRONIC_MODEL> top;
    ferronic::Messages messages;
    uint64_t steps = 0;
#if VM_TRACE
    std::unique_ptr<VerilatedFstC> trace;
#endif
};

// Verilator makes a 64-bit port a QData and a wider one an array of 32-bit words.
inline void load(QData& port, const uint64_t* words) { port = words[0]; }
inline void save(const QData& port, uint64_t* words) { words[0] = port; }
template <size_t N>
inline void load(VlWide<N>& port, const uint64_t* words) {
    std::memcpy(port.data(), words, N * sizeof(uint32_t));
}
template <size_t N>
inline void save(const VlWide<N>& port, uint64_t* words) {
    std::memcpy(words, port.data(), N * sizeof(uint32_t));
}

void apply_strap(Model* model, const uint32_t* strap, size_t words) {
    for (size_t i = 0; i < words && i * 32 < 178; i++) model->top->strap_i[i] = strap[i];
    model->top->strap_i[5] &= 0x3ffff;
}

void set_strap(void* handle, const uint32_t* strap, size_t words) {
    apply_strap(static_cast<Model*>(handle), strap, words);
}

void* create(uint64_t seed, const uint32_t* strap, size_t strap_words) {
    std::unique_ptr<Model> model{new (std::nothrow) Model};
    if (!model) return nullptr;
    ferronic::collect(&model->messages);
    try {
        model->context = std::make_unique<VerilatedContext>();
        // Whatever is not reset starts with random bits, so that a missing reset shows.
        model->context->timeunit(-9);
        model->context->timeprecision(-9);
        model->context->randReset(2);
        model->context->randSeed(static_cast<int>((seed & 0x3fffffff) + 1));
        model->context->assertOn(false);  // until the first edge in reset
#if VM_TRACE
        model->context->traceEverOn(true);
#endif
        model->top = std::make_unique<FERRONIC_MODEL>(model->context.get(), "ferronic_core");
        apply_strap(model.get(), strap, strap_words);
        model->top->clk_i = 0;
        model->top->rst_ni = 0;
        model->top->eval();
        model->context->assertOn(true);
    } catch (const std::exception&) {
        ferronic::collect(nullptr);
        return nullptr;
    }
    ferronic::collect(nullptr);
    return model.release();
}

void destroy(void* handle) {
    Model* model = static_cast<Model*>(handle);
    ferronic::collect(&model->messages);
    try {
#if VM_TRACE
        if (model->trace) model->trace->close();
#endif
        model->top->final();
    } catch (const std::exception&) {
    }
    delete model;
    ferronic::collect(nullptr);
}

inline void dump(Model* model, uint64_t half) {
#if VM_TRACE
    if (model->trace) model->trace->dump(model->steps * 8 + half);  // nanoseconds
#else
    (void)model;
    (void)half;
#endif
}

inline void evaluate(Model* model, const FerronicIn* in, FerronicOut* out) {
    FERRONIC_MODEL& top = *model->top;
    top.rst_ni = in->rst_n;
    top.skip_i = in->skip;
    top.pt_ready_i = in->pt_ready;
    top.np_ready_i = in->np_ready;
    top.cc_ready_i = in->cc_ready;
    top.tx_ready_i = in->tx_ready;
    top.rq_valid_i = in->rq.valid;
    if (in->rq.valid) {
        top.rq_sop_i = in->rq.sop;
        top.rq_eop_i = in->rq.eop;
        std::memcpy(top.rq_hdr_i.data(), in->rq.hdr, 16);
        load(top.rq_data_i, in->rq.data);
    }
    top.rc_valid_i = in->rc.valid;
    if (in->rc.valid) {
        top.rc_sop_i = in->rc.sop;
        top.rc_eop_i = in->rc.eop;
        std::memcpy(top.rc_hdr_i.data(), in->rc.hdr, 16);
        load(top.rc_data_i, in->rc.data);
    }
    top.rx_valid_i = in->rx.valid;
    if (in->rx.valid) {
        top.rx_last_i = in->rx.last;
        top.rx_abort_i = in->rx.abort;
        top.rx_bytes_i = in->rx.bytes;
        load(top.rx_data_i, in->rx.data);
    }

    model->context->timeInc(8);  // nanoseconds, for messages
    top.clk_i = 1;
    top.eval();
    dump(model, 0);
    top.clk_i = 0;
    top.eval();
    dump(model, 4);
    model->steps++;

    out->time = top.time_o;
    out->deadline = top.deadline_o;
    out->idle = top.idle_o;
    out->rq_ready = top.rq_ready_o;
    out->rc_ready = top.rc_ready_o;
    out->rx_ready = top.rx_ready_o;
    out->pt.valid = top.pt_valid_o;
    if (top.pt_valid_o) {
        out->pt.sop = top.pt_sop_o;
        out->pt.eop = top.pt_eop_o;
        std::memcpy(out->pt.hdr, top.pt_hdr_o.data(), 16);
        save(top.pt_data_o, out->pt.data);
    }
    out->np.valid = top.np_valid_o;
    if (top.np_valid_o) {
        out->np.sop = 1;
        out->np.eop = 1;
        std::memcpy(out->np.hdr, top.np_hdr_o.data(), 16);
    }
    out->cc.valid = top.cc_valid_o;
    if (top.cc_valid_o) {
        out->cc.sop = top.cc_sop_o;
        out->cc.eop = top.cc_eop_o;
        std::memcpy(out->cc.hdr, top.cc_hdr_o.data(), 16);
        save(top.cc_data_o, out->cc.data);
    }
    out->tx.valid = top.tx_valid_o;
    if (top.tx_valid_o) {
        out->tx.last = top.tx_last_o;
        out->tx.abort = top.tx_abort_o;
        out->tx.bytes = top.tx_bytes_o;
        save(top.tx_data_o, out->tx.data);
    }
}

int32_t step(void* handle, const FerronicIn* in, FerronicOut* out) {
    Model* model = static_cast<Model*>(handle);
    ferronic::collect(&model->messages);
    try {
        evaluate(model, in, out);
    } catch (const std::exception&) {
        model->messages.failed = true;
    }
    ferronic::collect(nullptr);
    return model->messages.failed ? 1 : 0;
}

size_t messages(void* handle, char* buffer, size_t size) {
    Model* model = static_cast<Model*>(handle);
    if (size == 0) return 0;
    const size_t length = std::min(model->messages.text.size(), size - 1);
    std::memcpy(buffer, model->messages.text.data(), length);
    buffer[length] = '\0';
    model->messages.text.clear();
    return length;
}

int32_t trace(void* handle, const char* path) {
#if VM_TRACE
    Model* model = static_cast<Model*>(handle);
    model->trace = std::make_unique<VerilatedFstC>();
    model->top->trace(model->trace.get(), 99);
    model->trace->open(path);
    return model->trace->isOpen() ? 0 : 2;
#else
    (void)handle;
    (void)path;
    return 1;
#endif
}

int32_t coverage(void* handle, const char* path) {
#if VM_COVERAGE
    static_cast<Model*>(handle)->context->coveragep()->write(path);
    return 0;
#else
    (void)handle;
    (void)path;
    return 1;
#endif
}

}  // namespace

#define FERRONIC_PASTE_(a, b, c) a##b##c
#define FERRONIC_PASTE(a, b, c) FERRONIC_PASTE_(a, b, c)

extern "C" const FerronicApi* FERRONIC_PASTE(ferronic, FERRONIC_DATA_W, _api)() {
    static const FerronicApi api = {
        FERRONIC_DATA_W, create, set_strap, destroy, step, messages, trace, coverage,
    };
    return &api;
}
