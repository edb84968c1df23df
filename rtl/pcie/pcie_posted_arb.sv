// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Merges the card's posted writes into one channel, a whole TLP at a time. Who is next is chosen
// as a TLP ends: a message, else a control write (rings), else frame data, and not the one that
// just ended if another waits. One beat a cycle; no bubble between TLPs while there is frame data.
// Latency one cycle, two for what comes when nobody is served. One register to the link: the source
// that is served sees its ready in the same cycle.
//
// `in_flight_o` counts the TLPs that were accepted here and not yet taken whole by the link; a TLP
// counts from the cycle after its first beat on. `halt_i` swallows control writes that have not
// begun, a cycle later.
//
// Because only accepted TLPs count as earlier, a source that wants order must not ask for the later
// thing before the last beat of the earlier one was taken.
`include "ferronic_assert.svh"
module pcie_posted_arb
  import ferronic_pkg::*;
  import pcie_pkg::*;
#(
  parameter int unsigned DataW = 64
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             halt_i,
  input  logic             fn_rst_i,   // the writer of a swallowed TLP may not come to its end
  input  logic [15:0]      requester_i,
  output logic             idle_o,
  output logic [3:0]       in_flight_o,   // accepted before this cycle
  output logic             retired_o,     // the link took the last beat of a TLP in this cycle

  input  logic             msix_valid_i,
  output logic             msix_ready_o,
  input  logic [63:2]      msix_addr_i,
  input  logic [31:0]      msix_data_i,

  input  logic             ctl_valid_i,
  output logic             ctl_ready_o,
  input  ctl_wr_hdr_t      ctl_hdr_i,
  input  logic             ctl_last_i,
  input  logic [DataW-1:0] ctl_data_i,

  input  logic             dma_valid_i,
  output logic             dma_ready_o,
  input  logic             dma_sop_i,
  input  logic             dma_eop_i,
  input  mem_req_t         dma_req_i,
  input  logic [DataW-1:0] dma_data_i,

  output logic             pt_valid_o,
  input  logic             pt_ready_i,
  output logic             pt_sop_o,
  output logic             pt_eop_o,
  output logic [127:0]     pt_hdr_o,
  output logic [DataW-1:0] pt_data_o
);
  typedef enum logic [1:0] {SelMsix, SelCtl, SelDma} sel_e;

  // ---------------------------------------------------------------- which source
  logic locked_q;      // inside a TLP
  sel_e sel_q;         // whose turn it is
  logic halt_q;
  logic ctl_drop_q;    // inside a control write that is being swallowed
  wire  drop_ctl = ctl_drop_q || (halt_q && !(locked_q && sel_q == SelCtl));
  wire  ctl_real = ctl_valid_i && !drop_ctl;

  logic             in_valid, in_ready, in_eop;
  mem_req_t         in_req;
  logic [DataW-1:0] in_data;

  always_comb begin
    unique case (sel_q)
      SelMsix: begin
        in_valid = msix_valid_i;
        in_eop   = 1'b1;
        in_req   = '{addr: msix_addr_i, dw_len: 10'd1, last_be: 4'h0, first_be: 4'hf};
        in_data  = DataW'(msix_data_i);
      end
      SelCtl: begin
        in_valid = ctl_real;
        in_eop   = ctl_last_i;
        in_req   = '{addr: ctl_hdr_i.addr, dw_len: {4'b0, ctl_hdr_i.dw_len},
                     last_be: ctl_hdr_i.last_be, first_be: ctl_hdr_i.first_be};
        in_data  = ctl_data_i;
      end
      default: begin
        in_valid = dma_valid_i;
        in_eop   = dma_eop_i;
        in_req   = dma_req_i;
        in_data  = dma_data_i;
      end
    endcase
  end

  assign msix_ready_o = in_ready && (sel_q == SelMsix);
  assign ctl_ready_o  = drop_ctl || (in_ready && (sel_q == SelCtl));
  assign dma_ready_o  = in_ready && (sel_q == SelDma);

  wire take = in_valid && in_ready;
  // The one that is served may have more; that is not known yet.
  wire msix_next = msix_valid_i && !(sel_q == SelMsix && in_ready);
  wire ctl_next  = ctl_real && !(sel_q == SelCtl && in_ready);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      locked_q   <= 1'b0;
      sel_q      <= SelDma;
      halt_q     <= 1'b0;
      ctl_drop_q <= 1'b0;
    end else begin
      halt_q <= halt_i;
      if (take) locked_q <= !in_eop;
      if (in_valid ? (take && in_eop) : !locked_q) begin
        sel_q <= msix_next ? SelMsix : ctl_next ? SelCtl : SelDma;
      end
      if (fn_rst_i) ctl_drop_q <= 1'b0;
      else if (ctl_valid_i && drop_ctl) ctl_drop_q <= !ctl_last_i;
    end
  end

  // ---------------------------------------------------------------- to the link
  logic             out_valid_q, out_sop_q, out_eop_q;
  mem_req_t         out_req_q;
  logic [DataW-1:0] out_data_q;

  assign in_ready = !out_valid_q || pt_ready_i;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) out_valid_q <= 1'b0;
    else if (in_ready) out_valid_q <= in_valid;
  end
  always_ff @(posedge clk_i) begin
    if (in_ready) begin
      out_sop_q  <= !locked_q;
      out_eop_q  <= in_eop;
      out_req_q  <= in_req;
      out_data_q <= in_data;
    end
  end

  assign pt_valid_o = out_valid_q;
  assign pt_sop_o   = out_sop_q;
  assign pt_eop_o   = out_eop_q;
  assign pt_hdr_o   = mem_header(1'b1, out_req_q, requester_i, 8'd0);
  assign pt_data_o  = out_data_q;

  // ---------------------------------------------------------------- TLPs under way
  logic [3:0] in_flight_q;
  assign retired_o   = pt_valid_o && pt_ready_i && pt_eop_o;
  assign in_flight_o = in_flight_q;
  assign idle_o      = (in_flight_q == '0) && !ctl_drop_q;

  wire begins = take && !locked_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) in_flight_q <= '0;
    else in_flight_q <= in_flight_q + {3'b0, begins} - {3'b0, retired_o};
  end

  // The stream of frame data begins each TLP where the arbiter expects it.
  `FERRONIC_ASSERT(DmaSop, !(dma_valid_i && dma_ready_o) || (dma_sop_i == !locked_q), clk_i, rst_ni)
  `FERRONIC_ASSERT(InFlightBounded, in_flight_q <= 4'd4, clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(PtStable, pt_valid_o, pt_ready_i,
    ({pt_sop_o, pt_eop_o, pt_hdr_o, pt_data_o}), clk_i, rst_ni)
`ifdef SYNTHESIS
  logic unused;
  assign unused = dma_sop_i;
`endif
endmodule
