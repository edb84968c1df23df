// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Deadlines of open contexts: the gap since the last segment, the hold time since the first,
// whichever ends first. All are looked at in turn, one a cycle, so that one is found at most
// Contexts + 2 cycles late. What a look finds may be older than a touch of its context within three
// cycles; then it does not count, except that no touch but a first one moves the end of the hold
// time: so that is found at most a round later still, however often segments come. It is offered
// with `due_o` until it closes or, if it is due by the gap, another segment comes to it.
//
// Times are the low 25 bits of the time base; both settings are below 2^23, so that differences
// tell what is over, even if a context is closed late. For skipping idle time: after a whole round
// without a change `left_o` is how long nothing will be due, and `settled_o` rises.
//
// Invariants: only an open context is due.
`include "ferronic_assert.svh"
module lro_timer
  import ferronic_pkg::*;
#(
  parameter int unsigned Contexts = 16,
  localparam int unsigned CtxW = $clog2(Contexts)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic                fn_rst_i,
  input  logic [24:0]         time_i,
  input  logic [23:0]         gap_i,
  input  logic [23:0]         hold_i,
  input  logic [Contexts-1:0] open_i,

  input  logic                touch_i,     // a segment came to `ctx_i`
  input  logic                first_i,     // and it is its first
  input  logic [CtxW-1:0]     ctx_i,

  output logic                due_o,
  output logic [CtxW-1:0]     due_ctx_o,
  output logic                due_hold_o,  // by the hold time
  output logic                settled_o,
  output logic [24:0]         left_o
);
  typedef logic [CtxW-1:0] ctx_t;
  typedef struct packed {
    logic        hold;
    logic [24:0] at;
  } deadline_t;

  // ---------------------------------------------------------------- set
  logic        touch_q, first_q;
  ctx_t        ctx_q;
  logic [24:0] gap_end_q, hold_end_q, hold_end, hold_old;
  always_ff @(posedge clk_i) begin
    touch_q    <= touch_i && rst_ni;
    first_q    <= first_i;
    ctx_q      <= ctx_i;
    gap_end_q  <= time_i + 25'(gap_i);
    hold_end_q <= time_i + 25'(hold_i);
  end
  prim_lutram #(.Width(25), .Depth(Contexts)) u_hold (
    .clk_i, .we_i(touch_q && first_q), .waddr_i(ctx_q), .wdata_i(hold_end_q), .raddr_i(ctx_q),
    .rdata_o(hold_old));
  assign hold_end = first_q ? hold_end_q : hold_old;
  wire [24:0] apart = hold_end - gap_end_q;
  logic [24:0] apart_q, hold_at_q, gap_at_q;
  logic        touch2_q, touch3_q, first2_q, first3_q;
  ctx_t        ctx2_q, ctx3_q;
  always_ff @(posedge clk_i) begin
    touch2_q  <= touch_q && rst_ni;
    touch3_q  <= touch2_q && rst_ni;
    first2_q  <= first_q;
    first3_q  <= first2_q;
    ctx2_q    <= ctx_q;
    ctx3_q    <= ctx2_q;
    apart_q   <= apart;
    hold_at_q <= hold_end;
    gap_at_q  <= gap_end_q;
  end
  wire        by_hold = apart_q[24] || (apart_q == '0);
  deadline_t  set, look;
  assign set = '{hold: by_hold, at: by_hold ? hold_at_q : gap_at_q};

  // ---------------------------------------------------------------- looked at
  ctx_t        scan_q, look_q;
  deadline_t   found_q;
  logic        valid_q;
  logic [24:0] left, late, now_q;
  prim_lutram #(.Width($bits(deadline_t)), .Depth(Contexts)) u_deadline (
    .clk_i, .we_i(touch2_q), .waddr_i(ctx2_q), .wdata_i(set), .raddr_i(scan_q), .rdata_o(look));
  assign left = found_q.at - time_i;
  // What is due may be seen a cycle later; the time comes from far.
  always_ff @(posedge clk_i) now_q <= time_i;
  assign late = found_q.at - now_q;
  wire over   = late[24] || (late == '0);

  // Of this round: the next deadline, and whether anything changed.
  logic [24:0]   next_q;
  logic          some_q;
  logic [CtxW+1:0] quiet_q;       // cycles without a change, up to two rounds
  wire  [24:0]   next_left = next_q - time_i;
  logic [Contexts-1:0] open_q;
  // What was looked up may be older than a touch, and moved by it.
  function automatic logic moved(input ctx_t ctx, input logic hold);
    moved = (touch_i && ctx_i == ctx && !(hold && !first_i)) ||
            (touch_q && ctx_q == ctx && !(hold && !first_q)) ||
            (touch2_q && ctx2_q == ctx && !(hold && !first2_q)) ||
            (touch3_q && ctx3_q == ctx && !(hold && !first3_q));
  endfunction
  wire           change = touch_i || touch_q || touch2_q || touch3_q || (open_q != open_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      scan_q    <= '0;
      valid_q   <= 1'b0;
      due_o     <= 1'b0;
      quiet_q   <= '0;
      some_q    <= 1'b0;
    end else begin
      scan_q  <= scan_q + 1'b1;
      valid_q <= open_i[scan_q];
      if (due_o) due_o <= open_i[due_ctx_o] && !moved(due_ctx_o, due_hold_o);
      else       due_o <= valid_q && over && open_i[look_q] &&
                          !moved(look_q, found_q.hold);
      if (change) begin
        quiet_q <= '0;
        some_q  <= 1'b0;
      end else begin
        if (!quiet_q[CtxW+1]) quiet_q <= quiet_q + 1'b1;
        if (valid_q) some_q <= 1'b1;
      end
    end
  end
  always_ff @(posedge clk_i) begin
    open_q     <= open_i;
    look_q     <= scan_q;
    found_q    <= look;
    if (!due_o) begin
      due_ctx_o  <= look_q;
      due_hold_o <= found_q.hold;
    end
    if (valid_q && (!some_q || $signed(left) < $signed(next_left))) next_q <= found_q.at;
  end
  assign settled_o = (open_i == '0) || (quiet_q[CtxW+1] && !due_o && !(valid_q && over));
  assign left_o    = (some_q && !next_left[24]) ? next_left : '0;

  `FERRONIC_ASSERT(SettingsInRange, !gap_i[23] && !hold_i[23], clk_i, rst_ni)
endmodule
