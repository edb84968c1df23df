// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Holds a packet until every posted TLP that was accepted before it has been taken by the link, so
// that a read or a completion never passes an earlier write. One instance for reads, one for
// completions. Posted TLPs never wait for this block.
//
// Latency one cycle when no write is under way, throughput one packet in two cycles. Both ready and
// valid come from registers.
`include "ferronic_assert.svh"
module pcie_order #(
  parameter int unsigned Width = 64
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [3:0]       in_flight_i,  // posted TLPs under way, this cycle's acceptance included
  input  logic             retired_i,    // the link took one in this cycle
  output logic             idle_o,

  input  logic             in_valid_i,
  output logic             in_ready_o,
  input  logic [Width-1:0] in_data_i,

  output logic             out_valid_o,
  input  logic             out_ready_i,
  output logic [Width-1:0] out_data_o
);
  logic             held_q;
  logic [3:0]       wait_q;   // earlier posted TLPs that the link has not taken
  logic [Width-1:0] data_q;

  assign in_ready_o  = !held_q;
  assign out_valid_o = held_q && (wait_q == '0);
  assign out_data_o  = data_q;
  assign idle_o      = !held_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q <= 1'b0;
      wait_q <= '0;
    end else if (!held_q) begin
      held_q <= in_valid_i;
      wait_q <= in_flight_i - {3'b0, retired_i};
    end else begin
      if (out_valid_o && out_ready_i) held_q <= 1'b0;
      if (retired_i && wait_q != '0) wait_q <= wait_q - 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!held_q) data_q <= in_data_i;
  end

  `FERRONIC_ASSERT(WaitBounded, !held_q || wait_q <= in_flight_i, clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(OutStable, out_valid_o, out_ready_i, out_data_o, clk_i, rst_ni)
endmodule
