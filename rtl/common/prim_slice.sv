// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// One-entry register slice for a valid/ready stream: outputs and `in_ready_o` come from registers,
// a word every other cycle, latency one cycle. Half the size of prim_skid. `clr_i` empties it.
`include "ferronic_assert.svh"
module prim_slice #(
  parameter int unsigned Width = 8
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             clr_i,
  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [Width-1:0] in_data_i,
  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [Width-1:0] out_data_o
);
  assign in_ready_o = !out_valid_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) out_valid_o <= 1'b0;
    else out_valid_o <= out_valid_o ? !out_ready_i : in_valid_i;
  end

  always_ff @(posedge clk_i) begin
    if (!out_valid_o) out_data_o <= in_data_i;
  end

  `FERRONIC_ASSERT_STABLE(OutStable, out_valid_o, out_ready_i || clr_i, out_data_o, clk_i, rst_ni)
endmodule
