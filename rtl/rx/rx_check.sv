// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// What header_parser says of each frame that is received: one result for each frame that ends with
// `beat_last_i`, in order. A frame that is begun anew before that gets none.
//
// At 64 bits beats are words and go straight into one parser: a result five cycles after the last
// beat, no beat is ever held off for it. Wider, up to Lanes frames are worked on at once: the first
// 128 bytes are kept and walked after the frame's end, a word a cycle, the rest is summed as it
// passes; a frame takes at most 24 cycles behind those before it. `ready_o` is low while all are
// taken; a frame must not begin then.
//
// With Rss a result waits for the hash of receive-side scaling (rx_hash), a cycle at least: at 64
// bits it takes 16 bits of addresses and ports a cycle, wider 64. `ready_o` is low while many
// frames wait for it.
`include "ferronic_assert.svh"
module rx_check
  import ferronic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned Lanes = 4,     // frames at once, if wider than 64 bits
  parameter bit          Apart = 1'b1,  // as of header_parser
  parameter bit          Reverse = 1'b0,
  parameter bit          Rss = 1'b1,    // there is a hash
  localparam int unsigned Bytes = DataW / 8,
  localparam int unsigned BytesW = $clog2(Bytes) + 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              clr_i,
  output logic              ready_o,
  input  logic              beat_valid_i,
  input  logic              beat_first_i,
  input  logic              beat_last_i,
  input  logic [BytesW-1:0] beat_bytes_i,
  input  logic [DataW-1:0]  beat_data_i,

  input  steer_cfg_t        steer_i,       // `types` is 0 while no hash is wanted
  input  steer_write_t      steer_write_i,

  output logic              result_valid_o,
  output rx_verdict_t       verdict_o,
  output logic [31:0]       hash_o,
  output hash_report_e      report_o
);
  localparam int unsigned WindowBytes = 128;

  // ---------------------------------------------------------------- the hash
  // Words of the frame whose turn it is.
  logic         word_valid, word_ready, hash_valid, hash_take;
  hash_word_t   word;
  logic [31:0]  hash;
  hash_report_e report;
  if (Rss) begin : g_hash
    rx_hash #(.BitsPerCycle((DataW == 64) ? 16 : 64)) u_hash (
      .clk_i, .rst_ni, .clr_i,
      .bank_i      (steer_i.bank),
      .write_i     (steer_write_i),
      .word_valid_i(word_valid),
      .word_ready_o(word_ready),
      .word_i      (word),
      .hash_valid_o(hash_valid),
      .hash_ready_i(hash_take),
      .hash_o      (hash),
      .report_o    (report)
    );
  end else begin : g_no_hash
    assign word_ready = 1'b1;
    assign hash_valid = 1'b1;
    assign hash       = '0;
    assign report     = HashNone;
  end
  assign hash_o   = hash;
  assign report_o = report;
  logic unused_steer;
  assign unused_steer = ^{steer_i, steer_write_i};

  if (DataW == 64) begin : g_direct
    logic        layout_valid;
    hdr_layout_t layout;
    logic        unused;
    assign unused = ^{layout_valid, layout};
    rx_verdict_t said;
    logic        said_valid, hash_word_valid;
    hash_word_t  hash_word;
    logic              valid_q, first_q, last_q;
    logic [BytesW-1:0] bytes_q;
    logic [DataW-1:0]  data_q;
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clr_i) valid_q <= 1'b0;
      else valid_q <= beat_valid_i;
    end
    always_ff @(posedge clk_i) begin
      first_q <= beat_first_i;
      last_q  <= beat_last_i;
      bytes_q <= beat_bytes_i;
      data_q  <= beat_data_i;
    end
    header_parser #(.WindowBytes(WindowBytes), .Apart(Apart), .Reverse(Reverse)) u_parser (
      .clk_i, .rst_ni, .clr_i,
      .valid_i       (valid_q),
      .first_i       (first_q),
      .last_i        (last_q),
      .bytes_i       (bytes_q),
      .data_i        (data_q),
      .tail_sum_i    ('0),
      .tail_len_i    ('0),
      .hash_types_i  (steer_i.types),
      .layout_valid_o(layout_valid),
      .layout_o      (layout),
      .hash_valid_o  (hash_word_valid),
      .hash_o        (hash_word),
      .result_valid_o(said_valid),
      .sum_ok_o      (said.sum_ok),
      .found_o       (said.found),
      .addr_hash_o   (said.addr_hash),
      .port_hash_o   (said.port_hash)
    );
    assign said.rss     = 1'b0;
    assign said.rss_low = '0;
    if (Rss) begin : g_wait
      // An IPv6 frame has eight words at most, three of the frame before may be on their way.
      localparam int unsigned Results = 16;
      localparam int unsigned Words = 16;
      logic [$clog2(Words):0] words_level;
      logic words_ready, kept_ready, kept_valid;
      prim_fifo #(.Width($bits(hash_word_t)), .Depth(Words)) u_words (
        .clk_i, .rst_ni, .clr_i,
        .wr_valid_i(hash_word_valid), .wr_ready_o(words_ready), .wr_data_i(hash_word),
        .rd_valid_o(word_valid), .rd_ready_i(word_ready), .rd_data_o(word),
        .level_o(words_level));
      localparam int unsigned KeptW = $bits(rx_verdict_t) - 8;
      logic [KeptW-1:0] kept;
      logic [$clog2(Results):0] kept_level;
      prim_fifo #(.Width(KeptW), .Depth(Results)) u_kept (
        .clk_i, .rst_ni, .clr_i,
        .wr_valid_i(said_valid), .wr_ready_o(kept_ready), .wr_data_i(said[8 +: KeptW]),
        .rd_valid_o(kept_valid), .rd_ready_i(result_valid_o), .rd_data_o(kept),
        .level_o(kept_level));
      assign result_valid_o = kept_valid && hash_valid;
      assign hash_take      = result_valid_o;
      assign verdict_o      = {kept, report != HashNone, hash[6:0]};
      // Frames of which the last beat came, and no result.
      logic [$clog2(Results):0] open_q;
      always_ff @(posedge clk_i) begin
        if (!rst_ni || clr_i) open_q <= '0;
        else open_q <= open_q + 5'(beat_valid_i && beat_last_i) - 5'(result_valid_o);
        ready_o <= (words_level <= 5'd4) && (open_q <= 5'd8);
      end
      logic unused_kept;
      assign unused_kept = ^{kept_level, said};
      `FERRONIC_ASSERT(WordFits, !hash_word_valid || words_ready, clk_i, rst_ni)
      `FERRONIC_ASSERT(ResultFits, !said_valid || kept_ready, clk_i, rst_ni)
    end else begin : g_pass
      assign result_valid_o = said_valid;
      assign verdict_o      = said;
      assign ready_o        = 1'b1;
      assign word_valid     = 1'b0;
      assign word           = '0;
      assign hash_take      = 1'b1;
      logic unused_word;
      assign unused_word = ^{hash_word_valid, hash_word, hash_valid, hash, report, word_ready,
                             word_valid, word, hash_take, steer_i, steer_write_i};
    end
  end else begin : g_lanes
    localparam int unsigned LaneW = $clog2(Lanes);
    localparam int unsigned WindowBeats = WindowBytes / Bytes;
    localparam int unsigned BeatW = $clog2(WindowBeats) + 1;

    if (Lanes < 2 || (Lanes & (Lanes - 1)) != 0) begin : g_bad_lanes
      $error("%m: Lanes (%0d) must be a power of two, at least 2", Lanes);
    end

    logic [LaneW-1:0] in_q, out_q;       // lane that is filled; whose result is next
    logic [Lanes-1:0] busy, done;
    rx_verdict_t [Lanes-1:0] verdict;
    assign ready_o        = !busy[in_q];
    logic [Lanes-1:0] lane_valid;        // words for the hash
    hash_word_t [Lanes-1:0] lane_word;
    logic [LaneW-1:0] hash_q;            // lane whose words are next
    assign word_valid     = Rss && lane_valid[hash_q];
    assign word           = lane_word[hash_q];
    assign result_valid_o = done[out_q] && hash_valid;
    assign hash_take      = result_valid_o;
    always_comb begin
      verdict_o         = verdict[out_q];
      verdict_o.rss     = (report != HashNone);
      verdict_o.rss_low = hash[6:0];
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni || clr_i) begin
        in_q   <= '0;
        out_q  <= '0;
        hash_q <= '0;
      end else begin
        if (beat_valid_i && beat_last_i) in_q <= in_q + 1'b1;
        if (result_valid_o) out_q <= out_q + 1'b1;
        if (word_valid && word_ready && word.last) hash_q <= hash_q + 1'b1;
      end
    end

    // The beat without what is no part of the frame, and its sum.
    logic [DataW-1:0] data;
    logic [21:0]      beat_sum;
    always_comb begin
      for (int unsigned b = 0; b < Bytes; b++) begin
        data[8*b +: 8] = (BytesW'(b) < beat_bytes_i) ? beat_data_i[8*b +: 8] : '0;
      end
      beat_sum = '0;
      for (int unsigned h = 0; h < Bytes / 2; h++) begin
        beat_sum += 22'({data[16*h +: 8], data[16*h+8 +: 8]});
      end
    end
    logic [BeatW-1:0] beat_q;            // number of this beat, up to WindowBeats
    wire  [BeatW-1:0] beat  = beat_first_i ? '0 : beat_q;
    wire              in_window = (beat != BeatW'(WindowBeats));
    always_ff @(posedge clk_i) begin
      if (beat_valid_i) beat_q <= in_window ? beat + 1'b1 : beat;
    end

    for (genvar l = 0; l < int'(Lanes); l++) begin : g_lane
      logic [WindowBeats-1:0][DataW-1:0] window_q;
      logic [29:0] sum_q;                // behind the window
      logic [13:0] tail_q;
      logic [7:0]  len_q;                // bytes in the window
      logic        walk_q;
      logic [3:0]  at_q;                 // word that is walked
      wire         mine = beat_valid_i && (in_q == LaneW'(l));
      wire         last = ({1'b0, at_q, 3'd0} + 8'd8 >= len_q);
      wire  [16:0] fold = 17'(sum_q[15:0]) + 17'(sum_q[29:16]);

      always_ff @(posedge clk_i) begin
        if (mine) begin
          if (in_window) window_q[beat[BeatW-2:0]] <= data;
          if (beat_first_i) begin
            sum_q  <= '0;
            tail_q <= '0;
            len_q  <= 8'(beat_bytes_i);
          end else if (in_window) begin
            len_q  <= len_q + 8'(beat_bytes_i);
          end else begin
            sum_q  <= sum_q + 30'(beat_sum);
            tail_q <= tail_q + 14'(beat_bytes_i);
          end
        end
      end
      always_ff @(posedge clk_i) begin
        if (!rst_ni || clr_i) begin
          walk_q  <= 1'b0;
          busy[l] <= 1'b0;
          at_q    <= '0;
        end else begin
          if (mine && beat_last_i) begin
            walk_q  <= 1'b1;
            busy[l] <= 1'b1;
            at_q    <= '0;
          end else if (walk_q) begin
            walk_q <= !last;
            at_q   <= at_q + 4'd1;
          end
          if (result_valid_o && out_q == LaneW'(l)) busy[l] <= 1'b0;
        end
      end

      wire [WindowBytes/8-1:0][63:0] words = window_q;
      logic        valid, layout_valid, hash_word_valid;
      hash_word_t  hash_word;
      rx_verdict_t said;
      hdr_layout_t layout;
      logic        unused;
      assign unused = ^{layout_valid, layout};
      assign said.rss     = 1'b0;
      assign said.rss_low = '0;
      header_parser #(.WindowBytes(WindowBytes), .Apart(Apart), .Reverse(Reverse)) u_parser (
        .clk_i, .rst_ni, .clr_i,
        .valid_i       (walk_q),
        .first_i       (at_q == '0),
        .last_i        (last),
        .bytes_i       (last ? 4'(len_q - {1'b0, at_q, 3'd0}) : 4'd8),
        .data_i        (words[at_q]),
        .tail_sum_i    (fold[15:0] + 16'(fold[16])),
        .tail_len_i    (tail_q),
        .hash_types_i  (steer_i.types),
        .layout_valid_o(layout_valid),
        .layout_o      (layout),
        .hash_valid_o  (hash_word_valid),
        .hash_o        (hash_word),
        .result_valid_o(valid),
        .sum_ok_o      (said.sum_ok),
        .found_o       (said.found),
        .addr_hash_o   (said.addr_hash),
        .port_hash_o   (said.port_hash)
      );
      if (Rss) begin : g_words
        logic       words_ready;
        logic [4:0] words_level;
        prim_fifo #(.Width($bits(hash_word_t)), .Depth(16)) u_words (
          .clk_i, .rst_ni, .clr_i,
          .wr_valid_i(hash_word_valid), .wr_ready_o(words_ready), .wr_data_i(hash_word),
          .rd_valid_o(lane_valid[l]), .rd_ready_i(word_ready && hash_q == LaneW'(l)),
          .rd_data_o(lane_word[l]), .level_o(words_level));
        logic unused_level;
        assign unused_level = ^words_level;
        `FERRONIC_ASSERT(WordFits, !hash_word_valid || words_ready, clk_i, rst_ni)
      end else begin : g_no_words
        assign lane_valid[l] = 1'b0;
        assign lane_word[l]  = '0;
        logic unused_word;
        assign unused_word = ^{hash_word_valid, hash_word};
      end
      // Kept until its turn comes.
      always_ff @(posedge clk_i) begin
        if (!rst_ni || clr_i) done[l] <= 1'b0;
        else if (valid) done[l] <= 1'b1;
        else if (result_valid_o && out_q == LaneW'(l)) done[l] <= 1'b0;
        if (valid) verdict[l] <= said;
      end
    end

    if (!Rss) begin : g_unused
      logic unused;
      assign unused = ^{word_valid, word_ready, word, hash_take, steer_write_i, steer_i};
    end

    `FERRONIC_ASSERT(NoFrameTooMany, !(beat_valid_i && beat_first_i) || ready_o, clk_i, rst_ni)
  end
endmodule
