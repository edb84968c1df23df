// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// What header_parser says of each frame that is received: one result for each frame that ends with
// `beat_last_i`, in order. A frame that is begun anew before that gets none.
//
// At 64 bits beats are words and go straight into one parser: a result five cycles after the last
// beat, no beat is ever held off. Wider, up to Lanes frames are worked on at once: the first 128
// bytes are kept and walked after the frame's end, a word a cycle, the rest is summed as it passes;
// a frame takes at most 24 cycles behind those before it. `ready_o` is low while all are taken;
// a frame must not begin then.
`include "ferronic_assert.svh"
module rx_check
  import ferronic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned Lanes = 4,     // frames at once, if wider than 64 bits
  parameter bit          Apart = 1'b1,  // as of header_parser
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

  output logic              result_valid_o,
  output rx_verdict_t       verdict_o
);
  localparam int unsigned WindowBytes = 128;

  if (DataW == 64) begin : g_direct
    logic        layout_valid;
    hdr_layout_t layout;
    logic        unused;
    assign unused = ^{layout_valid, layout};
    assign ready_o = 1'b1;
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
    header_parser #(.WindowBytes(WindowBytes), .Apart(Apart)) u_parser (
      .clk_i, .rst_ni, .clr_i,
      .valid_i       (valid_q),
      .first_i       (first_q),
      .last_i        (last_q),
      .bytes_i       (bytes_q),
      .data_i        (data_q),
      .tail_sum_i    ('0),
      .tail_len_i    ('0),
      .layout_valid_o(layout_valid),
      .layout_o      (layout),
      .result_valid_o,
      .sum_ok_o      (verdict_o.sum_ok),
      .found_o       (verdict_o.found),
      .addr_hash_o   (verdict_o.addr_hash),
      .port_hash_o   (verdict_o.port_hash)
    );
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
    assign result_valid_o = done[out_q];
    assign verdict_o      = verdict[out_q];

    always_ff @(posedge clk_i) begin
      if (!rst_ni || clr_i) begin
        in_q  <= '0;
        out_q <= '0;
      end else begin
        if (beat_valid_i && beat_last_i) in_q <= in_q + 1'b1;
        if (result_valid_o) out_q <= out_q + 1'b1;
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
      logic        valid, layout_valid;
      rx_verdict_t said;
      hdr_layout_t layout;
      logic        unused;
      assign unused = ^{layout_valid, layout};
      header_parser #(.WindowBytes(WindowBytes), .Apart(Apart)) u_parser (
        .clk_i, .rst_ni, .clr_i,
        .valid_i       (walk_q),
        .first_i       (at_q == '0),
        .last_i        (last),
        .bytes_i       (last ? 4'(len_q - {1'b0, at_q, 3'd0}) : 4'd8),
        .data_i        (words[at_q]),
        .tail_sum_i    (fold[15:0] + 16'(fold[16])),
        .tail_len_i    (tail_q),
        .layout_valid_o(layout_valid),
        .layout_o      (layout),
        .result_valid_o(valid),
        .sum_ok_o      (said.sum_ok),
        .found_o       (said.found),
        .addr_hash_o   (said.addr_hash),
        .port_hash_o   (said.port_hash)
      );
      // Kept until its turn comes.
      always_ff @(posedge clk_i) begin
        if (!rst_ni || clr_i) done[l] <= 1'b0;
        else if (valid) done[l] <= 1'b1;
        else if (result_valid_o && out_q == LaneW'(l)) done[l] <= 1'b0;
        if (valid) verdict[l] <= said;
      end
    end

    `FERRONIC_ASSERT(NoFrameTooMany, !(beat_valid_i && beat_first_i) || ready_o, clk_i, rst_ni)
  end
endmodule
