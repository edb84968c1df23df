// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Proof of prim_skid, without bound: see stream_check_fv, with room for two words. Assumed:
// nothing but one reset at the start. `clr_i` may come at any time.
module prim_skid_fv #(
  parameter int unsigned Width = 4
) (
  input logic             clk_i,
  input logic             clr_i,
  input logic             in_valid_i,
  input logic [Width-1:0] in_data_i,
  input logic             out_ready_i,
  input logic             pick_i
);
  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic             in_ready, out_valid;
  logic [Width-1:0] out_data;
  logic [1:0]       count;

  prim_skid #(.Width(Width)) u_dut (
    .clk_i,
    .rst_ni     (rst_n),
    .clr_i,
    .in_valid_i,
    .in_ready_o (in_ready),
    .in_data_i,
    .out_valid_o(out_valid),
    .out_ready_i,
    .out_data_o (out_data)
  );

  stream_check_fv #(.Width(Width), .Depth(2)) u_check (
    .clk_i,
    .rst_ni     (rst_n),
    .clr_i,
    .in_valid_i,
    .in_ready_i (in_ready),
    .in_data_i,
    .out_valid_i(out_valid),
    .out_ready_i,
    .out_data_i (out_data),
    .pick_i,
    .count_o    (count)
  );

  logic unused;
  assign unused = ^count;
endmodule
