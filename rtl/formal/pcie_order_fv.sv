// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Proof of pcie_order behind pcie_posted_arb, without bound: a read is offered only after every
// posted TLP that was accepted before it, or with it, was taken whole by the link; it is offered
// at the latest when no posted TLP is under way; reads come out once each, in order and unchanged.
// Posted TLPs of three sources leave whole, once each and in the order of acceptance.
//
// One posted TLP is followed, chosen at will by `pick_i`. Assumed: sources keep what they offer
// until it is taken and frame their TLPs; no halt (what is swallowed then is never accepted).
module pcie_order_fv
  import ferronic_pkg::*;
  import pcie_pkg::*;
#(
  parameter int unsigned Width = 4
) (
  input logic        clk_i,
  input logic        msix_valid_i,
  input logic [ 1:0] msix_data_i,
  input logic        ctl_valid_i,
  input logic        ctl_last_i,
  input logic [ 1:0] ctl_data_i,
  input logic        dma_valid_i,
  input logic        dma_eop_i,
  input logic [ 1:0] dma_data_i,
  input logic        pt_ready_i,
  input logic        rd_valid_i,
  input logic [Width-1:0] rd_data_i,
  input logic        np_ready_i,
  input logic        pick_i,
  input logic        pick_rd_i
);
  logic rst_n = 1'b0;
  always_ff @(posedge clk_i) rst_n <= 1'b1;

  logic       msix_ready, ctl_ready, dma_ready;
  logic       ctl_inside_q, dma_inside_q;
  logic [3:0] in_flight;
  logic       retired;
  logic       pt_valid, pt_sop, pt_eop;
  logic [63:0] pt_data;

  pcie_posted_arb #(.DataW(64)) u_arb (
    .clk_i,
    .rst_ni      (rst_n),
    .halt_i      (1'b0),
    .fn_rst_i    (1'b0),
    .requester_i ('0),
    .idle_o      (),
    .in_flight_o (in_flight),
    .retired_o   (retired),
    .msix_valid_i,
    .msix_ready_o(msix_ready),
    .msix_addr_i ('0),
    .msix_data_i (32'(msix_data_i)),
    .ctl_valid_i,
    .ctl_ready_o (ctl_ready),
    .ctl_hdr_i   ('0),
    .ctl_last_i,
    .ctl_data_i  (64'(ctl_data_i)),
    .dma_valid_i,
    .dma_ready_o (dma_ready),
    .dma_sop_i   (!dma_inside_q),
    .dma_eop_i,
    .dma_req_i   ('0),
    .dma_data_i  (64'(dma_data_i)),
    .pt_valid_o  (pt_valid),
    .pt_ready_i,
    .pt_sop_o    (pt_sop),
    .pt_eop_o    (pt_eop),
    .pt_hdr_o    (),
    .pt_data_o   (pt_data)
  );

  logic             rd_ready, np_valid, np_idle;
  logic [Width-1:0] np_data;

  pcie_order #(.Width(Width)) u_dut (
    .clk_i,
    .rst_ni     (rst_n),
    .in_flight_i(in_flight),
    .retired_i  (retired),
    .idle_o     (np_idle),
    .in_valid_i (rd_valid_i),
    .in_ready_o (rd_ready),
    .in_data_i  (rd_data_i),
    .out_valid_o(np_valid),
    .out_ready_i(np_ready_i),
    .out_data_o (np_data)
  );

  // ---------------------------------------------------------------- assumptions: streams
  logic        msix_wait_q, ctl_wait_q, dma_wait_q, ctl_last_q, dma_eop_q;
  logic [ 1:0] msix_data_q;
  logic [ 1:0] ctl_data_q, dma_data_q;

  always_ff @(posedge clk_i) begin
    msix_wait_q <= rst_n && msix_valid_i && !msix_ready;
    ctl_wait_q  <= rst_n && ctl_valid_i && !ctl_ready;
    dma_wait_q  <= rst_n && dma_valid_i && !dma_ready;
    msix_data_q <= msix_data_i;
    ctl_last_q  <= ctl_last_i;
    ctl_data_q  <= ctl_data_i;
    dma_eop_q   <= dma_eop_i;
    dma_data_q  <= dma_data_i;
    if (!rst_n) begin
      ctl_inside_q <= 1'b0;
      dma_inside_q <= 1'b0;
    end else begin
      if (ctl_valid_i && ctl_ready) ctl_inside_q <= !ctl_last_i;
      if (dma_valid_i && dma_ready) dma_inside_q <= !dma_eop_i;
    end
  end

  always_comb begin
    if (rst_n && msix_wait_q) assume (msix_valid_i && msix_data_i == msix_data_q);
    if (rst_n && ctl_wait_q)
      assume (ctl_valid_i && ctl_data_i == ctl_data_q && ctl_last_i == ctl_last_q);
    if (rst_n && dma_wait_q)
      assume (dma_valid_i && dma_data_i == dma_data_q && dma_eop_i == dma_eop_q);
  end

  // ---------------------------------------------------------------- the followed TLP
  wire begins = (msix_valid_i && msix_ready) || (ctl_valid_i && ctl_ready && !ctl_inside_q) ||
                (dma_valid_i && dma_ready && !dma_inside_q);
  wire [1:0] word = (msix_valid_i && msix_ready) ? msix_data_i :
                      (ctl_valid_i && ctl_ready) ? ctl_data_i : dma_data_i;
  wire leaves = pt_valid && pt_ready_i && pt_eop;

  logic [2:0]  flight_q;       // accepted and not yet taken whole
  logic        follow_q;
  logic [2:0]  ahead_q;
  logic [1:0]  first_q;
  logic        older_q;        // the followed TLP is older than the read that waits
  logic        inside_q;       // between the beats of a TLP on the link

  wire follow_new  = begins && pick_i && !follow_q;
  wire follow_ends = follow_q && leaves && (ahead_q == '0);
  // A TLP of one beat that is accepted now leaves the register slice later at the earliest.
  wire follow_now  = follow_q ? !follow_ends : follow_new;

  always_ff @(posedge clk_i or negedge rst_n) begin
    if (!rst_n) begin
      flight_q <= '0;
      follow_q <= 1'b0;
      ahead_q  <= '0;
      first_q  <= '0;
      older_q  <= 1'b0;
      inside_q <= 1'b0;
    end else begin
      flight_q <= flight_q + 3'(begins) - 3'(leaves);
      follow_q <= follow_now;
      if (follow_new) begin
        ahead_q <= flight_q - 3'(leaves);
        first_q <= word;
      end else if (leaves) begin
        ahead_q <= ahead_q - 1'b1;
      end
      if (rd_valid_i && rd_ready) older_q <= follow_now;
      else if (!follow_now) older_q <= 1'b0;
      if (pt_valid && pt_ready_i) inside_q <= !pt_eop;
    end
  end

  // ---------------------------------------------------------------- reads
  logic             held;
  stream_check_fv #(.Width(Width), .Depth(1), .Prompt(1'b0)) u_reads (
    .clk_i,
    .rst_ni     (rst_n),
    .clr_i      (1'b0),
    .in_valid_i (rd_valid_i),
    .in_ready_i (rd_ready),
    .in_data_i  (rd_data_i),
    .out_valid_i(np_valid),
    .out_ready_i(np_ready_i),
    .out_data_i (np_data),
    .pick_i     (pick_rd_i),
    .count_o    (held)
  );

  always_ff @(posedge clk_i) begin
    if (rst_n) begin
      NeverPasses: assert (!(np_valid && older_q));
      OffersAtLast: assert (!(held && flight_q == '0) || np_valid);
      Idle: assert (np_idle == !held);
      Counts: assert (in_flight == 4'(flight_q));
      Framed: assert (!pt_valid || (pt_sop == !inside_q));
      NothingFromNothing: assert (!pt_valid || flight_q != '0);
      if (follow_q && ahead_q == '0 && pt_valid && pt_sop)
        PostedInOrder: assert (pt_data[1:0] == first_q);
      OneBegins: assert ($countones({msix_valid_i && msix_ready, ctl_valid_i && ctl_ready,
                                     dma_valid_i && dma_ready}) <= 1);
    end
  end
endmodule
