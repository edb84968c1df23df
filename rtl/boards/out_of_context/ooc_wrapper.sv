// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// The core on four pins, for place and route out of context: what limits the clock is then the core
// and not the pins. Every input bit of the core, straps too, comes from a register of its own: one
// long shift register filled from `data_i`, so that none is a constant. Every output bit ends in a
// register; those are folded to one pin by a tree of XORs, four bits a stage, a register behind
// each.
//
// `clk_i` is the only clock; `rst_ni` is released two cycles late, in step with it. The latency of
// the tree is its depth; nothing about data is promised here.
module ooc_wrapper
  import ferronic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned QueuePairs = 4
) (
  input  logic clk_i,
  input  logic rst_ni,
  input  logic data_i,
  output logic data_o
);
  localparam int unsigned BytesW = $clog2(DataW / 8) + 1;
  localparam int unsigned HdrW = 128;
  localparam int unsigned StrapW = $bits(strap_t);

  // ---------------------------------------------------------------- reset
  logic [1:0] rst_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) rst_q <= '0;
    else rst_q <= {rst_q[0], 1'b1};
  end

  // ---------------------------------------------------------------- inputs
  typedef struct packed {
    strap_t            strap;
    logic [63:0]       skip;
    logic              rq_valid;
    logic              rq_sop;
    logic              rq_eop;
    logic [HdrW-1:0]   rq_hdr;
    logic [DataW-1:0]  rq_data;
    logic              rc_valid;
    logic              rc_sop;
    logic              rc_eop;
    logic [HdrW-1:0]   rc_hdr;
    logic [DataW-1:0]  rc_data;
    logic              pt_ready;
    logic              np_ready;
    logic              cc_ready;
    logic              tx_ready;
    logic              rx_valid;
    logic              rx_last;
    logic              rx_abort;
    logic [BytesW-1:0] rx_bytes;
    logic [DataW-1:0]  rx_data;
  } in_t;
  localparam int unsigned InW = StrapW + 64 + 2 * (3 + HdrW + DataW) + 4 + 3 + BytesW + DataW;

  if (InW != $bits(in_t)) begin : g_bad_width
    $error("%m: the inputs have %0d bits, not %0d", $bits(in_t), InW);
  end

  logic [InW-1:0] in_q;
  always_ff @(posedge clk_i) in_q <= {in_q[InW-2:0], data_i};
  in_t in;
  assign in = in_q;

  // ---------------------------------------------------------------- outputs
  typedef struct packed {
    logic              idle;
    logic [63:0]       deadline;
    logic [63:0]       now;
    logic              rq_ready;
    logic              rc_ready;
    logic              pt_valid;
    logic              pt_sop;
    logic              pt_eop;
    logic [HdrW-1:0]   pt_hdr;
    logic [DataW-1:0]  pt_data;
    logic              np_valid;
    logic [HdrW-1:0]   np_hdr;
    logic              cc_valid;
    logic              cc_sop;
    logic              cc_eop;
    logic [HdrW-1:0]   cc_hdr;
    logic [DataW-1:0]  cc_data;
    logic              tx_valid;
    logic              tx_last;
    logic              tx_abort;
    logic [BytesW-1:0] tx_bytes;
    logic [DataW-1:0]  tx_data;
    logic              rx_ready;
  } out_t;
  localparam int unsigned OutW = $bits(out_t);
  // Stages of four to one until one bit is left.
  localparam int unsigned Depth = ($clog2(OutW) + 1) / 2;

  out_t out;

  ferronic_core #(.DataW(DataW), .QueuePairs(QueuePairs)) u_core (
    .clk_i,
    .rst_ni    (rst_q[1]),
    .strap_i   (in.strap),
    .idle_o    (out.idle),
    .deadline_o(out.deadline),
    .time_o    (out.now),
    .skip_i    (in.skip),
    .rq_valid_i(in.rq_valid),
    .rq_ready_o(out.rq_ready),
    .rq_sop_i  (in.rq_sop),
    .rq_eop_i  (in.rq_eop),
    .rq_hdr_i  (in.rq_hdr),
    .rq_data_i (in.rq_data),
    .rc_valid_i(in.rc_valid),
    .rc_ready_o(out.rc_ready),
    .rc_sop_i  (in.rc_sop),
    .rc_eop_i  (in.rc_eop),
    .rc_hdr_i  (in.rc_hdr),
    .rc_data_i (in.rc_data),
    .pt_valid_o(out.pt_valid),
    .pt_ready_i(in.pt_ready),
    .pt_sop_o  (out.pt_sop),
    .pt_eop_o  (out.pt_eop),
    .pt_hdr_o  (out.pt_hdr),
    .pt_data_o (out.pt_data),
    .np_valid_o(out.np_valid),
    .np_ready_i(in.np_ready),
    .np_hdr_o  (out.np_hdr),
    .cc_valid_o(out.cc_valid),
    .cc_ready_i(in.cc_ready),
    .cc_sop_o  (out.cc_sop),
    .cc_eop_o  (out.cc_eop),
    .cc_hdr_o  (out.cc_hdr),
    .cc_data_o (out.cc_data),
    .tx_valid_o(out.tx_valid),
    .tx_ready_i(in.tx_ready),
    .tx_last_o (out.tx_last),
    .tx_abort_o(out.tx_abort),
    .tx_bytes_o(out.tx_bytes),
    .tx_data_o (out.tx_data),
    .rx_valid_i(in.rx_valid),
    .rx_ready_o(out.rx_ready),
    .rx_last_i (in.rx_last),
    .rx_abort_i(in.rx_abort),
    .rx_bytes_i(in.rx_bytes),
    .rx_data_i (in.rx_data)
  );

  logic [OutW-1:0] out_q;
  always_ff @(posedge clk_i) out_q <= out;

  for (genvar s = 1; s <= int'(Depth); s++) begin : g_fold
    // What is left after `s` stages, each rounded up; bits beyond the stage before read as zero.
    localparam int unsigned From = (OutW + (1 << (2 * (s - 1))) - 1) >> (2 * (s - 1));
    localparam int unsigned To = (OutW + (1 << (2 * s)) - 1) >> (2 * s);
    logic [4*To-1:0] bits;
    logic [To-1:0]   fold_q;
    if (s == 1) begin : g_first
      assign bits = (4 * To)'(out_q);
    end else begin : g_next
      assign bits = (4 * To)'(g_fold[s-1].fold_q[From-1:0]);
    end
    always_ff @(posedge clk_i) begin
      for (int i = 0; i < int'(To); i++) fold_q[i] <= ^bits[4*i +: 4];
    end
  end
  assign data_o = g_fold[Depth].fold_q[0];
endmodule
