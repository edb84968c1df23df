// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Steers a received frame: a hash over its addresses and ports picks one of the pairs in use. In a
// card without LRO every frame is passed on alone; lro_table does the same and more. Latency one
// cycle and one more for the queue; throughput a frame in two cycles.
`include "ferronic_assert.svh"
module rx_steer
  import ferronic_pkg::*;
  import lro_pkg::*;
  import rx_pkg::*;
(
  input  logic       clk_i,
  input  logic       rst_ni,
  input  logic       fn_rst_i,
  input  logic [6:0] pairs_in_use_i,
  output logic       idle_o,

  input  logic       frame_valid_i,
  output logic       frame_ready_o,
  input  rx_frame_t  frame_i,
  output logic       op_valid_o,
  input  logic       op_ready_i,
  output lro_op_t    op_o
);
  logic      pre_valid_q, valid_q;
  rx_frame_t pre_q;
  logic [7:0] pre_mix_q;
  lro_op_t   op_q;
  wire       move = pre_valid_q && (!valid_q || op_ready_i);
  wire [5:0] pair = scaled_pair(pre_mix_q, pairs_in_use_i);

  assign frame_ready_o = !pre_valid_q || move;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      pre_valid_q <= 1'b0;
      valid_q     <= 1'b0;
    end else begin
      if (frame_ready_o) pre_valid_q <= frame_valid_i;
      valid_q <= move || (valid_q && !op_ready_i);
    end
  end
  always_ff @(posedge clk_i) begin
    if (frame_ready_o) begin
      pre_q     <= frame_i;
      pre_mix_q <= mix(frame_i.verdict.addr_hash ^ frame_i.verdict.port_hash);
    end
    if (move) begin
      op_q     <= '0;
      op_q.ptr <= pre_q.ptr;
      op_q.len <= pre_q.len[13:0];
      op_q.mix <= pre_mix_q;
      op_q.q   <= {pair, 1'b0};
    end
  end
  assign op_valid_o = valid_q;
  assign op_o       = op_q;
  assign idle_o     = !pre_valid_q && !valid_q && !frame_valid_i;

  logic unused;
  assign unused = ^{pre_q};

  `FERRONIC_ASSERT_STABLE(OpStable, op_valid_o, op_ready_i || fn_rst_i, op_o, clk_i, rst_ni)
endmodule
