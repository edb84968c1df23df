// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Addresses of the three areas of each virtqueue. Written in halves by the common configuration;
// read by the read requests on one port, by the registers and the used-ring writer on another, the
// registers first. The address comes a cycle after it was asked for.
//
// Only a queue that is not enabled is written, and only one that is enabled is read by the engine.
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

  // Held until the next request.
  input  logic        fetch_re_i,
  input  vq_area_e    fetch_area_i,
  input  qid_t        fetch_q_i,
  output logic [63:0] fetch_addr_o,

  input  logic        reg_re_i,
  input  vq_area_e    reg_area_i,
  input  qid_t        reg_q_i,
  input  logic        used_re_i,
  output logic        used_ready_o,
  input  qid_t        used_q_i,
  output logic [63:0] shared_addr_o
);
  wire [QW+1:0] waddr = {w_area_i, w_q_i[QW-1:0]};
  wire [QW+1:0] raddr = reg_re_i ? {reg_area_i, reg_q_i[QW-1:0]}
                                 : {AreaDevice, used_q_i[QW-1:0]};
  assign used_ready_o = !reg_re_i;

  for (genvar h = 0; h < 2; h++) begin : g_half
    wire we = (h == 0) ? we_lo_i : we_hi_i;
    prim_ram_1r1w #(.Width(32), .Depth(4 * NumQueues), .InBlock(1'b1)) u_fetch (
      .clk_i, .we_i(we), .waddr_i(waddr), .wdata_i,
      .re_i(fetch_re_i), .raddr_i({fetch_area_i, fetch_q_i[QW-1:0]}),
      .rdata_o(fetch_addr_o[32*h +: 32])
    );
    prim_ram_1r1w #(.Width(32), .Depth(4 * NumQueues), .InBlock(1'b1)) u_shared (
      .clk_i, .we_i(we), .waddr_i(waddr), .wdata_i,
      .re_i(reg_re_i || used_re_i), .raddr_i(raddr), .rdata_o(shared_addr_o[32*h +: 32])
    );
  end

  logic unused_q;
  assign unused_q = ^{w_q_i, fetch_q_i, used_q_i, reg_q_i};
endmodule
