// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Tells which flows frames are sent to and from which queue, so that the frames that answer can be
// received by the same pair (rx_steer). It looks on as beats pass on their way to the wire and
// holds nothing up: a frame that comes while rx_check is busy (wide data paths) is not told of.
//
// One pulse for each frame with an IP header, some cycles after its last beat, in their order.
`include "ferronic_assert.svh"
module tx_flow
  import ferronic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  localparam int unsigned BytesW = $clog2(DataW / 8) + 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              clr_i,
  input  logic              beat_valid_i,
  input  logic              beat_first_i,
  input  logic              beat_last_i,
  input  logic [BytesW-1:0] beat_bytes_i,
  input  logic [DataW-1:0]  beat_data_i,
  input  qid_t              beat_q_i,
  output tx_flow_t          flow_o
);
  // ---------------------------------------------------------------- frames that are looked at
  logic ready, on_q, told, kept_ready, kept_valid;
  wire  on   = beat_first_i ? ready && kept_ready : on_q;
  wire  look = beat_valid_i && on;
  always_ff @(posedge clk_i) if (beat_valid_i) on_q <= on;

  rx_verdict_t  verdict;
  logic [31:0]  hash;
  hash_report_e report;
  rx_check #(.DataW(DataW), .Apart(1'b1), .Reverse(1'b1), .Rss(1'b0)) u_check (
    .clk_i, .rst_ni, .clr_i,
    .ready_o       (ready),
    .beat_valid_i  (look),
    .beat_first_i,
    .beat_last_i,
    .beat_bytes_i,
    .beat_data_i,
    .steer_i       ('0),
    .steer_write_i ('0),
    .result_valid_o(told),
    .verdict_o     (verdict),
    .hash_o        (hash),
    .report_o      (report)
  );

  logic [5:0] pair;
  logic [3:0] level;
  prim_fifo #(.Width(6), .Depth(8)) u_pairs (
    .clk_i, .rst_ni, .clr_i,
    .wr_valid_i(look && beat_last_i), .wr_ready_o(kept_ready), .wr_data_i(beat_q_i[QidW-1:1]),
    .rd_valid_o(kept_valid), .rd_ready_i(told), .rd_data_o(pair), .level_o(level));

  // A register, as it goes far.
  always_ff @(posedge clk_i) begin
    if (!rst_ni || clr_i) flow_o.valid <= 1'b0;
    else flow_o.valid <= told && verdict.found.ip;
  end
  always_ff @(posedge clk_i) begin
    flow_o.pair      <= pair;
    flow_o.addr_hash <= verdict.addr_hash;
    flow_o.port_hash <= verdict.port_hash;
  end

  logic unused;
  assign unused = ^{verdict, hash, report, level, beat_q_i[0]};

  `FERRONIC_ASSERT(PairIsThere, !told || kept_valid, clk_i, rst_ni)
endmodule
