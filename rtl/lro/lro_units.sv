// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// What is kept of each open unit: where its next byte goes, which buffers it has filled, and what
// its headers need when it is closed. LUT RAM, read in the same cycle, but for the list of filled
// buffers in block RAM, read in the next. Every part takes a write a cycle.
//
// Nothing here says whether a unit is open: lro_table does, and what is of a closed one means
// nothing until all parts were written again.
module lro_units
  import ferronic_pkg::*;
  import lro_pkg::*;
#(
  parameter int unsigned Contexts = 16,
  localparam int unsigned CtxW = $clog2(Contexts)
) (
  input  logic             clk_i,

  input  logic [CtxW-1:0]  wctx_i,
  input  logic             first_we_i,    // the address of the first buffer
  input  logic [63:0]      first_i,
  input  logic             head_we_i,     // with its first segment
  input  lro_unit_head_t   head_i,
  input  logic             end_we_i,      // with every segment
  input  lro_unit_end_t    end_i,
  input  logic             list_we_i,     // a buffer is full
  input  logic [5:0]       list_at_i,
  input  lro_buffer_t      list_i,

  input  logic [CtxW-1:0]  rctx_i,
  output logic [63:0]      first_o,
  output lro_unit_head_t   head_o,
  output lro_unit_end_t    end_o,
  input  logic             list_re_i,
  input  logic [5:0]       list_rat_i,
  output lro_buffer_t      list_o
);
  prim_lutram #(.Width(64), .Depth(Contexts)) u_first (
    .clk_i, .we_i(first_we_i), .waddr_i(wctx_i), .wdata_i(first_i), .raddr_i(rctx_i),
    .rdata_o(first_o));
  prim_lutram #(.Width($bits(lro_unit_head_t)), .Depth(Contexts)) u_head (
    .clk_i, .we_i(head_we_i), .waddr_i(wctx_i), .wdata_i(head_i), .raddr_i(rctx_i),
    .rdata_o(head_o));
  prim_lutram #(.Width($bits(lro_unit_end_t)), .Depth(Contexts)) u_end (
    .clk_i, .we_i(end_we_i), .waddr_i(wctx_i), .wdata_i(end_i), .raddr_i(rctx_i),
    .rdata_o(end_o));
  prim_ram_1r1w #(.Width($bits(lro_buffer_t)), .Depth(64 * Contexts), .InBlock(1'b1)) u_list (
    .clk_i, .we_i(list_we_i), .waddr_i({wctx_i, list_at_i}), .wdata_i(list_i),
    .re_i(list_re_i), .raddr_i({rctx_i, list_rat_i}), .rdata_o(list_o));
endmodule
