// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Assertions that serve simulation and formal and vanish in synthesis. Immediate assertions in a
// clocked block only: every open tool reads them.
//
//   FERRONIC_ASSERT(Name, condition, clk, rst_n)
//     the condition holds at each clock edge out of reset.
//   FERRONIC_ASSERT_STABLE(Name, valid, ready, payload, clk, rst_n)
//     a stream: once valid and not taken, valid stays and the payload does not change.
`ifndef FERRONIC_ASSERT_SVH
`define FERRONIC_ASSERT_SVH

`ifdef SYNTHESIS
  `define FERRONIC_ASSERT(name_, cond_, clk_, rst_n_)
  `define FERRONIC_ASSERT_STABLE(name_, valid_, ready_, payload_, clk_, rst_n_)
`elsif FORMAL
  `define FERRONIC_ASSERT(name_, cond_, clk_, rst_n_) \
    always_ff @(posedge clk_) begin \
      if (rst_n_) begin : name_ \
        assert (cond_); \
      end \
    end
  `define FERRONIC_ASSERT_STABLE(name_, valid_, ready_, payload_, clk_, rst_n_) \
    logic name_``_wait_q = 1'b0; \
    logic [$bits(payload_)-1:0] name_``_data_q; \
    always_ff @(posedge clk_) begin \
      name_``_wait_q <= (rst_n_) && (valid_) && !(ready_); \
      name_``_data_q <= (payload_); \
      if ((rst_n_) && name_``_wait_q) begin : name_ \
        assert ((valid_) && ((payload_) == name_``_data_q)); \
      end \
    end
`else
  `define FERRONIC_ASSERT(name_, cond_, clk_, rst_n_) \
    always_ff @(posedge clk_) begin \
      if (rst_n_) begin : name_ \
        assert (cond_) else $error("%m: assertion failed"); \
      end \
    end
  `define FERRONIC_ASSERT_STABLE(name_, valid_, ready_, payload_, clk_, rst_n_) \
    logic name_``_wait_q; \
    logic [$bits(payload_)-1:0] name_``_data_q; \
    always_ff @(posedge clk_) begin \
      name_``_wait_q <= (rst_n_) && (valid_) && !(ready_); \
      name_``_data_q <= (payload_); \
      if ((rst_n_) && name_``_wait_q) begin : name_ \
        assert ((valid_) && ((payload_) == name_``_data_q)) \
        else $error("%m: stream changed while stalled"); \
      end \
    end
`endif

`endif
