// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// What happens when writes of the receive path are done, in the order of the writes: used entries,
// the release of frames, events for the counters. One token a cycle.
//
// After a function reset the writes that are still out are waited for (`drain_o`), their tokens are
// gone.
//
// Invariants: a used entry leaves only after the write that its token came with; at most `Tokens`
// writes are out.
`include "ferronic_assert.svh"
module rx_tokens
  import ferronic_pkg::*;
  import rx_pkg::*;
#(
  parameter int unsigned Tokens = 16
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         fn_rst_i,

  input  logic         valid_i,
  output logic         ready_o,
  input  rx_token_t    token_i,
  input  logic         taken_i,        // a write was taken; its token comes with it
  input  logic         wr_done_i,
  output logic         drain_o,
  output logic         done_o,         // nothing is out and no token waits
  output logic         quiet_o,        // and no event is on its way

  output logic         used_valid_o,
  input  logic         used_ready_i,
  output vq_used_t     used_o,
  output logic         release_valid_o,
  output logic [15:0]  release_len_o,
  output logic         scratch_done_o,
  output frame_event_t event_o
);
  localparam int unsigned CntW = $clog2(Tokens) + 1;
  logic            valid, pop;
  rx_token_t       token;
  logic [CntW-1:0] out_q, done_q;
  logic            drain_q;
  logic            event_valid_q, event_drop_q;
  qid_t            event_q_q;
  logic [13:0]     event_len_q;

  logic [CntW-1:0] level;
  prim_fifo #(.Width($bits(rx_token_t)), .Depth(Tokens)) u_fifo (
    .clk_i, .rst_ni,
    .clr_i     (fn_rst_i),
    .wr_valid_i(valid_i),
    .wr_ready_o(ready_o),
    .wr_data_i (token_i),
    .rd_valid_o(valid),
    .rd_ready_i(pop),
    .rd_data_o (token),
    .level_o   (level)
  );

  wire due = valid && (!token.cmd || done_q != '0);
  assign used_valid_o   = due && token.used;
  assign used_o.q       = token.q;
  assign used_o.publish = token.publish;
  assign used_o.id      = token.id;
  assign used_o.marker  = 1'b0;
  assign used_o.len     = {15'd0, token.len};
  assign pop            = due && (!token.used || used_ready_i);

  assign release_valid_o = pop && token.frame_end;
  assign release_len_o   = {2'b00, token.frame_len};
  assign scratch_done_o  = pop && token.scratch;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_q   <= '0;
      done_q  <= '0;
      drain_q <= 1'b0;
    end else begin
      out_q <= out_q + CntW'(taken_i) - CntW'(wr_done_i);
      if (fn_rst_i) begin
        drain_q <= 1'b1;
        done_q  <= '0;
      end else begin
        if (out_q == '0) drain_q <= 1'b0;
        if (!drain_q) done_q <= done_q + CntW'(wr_done_i) - CntW'(pop && token.cmd);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) event_valid_q <= 1'b0;
    else event_valid_q <= release_valid_o && !fn_rst_i;
  end
  always_ff @(posedge clk_i) begin
    event_q_q    <= token.q;
    event_drop_q <= token.drop;
    event_len_q  <= token.frame_len;
  end
  assign event_o.valid = event_valid_q;
  assign event_o.q     = event_q_q;
  assign event_o.drop  = event_drop_q;
  assign event_o.bytes = {2'b00, event_len_q};

  assign drain_o = drain_q;
  assign done_o  = !valid && (out_q == '0);
  assign quiet_o = done_o && !event_valid_q;

  logic unused;
  assign unused = ^level;

  `FERRONIC_ASSERT(DonesAreExpected, !wr_done_i || out_q != '0, clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(UsedStable, used_valid_o, used_ready_i || fn_rst_i, used_o,
                          clk_i, rst_ni)
endmodule
