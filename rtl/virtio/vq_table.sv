// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Addresses of the three areas of each virtqueue. Written in halves by the common configuration;
// read combinationally by the read requests, the used-ring writer and the registers.
module vq_table
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned NumQueues = 8,
  localparam int unsigned QW = $clog2(NumQueues)
) (
  input  logic        clk_i,
  input  logic        we_lo_i,
  input  logic        we_hi_i,
  input  vq_area_e    w_area_i,
  input  qid_t        w_q_i,
  input  logic [31:0] wdata_i,

  input  vq_area_e    fetch_area_i,
  input  qid_t        fetch_q_i,
  output logic [63:0] fetch_addr_o,

  input  qid_t        used_q_i,
  output logic [63:0] used_addr_o,

  input  vq_area_e    reg_area_i,
  input  qid_t        reg_q_i,
  output logic [63:0] reg_addr_o
);
  wire [QW+1:0] waddr = {w_area_i, w_q_i[QW-1:0]};

  for (genvar h = 0; h < 2; h++) begin : g_half
    wire we = (h == 0) ? we_lo_i : we_hi_i;
    prim_lutram #(.Width(32), .Depth(4 * NumQueues)) u_fetch (
      .clk_i, .we_i(we), .waddr_i(waddr), .wdata_i,
      .raddr_i({fetch_area_i, fetch_q_i[QW-1:0]}), .rdata_o(fetch_addr_o[32*h +: 32])
    );
    prim_lutram #(.Width(32), .Depth(4 * NumQueues)) u_reg (
      .clk_i, .we_i(we), .waddr_i(waddr), .wdata_i,
      .raddr_i({reg_area_i, reg_q_i[QW-1:0]}), .rdata_o(reg_addr_o[32*h +: 32])
    );
    prim_lutram #(.Width(32), .Depth(NumQueues)) u_used (
      .clk_i, .we_i(we && w_area_i == AreaDevice), .waddr_i(w_q_i[QW-1:0]), .wdata_i,
      .raddr_i(used_q_i[QW-1:0]), .rdata_o(used_addr_o[32*h +: 32])
    );
  end

  logic unused_q;
  assign unused_q = ^{w_q_i, fetch_q_i, used_q_i, reg_q_i};
endmodule
