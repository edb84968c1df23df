// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Arbitrates the control reads of the virtqueue engine, turns "area and offset" into addresses and
// hands them to the DMA reader. Round robin; three cycles of latency: a client is chosen, its
// request taken, its address added up. One request in two cycles, so that no client's ready depends
// on the DMA reader's in the same cycle; the order of acceptance is the order of issue. `idle_o`:
// nothing is on its way here.
`include "ferronic_assert.svh"
module vq_read_arb
  import ferronic_pkg::*;
  import vq_pkg::*;
#(
  parameter int unsigned Clients = 5
) (
  input  logic                 clk_i,
  input  logic                 rst_ni,
  input  logic                 fn_rst_i,
  input  logic   [Clients-1:0] valid_i,
  output logic   [Clients-1:0] ready_o,
  input  vq_rd_t [Clients-1:0] req_i,

  output logic                 table_re_o,
  output vq_area_e             table_area_o,
  output qid_t                 table_q_o,
  input  logic [63:0]          table_addr_i,

  output logic                 out_valid_o,
  input  logic                 out_ready_i,
  output dma_rd_req_t          out_o,
  output logic                 idle_o
);
  localparam int unsigned SelW = $clog2(Clients);

  logic [SelW-1:0] sel_q, sel;    // who is served, or was last; the next
  logic            any_q, any;    // somebody is served; may be next
  logic [Clients-1:0] want;
  logic            s1_valid_q, s2_valid_q;
  vq_rd_t          s1_q;
  dma_rd_req_t     s2_q;

  wire s2_go = !s2_valid_q;
  wire s1_go = s2_go || !s1_valid_q;

  // The next client after the last one served, else the lowest. Not the one that is served now:
  // whether it has another request is not known yet.
  always_comb begin
    want = valid_i;
    if (any_q) want[sel_q] = 1'b0;
    any = 1'b0;
    sel = sel_q;
    for (int c = int'(Clients) - 1; c >= 0; c--) begin
      if (want[c]) begin
        any = 1'b1;
        sel = SelW'(c);
      end
    end
    for (int c = int'(Clients) - 1; c >= 0; c--) begin
      if (want[c] && SelW'(c) > sel_q) sel = SelW'(c);
    end
  end

  always_comb begin
    ready_o = '0;
    if (any_q && s1_go) ready_o[sel_q] = 1'b1;
  end

  // Asked for with the request, there in its first stage.
  assign table_re_o   = any_q && s1_go;
  assign table_area_o = req_i[sel_q].area;
  assign table_q_o    = req_i[sel_q].q;
  wire [63:0] base    = (s1_q.area == AreaAbs) ? s1_q.base : table_addr_i;
  wire [63:0] address = base + {44'd0, s1_q.offset};

  vq_cookie_t cookie;
  assign cookie = '{addr1: address[1], client: s1_q.client, tag: s1_q.tag};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s1_valid_q <= 1'b0;
      s2_valid_q <= 1'b0;
      any_q      <= 1'b0;
      sel_q      <= '0;
    end else if (fn_rst_i) begin
      s1_valid_q <= 1'b0;
      s2_valid_q <= 1'b0;
      any_q      <= 1'b0;
      sel_q      <= '0;
    end else begin
      if (s1_go) s1_valid_q <= any_q;
      if (s1_go || !any_q) begin
        any_q <= any;
        sel_q <= sel;
      end
      s2_valid_q <= s2_valid_q ? !out_ready_i : s1_valid_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (s1_go) s1_q <= req_i[sel_q];
    if (s2_go) begin
      s2_q <= '{
        addr:   address,
        len:    {7'd0, s1_q.len},
        ptr:    {4'd0, s1_q.ptr[11:2], address[1:0]},
        cookie: cookie
      };
    end
  end

  assign out_valid_o = s2_valid_q;
  assign out_o       = s2_q;
  assign idle_o      = (valid_i == '0) && !s1_valid_q && !s2_valid_q;

  logic unused;
  assign unused = ^s1_q.q;

  `FERRONIC_ASSERT(ServedWaits, !any_q || valid_i[sel_q] || fn_rst_i, clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(OutStable, out_valid_o, out_ready_i || fn_rst_i, out_o, clk_i, rst_ni)
endmodule
