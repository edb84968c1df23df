// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Synchronous FIFO on distributed RAM, first word falls through. Latency one cycle, throughput one
// word a cycle. `wr_ready_o` and `rd_valid_o` depend on registers only. `clr_i` empties it.
//
// Invariant: 0 <= level <= Depth; a word offered stays until taken.
`include "ferronic_assert.svh"
module prim_fifo #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 16,
  localparam int unsigned PtrW = (Depth > 1) ? $clog2(Depth) : 1
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             clr_i,
  input  logic             wr_valid_i,
  output logic             wr_ready_o,
  input  logic [Width-1:0] wr_data_i,
  output logic             rd_valid_o,
  input  logic             rd_ready_i,
  output logic [Width-1:0] rd_data_o,
  output logic [PtrW:0]    level_o
);
  if (Depth < 2 || (Depth & (Depth - 1)) != 0) begin : g_bad_depth
    $error("%m: Depth (%0d) must be a power of two, at least 2", Depth);
  end

  logic [PtrW:0] wptr_q, rptr_q;
  wire push = wr_valid_i && wr_ready_o;
  wire pop  = rd_valid_o && rd_ready_i;

  assign level_o    = wptr_q - rptr_q;
  assign wr_ready_o = (wptr_q != {!rptr_q[PtrW], rptr_q[PtrW-1:0]});
  assign rd_valid_o = (wptr_q != rptr_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wptr_q <= '0;
      rptr_q <= '0;
    end else if (clr_i) begin
      wptr_q <= '0;
      rptr_q <= '0;
    end else begin
      if (push) wptr_q <= wptr_q + 1'b1;
      if (pop) rptr_q <= rptr_q + 1'b1;
    end
  end

  prim_lutram #(.Width(Width), .Depth(Depth)) u_mem (
    .clk_i,
    .we_i   (push),
    .waddr_i(wptr_q[PtrW-1:0]),
    .wdata_i(wr_data_i),
    .raddr_i(rptr_q[PtrW-1:0]),
    .rdata_o(rd_data_o)
  );

  `FERRONIC_ASSERT(LevelInRange, level_o <= (PtrW + 1)'(Depth), clk_i, rst_ni)
endmodule
