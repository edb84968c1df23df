// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Contexts by age: a list of those that are open, the oldest first, linked both ways in LUT RAM.
//
// One `open_i` or one `close_i` a cycle; none in the cycle behind a `close_i`. `oldest_o` is valid
// from the second cycle after, unless the list is empty.
//
// Invariants: a context is on the list once, from `open_i` to `close_i`.
`include "ferronic_assert.svh"
module lro_order #(
  parameter int unsigned Contexts = 16,
  localparam int unsigned CtxW = $clog2(Contexts)
) (
  input  logic            clk_i,
  input  logic            rst_ni,
  input  logic            clr_i,
  input  logic            open_i,
  input  logic            close_i,
  input  logic [CtxW-1:0] ctx_i,
  output logic [CtxW-1:0] oldest_o,

  // The oldest of some: looked for from the oldest of all on, one a cycle, anew if one comes or
  // goes.
  input  logic                find_i,
  input  logic [Contexts-1:0] among_i,   // open ones
  output logic                found_o,
  output logic [CtxW-1:0]     at_o
);
  typedef logic [CtxW-1:0] ctx_t;
  ctx_t          head_q, tail_q;
  logic [CtxW:0] count_q;
  logic          cut_q;             // a context leaves
  ctx_t          ctx_q, next_q, prev_q;
  ctx_t          next_l, prev_l;
  wire           is_head = (head_q == ctx_q), is_tail = (tail_q == ctx_q);

  // The link of the last to the new one; of the one before to the one behind.
  prim_lutram #(.Width(CtxW), .Depth(Contexts)) u_next (
    .clk_i, .we_i(open_i || (cut_q && !is_head)), .waddr_i(cut_q ? prev_q : tail_q),
    .wdata_i(cut_q ? next_q : ctx_i), .raddr_i(ctx_i), .rdata_o(next_l));
  prim_lutram #(.Width(CtxW), .Depth(Contexts)) u_prev (
    .clk_i, .we_i(open_i || (cut_q && !is_tail)), .waddr_i(cut_q ? next_q : ctx_i),
    .wdata_i(cut_q ? prev_q : tail_q), .raddr_i(ctx_i), .rdata_o(prev_l));

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) begin
      count_q <= '0;
      cut_q   <= 1'b0;
    end else begin
      count_q <= count_q + (CtxW + 1)'(open_i) - (CtxW + 1)'(close_i);
      cut_q   <= close_i;
    end
  end
  always_ff @(posedge clk_i) begin
    ctx_q  <= ctx_i;
    next_q <= next_l;
    prev_q <= prev_l;
    if (open_i) begin
      tail_q <= ctx_i;
      if (count_q == '0) head_q <= ctx_i;
    end else if (cut_q) begin
      if (is_head) head_q <= next_q;
      if (is_tail) tail_q <= prev_q;
    end
  end
  assign oldest_o = head_q;

  // One that has just left is not among those looked for, and its link is good for another cycle.
  ctx_t at_q, next_at;
  prim_lutram #(.Width(CtxW), .Depth(Contexts)) u_next_at (
    .clk_i, .we_i(open_i || (cut_q && !is_head)), .waddr_i(cut_q ? prev_q : tail_q),
    .wdata_i(cut_q ? next_q : ctx_i), .raddr_i(at_q), .rdata_o(next_at));
  always_ff @(posedge clk_i) begin
    at_q <= (!find_i || open_i || close_i || cut_q) ? head_q : next_at;
  end
  assign found_o = among_i[at_q];
  assign at_o    = at_q;

  `FERRONIC_ASSERT(OneAtATime, !(open_i && close_i) && !(cut_q && (open_i || close_i)), clk_i,
                   rst_ni)
  `FERRONIC_ASSERT(NeverBelowNone, !close_i || count_q != '0, clk_i, rst_ni)
endmodule
