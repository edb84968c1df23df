// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The one RAM template of the design: one write port, one read port, read data one cycle after
// `re_i`, held while `re_i` is low. Contents are unknown until written, unless ZeroInit.
//
// A read of the address that is written in the same cycle returns garbage: block RAM promises
// nothing else, and making it a promise costs a bypass for each RAM. Simulation returns the
// complement of both words' XOR, so that whoever relies on it is found out.
module prim_ram_1r1w #(
  parameter int unsigned Width = 32,
  parameter int unsigned Depth = 512,
  parameter bit          InBlock = 1'b0,   // block RAM even where that is wasteful
  parameter bit          ZeroInit = 1'b0,  // zero after configuration of the FPGA
  // With ZeroInit: what the first words hold instead.
  parameter int unsigned InitWords = 1,
  parameter logic [InitWords-1:0][Width-1:0] Init = '0,
  localparam int unsigned AddrW = (Depth > 1) ? $clog2(Depth) : 1
) (
  input  logic             clk_i,
  input  logic             we_i,
  input  logic [AddrW-1:0] waddr_i,
  input  logic [Width-1:0] wdata_i,
  input  logic             re_i,
  input  logic [AddrW-1:0] raddr_i,
  output logic [Width-1:0] rdata_o
);
  /* verilator lint_off UNUSEDPARAM */ // only synthesis reads the attribute
  localparam Style = InBlock ? "block" : "auto";
  /* verilator lint_on UNUSEDPARAM */
  (* no_rw_check, ram_style = Style *)
  logic [Width-1:0] mem[Depth];

  if (ZeroInit) begin : g_zero
    initial begin
      for (int i = 0; i < int'(Depth); i++) mem[i] = '0;
      for (int i = 0; i < int'(InitWords); i++) mem[i] = Init[i];
    end
  end

  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
  end

`ifdef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (re_i) rdata_o <= mem[raddr_i];
  end
`else
  wire clash = we_i && (waddr_i == raddr_i);
  always_ff @(posedge clk_i) begin
    if (re_i) rdata_o <= clash ? ~(mem[raddr_i] ^ wdata_i) : mem[raddr_i];
  end
`endif
endmodule
