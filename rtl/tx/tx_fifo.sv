// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Frames on their way to the wire. A frame whose sum is to be completed stays here until it is:
// the sum is added up while its beats are written and then put in its place. Beats of other frames
// may leave before their frame is whole; it never runs dry, as all of it was in the landing RAM.
//
// One beat a cycle in, one out; a sum is written four cycles behind its frame's last beat, in a
// cycle without a beat; seven cycles from a beat in to the same out. A function reset in the middle
// of a frame ends it on the wire with `last` and `abort`.
//
// Invariant: on the wire, every frame that was begun is ended, and a beat offered does not change.
`include "ferronic_assert.svh"
module tx_fifo
  import ferronic_pkg::*;
  import tx_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned RamBytes = 16384,
  parameter int unsigned Frames = 16,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned LaneW = $clog2(Lanes),
  localparam int unsigned BytesW = LaneW + 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              fn_rst_i,
  output logic              idle_o,

  output logic              frame_room_o,
  input  logic              frame_i,
  input  logic [13:0]       frame_len_i,
  output logic              room_o,
  input  logic              take_i,
  input  logic              beat_valid_i,
  input  tx_beat_t          beat_i,
  input  logic [BytesW-1:0] beat_bytes_i,
  input  logic [BytesW-1:0] beat_skip_i,
  input  logic [DataW-1:0]  beat_data_i,

  output logic              tx_valid_o,
  input  logic              tx_ready_i,
  output logic              tx_last_o,
  output logic              tx_abort_o,
  output logic [BytesW-1:0] tx_bytes_o,
  output logic [DataW-1:0]  tx_data_o
);
  localparam int unsigned Words = RamBytes / Lanes;
  localparam int unsigned AddrW = $clog2(Words);
  localparam int unsigned SumW = 16 + $clog2(Lanes / 2);

  if (RamBytes < MaxFrameBytes + Lanes) begin : g_bad_ram
    $error("%m: RamBytes (%0d) must hold the largest frame", RamBytes);
  end

  typedef logic [AddrW-1:0] word_t;
  typedef logic [AddrW:0]   count_t;

  // ---------------------------------------------------------------- in
  // A beat is written in the cycle it comes. Its sum takes three more; then, behind the last of a
  // frame, the sum is written and the frame may leave.
  typedef struct packed {
    logic  csum;
    logic  last;
  } token_t;
  typedef struct packed {
    logic             first;
    logic             udp;
    logic             odd;
    logic [LaneW-1:0] lane;
    word_t            word;
  } place_t;
  logic   valid4_q, valid5_q, valid6_q, valid7_q;
  token_t token4_q, token5_q, token6_q, token7_q;
  place_t place4_q, place5_q, place6_q, place7_q;
  word_t  wr_q, start_q;
  count_t space_q;

  wire word_t start = beat_i.first ? wr_q : start_q;
  // The beat that would be written when this one's sum is.
  wire hole = valid4_q && token4_q.csum && token4_q.last;
  assign room_o = (space_q != '0) && !hole;

  logic rd, patch;
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      wr_q     <= '0;
      space_q  <= count_t'(Words);
      valid4_q <= 1'b0;
      valid5_q <= 1'b0;
      valid6_q <= 1'b0;
      valid7_q <= 1'b0;
    end else begin
      if (beat_valid_i) wr_q <= wr_q + 1'b1;
      space_q  <= space_q - count_t'(take_i) + count_t'(rd);
      valid4_q <= beat_valid_i;
      valid5_q <= valid4_q;
      valid6_q <= valid5_q;
      valid7_q <= valid6_q;
    end
  end
  always_ff @(posedge clk_i) begin
    if (beat_valid_i) start_q <= start;
    token4_q <= '{csum: beat_i.csum, last: beat_i.last};
    token5_q <= token4_q;
    token6_q <= token5_q;
    token7_q <= token6_q;
    place4_q <= '{first: beat_i.first, udp: beat_i.udp, odd: beat_i.odd,
                  lane: beat_i.at[LaneW-1:0], word: start + word_t'(beat_i.at >> LaneW)};
    place5_q <= place4_q;
    place6_q <= place5_q;
    place7_q <= place6_q;
  end

  // ---------------------------------------------------------------- sum
  logic [Lanes-1:0] counted;
  logic [SumW-1:0]  sum, sum4_q;
  logic [29:0]      sum5_q;      // less than 2^11 beats
  logic [16:0]      fold, fold6_q;
  logic [15:0]      whole, sum7_q;
  always_comb begin
    for (int unsigned b = 0; b < Lanes; b++) begin
      counted[b] = (BytesW'(b) >= beat_skip_i) && (BytesW'(b) < beat_bytes_i);
    end
    sum = '0;
    for (int unsigned h = 0; h < Lanes / 2; h++) begin
      sum += SumW'({beat_data_i[16*h +: 8] & {8{counted[2*h]}},
                    beat_data_i[16*h+8 +: 8] & {8{counted[2*h+1]}}});
    end
  end
  assign fold  = 17'(sum5_q[15:0]) + 17'(sum5_q[29:16]);
  assign whole = ~(fold6_q[15:0] + 16'(fold6_q[16]));
  always_ff @(posedge clk_i) begin
    sum4_q <= sum;
    if (valid4_q) sum5_q <= (place4_q.first ? '0 : sum5_q) + 30'(sum4_q);
    fold6_q <= fold;
    // RFC 768: a UDP sum of 0 is sent as all ones.
    sum7_q <= (place6_q.udp && whole == '0) ? 16'hffff :
              place6_q.odd ? {whole[7:0], whole[15:8]} : whole;
  end
  assign patch = valid7_q && token7_q.csum && token7_q.last;

  // ---------------------------------------------------------------- RAM
  logic [Lanes-1:0] we, winc, first_lane;
  logic [DataW-1:0] wdata, rdata;
  word_t            rd_word_q;
  wire  [15:0]      swapped = place7_q.lane[0] ? sum7_q : {sum7_q[7:0], sum7_q[15:8]};
  assign first_lane = Lanes'(1) << place7_q.lane;
  assign we    = beat_valid_i ? '1 : patch ? (first_lane | {first_lane[Lanes-2:0],
                                                            first_lane[Lanes-1]}) : '0;
  // The second byte may lie in the next word.
  assign winc  = {{(Lanes - 1){1'b0}}, patch && first_lane[Lanes-1]};
  assign wdata = patch ? {(Lanes / 2){swapped}} : beat_data_i;

  lane_ram #(.DataW(DataW), .Bytes(RamBytes)) u_ram (
    .clk_i,
    .we_i   (we),
    .waddr_i(patch ? place7_q.word : wr_q),
    .winc_i (winc),
    .wdata_i(wdata),
    .re_i   (rd),
    .raddr_i(rd_word_q),
    .rinc_i ('0),
    .rdata_o(rdata)
  );

  // ---------------------------------------------------------------- what may leave
  count_t pend_q, leave_q;   // beats of a frame that waits for its sum; beats that may leave
  count_t commit;
  always_comb begin
    commit = '0;
    if (valid7_q && !token7_q.csum) commit = count_t'(1);
    else if (patch) commit = pend_q + 1'b1;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      pend_q  <= '0;
      leave_q <= '0;
    end else begin
      if (patch) pend_q <= '0;
      else if (valid7_q && token7_q.csum) pend_q <= pend_q + 1'b1;
      leave_q <= leave_q + commit - count_t'(rd);
    end
  end

  // ---------------------------------------------------------------- out
  logic              len_valid, len_pop;
  logic [13:0]       len_head, left_q, left;
  logic [$clog2(Frames):0] len_level;
  prim_fifo #(.Width(14), .Depth(Frames)) u_lens (
    .clk_i, .rst_ni,
    .clr_i     (fn_rst_i),
    .wr_valid_i(frame_i),
    .wr_ready_o(frame_room_o),
    .wr_data_i (frame_len_i),
    .rd_valid_o(len_valid),
    .rd_ready_i(len_pop),
    .rd_data_o (len_head),
    .level_o   (len_level)
  );

  logic              begun_q, rd_valid_q, rd_last_q, abort_q, mid_q, out_ready;
  logic [BytesW-1:0] rd_bytes_q;
  wire   advance = !rd_valid_q || (out_ready && !abort_q);
  assign left    = begun_q ? left_q : len_head;
  wire   last    = (left <= 14'(Lanes));
  assign rd      = (leave_q != '0) && advance;
  assign len_pop = rd && last;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      begun_q    <= 1'b0;
      rd_valid_q <= 1'b0;
      rd_word_q  <= '0;
    end else begin
      if (rd) begun_q <= !last;
      if (rd) rd_word_q <= rd_word_q + 1'b1;
      if (advance) rd_valid_q <= rd;
    end
  end
  always_ff @(posedge clk_i) begin
    if (rd) left_q <= left - 14'(Lanes);
    if (advance) begin
      rd_last_q  <= last;
      rd_bytes_q <= last ? left[BytesW-1:0] : BytesW'(Lanes);
    end
  end

  // The register slice is not cleared by a function reset.
  wire out_valid = abort_q || rd_valid_q;
  wire out_last  = abort_q || rd_last_q;
  wire out_beat  = out_valid && out_ready;
  wire mid       = out_beat ? !out_last : mid_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      mid_q   <= 1'b0;
      abort_q <= 1'b0;
    end else begin
      mid_q <= mid;
      if (fn_rst_i) abort_q <= mid;
      else if (out_beat) abort_q <= 1'b0;
    end
  end

  prim_skid #(.Width(2 + BytesW + DataW)) u_out (
    .clk_i, .rst_ni,
    .clr_i      (1'b0),
    .in_valid_i (out_valid),
    .in_ready_o (out_ready),
    .in_data_i  ({out_last, abort_q, abort_q ? BytesW'(1) : rd_bytes_q, rdata}),
    .out_valid_o(tx_valid_o),
    .out_ready_i(tx_ready_i),
    .out_data_o ({tx_last_o, tx_abort_o, tx_bytes_o, tx_data_o})
  );

  assign idle_o = !beat_valid_i && !valid4_q && !valid5_q && !valid6_q && !valid7_q &&
                  !len_valid && !rd_valid_q && !abort_q && !tx_valid_o;

  logic unused;
  assign unused = ^{len_level, place7_q};

  `FERRONIC_ASSERT(OneWriter, !(patch && beat_valid_i), clk_i, rst_ni)
  `FERRONIC_ASSERT(SpaceInRange, space_q <= count_t'(Words), clk_i, rst_ni)
  `FERRONIC_ASSERT(LensComeFirst, leave_q == '0 || len_valid, clk_i, rst_ni)
  `FERRONIC_ASSERT(BytesInRange, !tx_valid_o || (tx_bytes_o != '0 && tx_bytes_o <= BytesW'(Lanes)),
                   clk_i, rst_ni)
  `FERRONIC_ASSERT(WholeBeats, !tx_valid_o || tx_last_o || tx_bytes_o == BytesW'(Lanes),
                   clk_i, rst_ni)
endmodule
