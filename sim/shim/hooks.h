// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Included before everything else in each C++ file of a model: where Verilator's messages go.
#ifndef FERRONIC_HOOKS_H
#define FERRONIC_HOOKS_H

#include <string>

// Takes the place of printf in the run-time library.
extern "C" int ferronic_printf(const char* format, ...) __attribute__((format(printf, 1, 2)));

namespace ferronic {

// What a model said since it was last asked. One model runs at a time in a thread.
struct Messages {
    std::string text;
    bool failed = false;
};

// Directs the messages of this thread to `messages`, or to standard error if it is null.
void collect(Messages* messages);

}  // namespace ferronic

#endif
