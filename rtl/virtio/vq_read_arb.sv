// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Arbitrates the control reads of the virtqueue engine, turns "area and offset" into addresses and
// hands them to the DMA reader. Round robin; two cycles of latency, one request a cycle; the order
// of acceptance is the order of issue. `idle_o`: nothing is on its way here.
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

  logic [SelW-1:0] last_q, sel;
  logic            any;
  logic            s1_valid_q, s2_valid_q;
  vq_rd_t          s1_q;
  dma_rd_req_t     s2_q;

  wire s2_go = out_ready_i || !s2_valid_q;
  wire s1_go = s2_go || !s1_valid_q;

  // The next client after the last one served, else the lowest.
  always_comb begin
    any = 1'b0;
    sel = '0;
    for (int c = int'(Clients) - 1; c >= 0; c--) begin
      if (valid_i[c]) begin
        any = 1'b1;
        sel = SelW'(c);
      end
    end
    for (int c = int'(Clients) - 1; c >= 0; c--) begin
      if (valid_i[c] && SelW'(c) > last_q) sel = SelW'(c);
    end
  end

  always_comb begin
    ready_o = '0;
    if (any && s1_go) ready_o[sel] = 1'b1;
  end

  // Asked for with the request, there in its first stage.
  assign table_re_o   = any && s1_go;
  assign table_area_o = req_i[sel].area;
  assign table_q_o    = req_i[sel].q;
  wire [63:0] base    = (s1_q.area == AreaAbs) ? s1_q.base : table_addr_i;
  wire [63:0] address = base + {44'd0, s1_q.offset};

  vq_cookie_t cookie;
  assign cookie = '{addr1: address[1], client: s1_q.client, tag: s1_q.tag};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s1_valid_q <= 1'b0;
      s2_valid_q <= 1'b0;
      last_q     <= '0;
    end else if (fn_rst_i) begin
      s1_valid_q <= 1'b0;
      s2_valid_q <= 1'b0;
      last_q     <= '0;
    end else begin
      if (s1_go) s1_valid_q <= any;
      if (s1_go && any) last_q <= sel;
      if (s2_go) s2_valid_q <= s1_valid_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (s1_go) s1_q <= req_i[sel];
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
  assign idle_o      = !any && !s1_valid_q && !s2_valid_q;

  logic unused;
  assign unused = ^s1_q.q;

  `FERRONIC_ASSERT_STABLE(OutStable, out_valid_o, out_ready_i || fn_rst_i, out_o, clk_i, rst_ni)
endmodule
