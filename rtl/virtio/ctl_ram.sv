// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The control RAM: rings and descriptors land here from DMA reads, and the virtqueue engine reads
// them as 64-bit words. Whole DWs are written; the map in vq_pkg keeps users out of each other's
// DWs.
//
// Readers are served by fixed priority, the lowest number first; a granted read's data is valid in
// the next cycle. One word a cycle in all.
module ctl_ram
  import vq_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned Readers = 4,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned WordAddrW = $clog2(CtlRamBytes / Lanes)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,
  input  logic [Lanes-1:0]       we_i,
  input  logic [WordAddrW-1:0]   waddr_i,
  input  logic [Lanes-1:0]       winc_i,
  input  logic [DataW-1:0]       wdata_i,
  input  logic [Readers-1:0]     req_i,
  input  logic [Readers-1:0][8:0] addr_i,  // 64-bit words
  output logic [Readers-1:0]     gnt_o,
  output logic [Readers-1:0]     valid_o,
  output logic [63:0]            data_o
);
  localparam int unsigned Dws = DataW / 32;
  localparam int unsigned SelW = (DataW > 64) ? $clog2(DataW / 64) : 1;

  logic [8:0] raddr;
  logic       found;

  always_comb begin
    gnt_o = '0;
    raddr = '0;
    found = 1'b0;
    for (int r = 0; r < int'(Readers); r++) begin
      if (req_i[r] && !found) begin
        gnt_o[r] = 1'b1;
        raddr    = addr_i[r];
        found    = 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_o <= '0;
    else valid_o <= gnt_o;
  end

  wire [WordAddrW-1:0] waddr_next = waddr_i + 1'b1;
  logic [DataW-1:0] rdata;

  for (genvar d = 0; d < int'(Dws); d++) begin : g_dw
    prim_ram_1r1w #(.Width(32), .Depth(1 << WordAddrW)) u_ram (
      .clk_i,
      .we_i   (|we_i[4*d +: 4]),
      .waddr_i(winc_i[4*d] ? waddr_next : waddr_i),
      .wdata_i(wdata_i[32*d +: 32]),
      .re_i   (found),
      .raddr_i(raddr[8 -: WordAddrW]),
      .rdata_o(rdata[32*d +: 32])
    );
  end

  if (DataW > 64) begin : g_select
    logic [SelW-1:0] sel_q;
    always_ff @(posedge clk_i) if (found) sel_q <= raddr[SelW-1:0];
    assign data_o = rdata[64*sel_q +: 64];
  end else begin : g_whole
    assign data_o = rdata;
  end

  // The three lower lanes of a DW never differ from its first in address.
  logic unused_winc;
  assign unused_winc = ^winc_i;
endmodule
