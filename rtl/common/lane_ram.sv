// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// RAM of byte lanes with an address of its own for each lane, so that a beat may start at any byte:
// lane `l` uses word `addr + inc[l]`. One write and one read a cycle, read data one cycle after
// `re_i`. Data is not rotated here; lane `l` always holds bytes with address = l mod Lanes.
module lane_ram #(
  parameter int unsigned DataW = 64,
  parameter int unsigned Bytes = 16384,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned Words = Bytes / Lanes,
  localparam int unsigned AddrW = $clog2(Words)
) (
  input  logic             clk_i,
  input  logic [Lanes-1:0] we_i,
  input  logic [AddrW-1:0] waddr_i,
  input  logic [Lanes-1:0] winc_i,
  input  logic [DataW-1:0] wdata_i,
  input  logic             re_i,
  input  logic [AddrW-1:0] raddr_i,
  input  logic [Lanes-1:0] rinc_i,
  output logic [DataW-1:0] rdata_o
);
  if (Bytes != (1 << $clog2(Bytes)) || Words < 2) begin : g_bad_size
    $error("%m: Bytes (%0d) must be a power of two of at least two words", Bytes);
  end

  wire [AddrW-1:0] waddr_next = waddr_i + 1'b1;
  wire [AddrW-1:0] raddr_next = raddr_i + 1'b1;

  for (genvar l = 0; l < int'(Lanes); l++) begin : g_lane
    prim_ram_1r1w #(.Width(8), .Depth(Words)) u_ram (
      .clk_i,
      .we_i   (we_i[l]),
      .waddr_i(winc_i[l] ? waddr_next : waddr_i),
      .wdata_i(wdata_i[8*l +: 8]),
      .re_i,
      .raddr_i(rinc_i[l] ? raddr_next : raddr_i),
      .rdata_o(rdata_o[8*l +: 8])
    );
  end
endmodule
