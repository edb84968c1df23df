// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Two-entry register slice for a valid/ready stream: outputs and `in_ready_o` come from registers,
// one word a cycle, latency one cycle. `clr_i` empties it.
`include "ferronic_assert.svh"
module prim_skid #(
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
  logic             out_valid_q, skid_valid_q;
  logic [Width-1:0] out_q, skid_q;

  assign in_ready_o  = !skid_valid_q;
  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q  <= 1'b0;
      skid_valid_q <= 1'b0;
    end else if (clr_i) begin
      out_valid_q  <= 1'b0;
      skid_valid_q <= 1'b0;
    end else if (out_ready_i || !out_valid_q) begin
      out_valid_q  <= skid_valid_q || in_valid_i;
      skid_valid_q <= 1'b0;
    end else if (in_valid_i) begin
      skid_valid_q <= 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (out_ready_i || !out_valid_q) out_q <= skid_valid_q ? skid_q : in_data_i;
    if (!skid_valid_q) skid_q <= in_data_i;
  end

  `FERRONIC_ASSERT_STABLE(OutStable, out_valid_o, out_ready_i || clr_i, out_data_o, clk_i, rst_ni)
endmodule
