// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Proof of prim_fifo, without bound: see stream_check_fv; and `level_o` counts the words held.
// Assumed: nothing but one reset at the start. `clr_i` may come at any time.
module prim_fifo_fv #(
  parameter int unsigned Width = 4,
  parameter int unsigned Depth = 4
) (
  input logic             clk_i,
  input logic             clr_i,
  input logic             wr_valid_i,
  input logic [Width-1:0] wr_data_i,
  input logic             rd_ready_i,
  input logic             pick_i
);
  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic                   wr_ready, rd_valid;
  logic [Width-1:0]       rd_data;
  logic [$clog2(Depth):0] level, count;

  prim_fifo #(.Width(Width), .Depth(Depth)) u_dut (
    .clk_i,
    .rst_ni    (rst_n),
    .clr_i,
    .wr_valid_i,
    .wr_ready_o(wr_ready),
    .wr_data_i,
    .rd_valid_o(rd_valid),
    .rd_ready_i,
    .rd_data_o (rd_data),
    .level_o   (level)
  );

  stream_check_fv #(.Width(Width), .Depth(Depth)) u_check (
    .clk_i,
    .rst_ni     (rst_n),
    .clr_i,
    .in_valid_i (wr_valid_i),
    .in_ready_i (wr_ready),
    .in_data_i  (wr_data_i),
    .out_valid_i(rd_valid),
    .out_ready_i(rd_ready_i),
    .out_data_i (rd_data),
    .pick_i,
    .count_o    (count)
  );

  always_ff @(posedge clk_i) begin
    if (rst_n) LevelIsCount: assert (level == count);
  end
endmodule
