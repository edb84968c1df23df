// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Closes the units of a set, one after the other, by lro_close. Units whose queue is gone are
// forgotten: their contexts become free, and nothing is written.
//
// Two cycles a unit beside those of lro_close. `busy_o` rises with the cycle after `load_i` and
// falls when the last unit is closed.
//
// Invariants: only a unit that is open is closed, and only once; `ctx_o` stays while one is closed.
`include "ferronic_assert.svh"
module lro_closing
  import ferronic_pkg::*;
  import lro_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned Contexts = 16,
  parameter bit          Relaxed = 1'b0,  // as of lro_table
  localparam int unsigned CtxW = $clog2(Contexts)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                fn_rst_i,

  input  logic                load_i,
  input  logic [Contexts-1:0] set_i,
  input  lro_cause_e          cause_i,
  output logic                busy_o,
  output logic                closing_o,    // `ctx_o` is being closed
  input  logic                forget_i,     // the queue of these units is gone
  input  logic [Contexts-1:0] forget_set_i,
  output logic [Contexts-1:0] forget_o,     // those that are not forgotten yet
  input  logic [Contexts-1:0] open_i,

  output logic [CtxW-1:0]     ctx_o,
  output logic                closed_o,     // it is free
  output logic                counted_o,    // it was not forgotten
  output lro_cause_e          cause_o,

  // As of lro_close.
  input  logic                free_i,
  input  logic [63:0]         first_i,
  input  lro_unit_head_t      head_i,
  input  lro_unit_end_t       end_i,
  input  logic [13:0]         size_i,
  input  logic [15:0]         total_i,
  output logic                list_re_o,
  output logic [5:0]          list_at_o,
  input  lro_buffer_t         list_i,
  output logic                scratch_hold_o,
  output logic                scratch_valid_o,
  input  logic                scratch_ready_i,
  output logic [1:0]          scratch_word_o,
  output logic [DataW-1:0]    scratch_data_o,
  input  logic [15:0]         scratch_ptr_i,
  output logic                cmd_valid_o,
  input  logic                cmd_ready_i,
  output dma_wr_cmd_t         cmd_o,
  output logic                cmd_last_o,
  output logic                tok_valid_o,
  input  logic                tok_ready_i,
  output lro_buffer_t         tok_o,
  output logic                tok_publish_o
);
  typedef logic [Contexts-1:0] set_t;
  set_t            set_q, forget_q;
  logic            picked_q, closing_q, start, done;
  lro_cause_e      cause_q;
  logic [CtxW-1:0] ctx_q, lowest;
  set_t            this_one;

  always_comb begin
    lowest = '0;
    for (int i = int'(Contexts) - 1; i >= 0; i--) if (set_q[i]) lowest = CtxW'(i);
    this_one        = '0;
    this_one[ctx_q] = 1'b1;
  end
  assign start     = picked_q && !closing_q;
  assign busy_o    = (set_q != '0);
  assign closing_o = closing_q;
  assign forget_o  = forget_q;
  assign ctx_o     = ctx_q;
  assign closed_o  = done;
  assign counted_o = done && ((forget_q & this_one) == '0);
  assign cause_o   = cause_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      set_q     <= '0;
      forget_q  <= '0;
      picked_q  <= 1'b0;
      closing_q <= 1'b0;
    end else begin
      if (load_i) set_q <= set_i;
      else if (done) set_q <= set_q & ~this_one;
      forget_q  <= (forget_q | (forget_i ? forget_set_i : '0)) & ~(done ? this_one : '0);
      picked_q  <= busy_o && !done;
      closing_q <= start || (closing_q && !done);
    end
  end
  always_ff @(posedge clk_i) begin
    if (!closing_q && !picked_q) ctx_q <= lowest;
    if (load_i) cause_q <= cause_i;
  end

  lro_close #(.DataW(DataW), .Relaxed(Relaxed)) u_close (
    .clk_i, .rst_ni, .fn_rst_i,
    .start_i (start),
    .push_i  (cause_q == LroPush),
    .forget_i((forget_q & this_one) != '0),
    .done_o  (done),
    .free_i,
    .first_i, .head_i, .end_i, .size_i, .total_i, .list_re_o, .list_at_o, .list_i,
    .scratch_hold_o, .scratch_valid_o, .scratch_ready_i, .scratch_word_o, .scratch_data_o,
    .scratch_ptr_i, .cmd_valid_o, .cmd_last_o, .cmd_ready_i, .cmd_o, .tok_valid_o, .tok_ready_i,
    .tok_o, .tok_publish_o
  );

  `FERRONIC_ASSERT(OpenOnes, !start || (open_i & this_one) != '0, clk_i, rst_ni)
  `FERRONIC_ASSERT(OneSetAtATime, !load_i || set_q == '0, clk_i, rst_ni)
endmodule
