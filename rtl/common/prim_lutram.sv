// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Small distributed RAM: one write port, one asynchronous read port. For per-queue words that must
// be seen in the same cycle. A read of the address being written returns the OLD word. Contents are
// unknown until written, unless ZeroInit.
module prim_lutram #(
  parameter int unsigned Width = 16,
  parameter int unsigned Depth = 16,
  parameter bit          ZeroInit = 1'b0,  // zero after configuration of the FPGA
  localparam int unsigned AddrW = (Depth > 1) ? $clog2(Depth) : 1
) (
  input  logic             clk_i,
  input  logic             we_i,
  input  logic [AddrW-1:0] waddr_i,
  input  logic [Width-1:0] wdata_i,
  input  logic [AddrW-1:0] raddr_i,
  output logic [Width-1:0] rdata_o
);
  (* ram_style = "distributed" *)
  logic [Width-1:0] mem[Depth];

  if (ZeroInit) begin : g_zero
    initial for (int i = 0; i < int'(Depth); i++) mem[i] = '0;
  end

  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
  end

  assign rdata_o = mem[raddr_i];
endmodule
