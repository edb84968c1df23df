// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Errors of a model ($error, $fatal, $stop, a failed assertion, no convergence) are recorded and
// reported by the call that ran the model, instead of ending the process.
#include "hooks.h"

#include <cstdarg>
#include <cstdio>
#include <stdexcept>

#include "verilated.h"

namespace {

thread_local ferronic::Messages* t_messages = nullptr;

// An assertion that fails in every cycle must not fill the memory.
constexpr size_t kMaxText = 16 * 1024;

void add(const std::string& text) {
    if (t_messages == nullptr) {
        std::fputs(text.c_str(), stderr);
    } else if (t_messages->text.size() < kMaxText) {
        t_messages->text += text;
    }
}

void fail(const char* what, const char* filename, int linenum, const char* hier, const char* msg) {
    std::string text = what;
    if (filename != nullptr && filename[0] != '\0') {
        text += std::string(" at ") + filename + ":" + std::to_string(linenum);
    }
    if (hier != nullptr && hier[0] != '\0') text += std::string(" in ") + hier;
    if (msg != nullptr && msg[0] != '\0') text += std::string(": ") + msg;
    add(text + "\n");
    if (t_messages != nullptr) t_messages->failed = true;
}

}  // namespace

namespace ferronic {
void collect(Messages* messages) { t_messages = messages; }
}  // namespace ferronic

extern "C" int ferronic_printf(const char* format, ...) {
    char buffer[2048];
    va_list ap;
    va_start(ap, format);
    const int length = std::vsnprintf(buffer, sizeof(buffer), format, ap);
    va_end(ap);
    add(buffer);
    return length;
}

void vl_stop(const char* filename, int linenum, const char* hier) VL_MT_UNSAFE {
    fail("stopped", filename, linenum, hier, nullptr);
}

void vl_finish(const char* filename, int linenum, const char* hier) VL_MT_UNSAFE {
    fail("$finish", filename, linenum, hier, nullptr);
}

void vl_warn(const char* filename, int linenum, const char* hier, const char* msg) VL_MT_UNSAFE {
    (void)hier;
    add(std::string("warning: ") + filename + ":" + std::to_string(linenum) + ": " + msg + "\n");
}

// Callers do not expect this one to return; the shim catches.
void vl_fatal(const char* filename, int linenum, const char* hier, const char* msg) VL_MT_UNSAFE {
    fail("fatal", filename, linenum, hier, msg);
    throw std::runtime_error("fatal error of the model");
}
