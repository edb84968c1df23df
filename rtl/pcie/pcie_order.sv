// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Holds a packet until every posted TLP that was accepted before it has been taken by the link, so
// that a read or a completion never passes an earlier write. One instance for reads, one for
// completions. Posted TLPs never wait for this block.
//
// What was accepted before a packet or together with it is known a cycle later, when the packet is
// here: `in_flight_i` is looked at in the first cycle of a packet, and counted down from then on.
//
// Latency one cycle when no write is under way, throughput one packet in two cycles. Both ready and
// valid come from registers, here or in pcie_posted_arb.
`include "ferronic_assert.svh"
module pcie_order #(
  parameter int unsigned Width = 64
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic [3:0]       in_flight_i,  // posted TLPs under way, accepted before this cycle
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
  logic             fresh_q;  // it came a cycle ago
  logic [3:0]       wait_q;
  logic [Width-1:0] data_q;
  // Earlier posted TLPs that the link has not taken.
  wire  [3:0]       earlier = fresh_q ? in_flight_i : wait_q;

  assign in_ready_o  = !held_q;
  assign out_valid_o = held_q && (earlier == '0);
  assign out_data_o  = data_q;
  assign idle_o      = !held_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      held_q  <= 1'b0;
      fresh_q <= 1'b0;
      wait_q  <= '0;
    end else begin
      held_q  <= held_q ? !(out_valid_o && out_ready_i) : in_valid_i;
      fresh_q <= !held_q;
      wait_q  <= earlier - {3'b0, retired_i && earlier != '0};
    end
  end

  always_ff @(posedge clk_i) begin
    if (!held_q) data_q <= in_data_i;
  end

  `FERRONIC_ASSERT(WaitBounded, !held_q || earlier <= in_flight_i, clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(OutStable, out_valid_o, out_ready_i, out_data_o, clk_i, rst_ni)
endmodule
