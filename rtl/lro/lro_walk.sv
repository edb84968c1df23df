// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Reads the headers of a frame, compares them with those of a context, and keeps a copy.
//
// The first 128 bytes of each frame that is stored are kept in a ring, in words as wide as the data
// path. A walk goes over them in order, shifted so that the IP header begins in half 7 or 11 (a
// half is 2 bytes, big endian): fields are then at fixed places. Each word is compared with the
// same word of the copy in slot `slot_i`, but for what may differ between segments of a unit:
// lengths, IPv4's identification and sum, sequence number, PSH, TCP's sum. It is written to slot
// `spare_i`, which becomes the slot of a context that this frame opens. By the relaxed profile the
// acknowledgement and the time stamp may advance, and time to live and window are not compared.
//
// `frame_i` and `slot_i` are taken with `start_i`, which may come with the `take_i` of the frame
// before; `spare_i` must not change between. From `start_i` to `done_o` it takes four cycles and
// one for each word up to the end of the headers (54 bytes at 64 bits: seven) but the first; a
// frame that is not TCP ends early. `segment_o` and `differs_o` are valid with `done_o`; at 64 bits
// the segment's lengths, numbers and class but for sums one cycle before. Wider cards have few
// words, need a cycle more behind them, and read the first with `start_i`.
//
// Invariants: a ring word is written at most once a beat, and never while a walk may read it;
// headers are read in the order in which frames were stored.
`include "ferronic_assert.svh"
module lro_walk
  import ferronic_pkg::*;
  import lro_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned Slots = 32,
  parameter bit          Relaxed = 1'b0,  // that profile can be set
  localparam int unsigned SlotW = $clog2(Slots)
) (
  input  logic             clk_i,
  input  logic             rst_ni,
  input  logic             fn_rst_i,

  // Frames as they are stored.
  input  logic             beat_valid_i,
  input  logic             beat_first_i,
  input  logic             beat_last_i,   // and the frame is good
  input  logic [DataW-1:0] beat_data_i,
  output logic             ready_o,       // a frame may begin

  input  logic             start_i,
  input  rx_frame_t        frame_i,
  input  logic [SlotW-1:0] slot_i,
  input  logic [SlotW-1:0] spare_i,
  output logic             done_o,
  output lro_segment_t     segment_o,
  output logic             differs_o,
  input  logic             relaxed_i,
  output lro_latest_t      latest_o,      // of this frame alone
  input  logic             take_i
);
  localparam int unsigned Lanes = DataW / 8;
  localparam int unsigned LaneW = $clog2(Lanes);
  localparam int unsigned Halves = Lanes / 2;
  localparam int unsigned Words = 128 / Lanes;         // of a frame
  localparam int unsigned WordW = $clog2(Words);
  localparam int unsigned RingWords = 32 * Words;
  localparam int unsigned RingW = $clog2(RingWords);
  localparam int unsigned PosW = 6;                    // number of a half in a frame

  typedef logic [RingW-1:0] ring_t;
  typedef logic [WordW-1:0] word_t;

  // ---------------------------------------------------------------- into the ring
  logic             in_valid_q, in_first_q, in_last_q;
  logic [DataW-1:0] in_data_q;
  always_ff @(posedge clk_i) begin
    in_valid_q <= beat_valid_i && rst_ni && !fn_rst_i;
    in_first_q <= beat_first_i;
    in_last_q  <= beat_last_i;
    in_data_q  <= beat_data_i;
  end
  ring_t       wbase_q;        // where the frame that is stored begins
  ring_t       rbase_q;        // where the frame that is read begins
  logic [WordW:0] beat_q;      // its beats so far, up to Words
  wire  [WordW:0] beat = in_first_q ? '0 : beat_q;
  wire         in_window = !beat[WordW];
  ring_t       used_q;
  logic [WordW:0] words_q;     // of the frame that is read

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      wbase_q <= '0;
      rbase_q <= '0;
      used_q  <= '0;
      ready_o <= 1'b0;
    end else begin
      if (in_valid_q && in_last_q) begin
        wbase_q <= wbase_q + ring_t'(beat) + ring_t'(in_window);
      end
      if (take_i) rbase_q <= rbase_q + ring_t'(words_q);
      used_q  <= wbase_q - rbase_q;
      // Three frames may begin before this tells of the first.
      ready_o <= used_q < ring_t'(RingWords - 4 * Words);
    end
  end
  always_ff @(posedge clk_i) begin
    if (in_valid_q) beat_q <= beat + (WordW + 1)'(in_window);
  end

  // ---------------------------------------------------------------- reads
  logic             run_q;     // words are asked for
  word_t            k_q;       // the next one
  logic             v1_q, vx_q;
  word_t            k1_q, x_q;
  word_t            last_q;    // the last one that there is
  logic [DataW-1:0] raw, raw_q, held, held_q;
  logic [31:0]      prev_q;    // the last two halves of the word before
  logic             last;      // the word at hand is the last that is needed
  logic             ended_q, late_q, done_q;
  hdr_found_t       found;
  logic             frame_ok_q;
  logic [SlotW-1:0] slot_q;
  logic [13:0]      avail_q;   // bytes of the frame from its IP header on

  wire              at_once = (Halves > 4) && start_i;  // the first word is asked for
  hdr_found_t found_q;
  assign found = found_q;
  wire off = (found.tags == 2'd1);   // the IP header would begin in half 9: moved by two
  wire far = (found.tags != '0);     // it begins in half 11, not 7

  wire [13:0]   len = frame_i.len[13:0];
  wire [13-LaneW:0] len_words = len[13:LaneW] + (14 - LaneW)'(|len[LaneW-1:0]);
  wire          whole = (len_words > (14 - LaneW)'(Words - 1));   // fills the window
  wire [WordW:0] words = whole ? (WordW + 1)'(Words) : len_words[WordW:0];

  always_ff @(posedge clk_i) begin
    if (!rst_ni || fn_rst_i) begin
      run_q   <= 1'b0;
      v1_q    <= 1'b0;
      vx_q    <= 1'b0;
      ended_q <= 1'b0;
      late_q  <= 1'b0;
      done_q  <= 1'b0;
    end else begin
      if (start_i) run_q <= frame_i.verdict.found.ip;
      else if (vx_q && last) run_q <= 1'b0;
      v1_q    <= (run_q && !(vx_q && last)) || (at_once && frame_i.verdict.found.ip);
      vx_q    <= v1_q && !(vx_q && last);
      ended_q <= (vx_q && last) || (start_i && !frame_i.verdict.found.ip);
      late_q  <= ended_q;
      done_q  <= ((Halves == 4) ? ended_q : late_q) || (done_q && !take_i);
    end
  end
  assign done_o = done_q;

  always_ff @(posedge clk_i) begin
    k_q  <= at_once ? word_t'(1) : start_i ? '0 : k_q + 1'b1;
    k1_q <= at_once ? '0 : k_q;
    x_q  <= k1_q;
    raw_q  <= raw;
    held_q <= held;
    prev_q <= raw_q[DataW-1 -: 32];
    if (start_i) begin
      found_q    <= frame_i.verdict.found;
      frame_ok_q <= frame_i.verdict.sum_ok;
      slot_q     <= slot_i;
      words_q    <= words;
      // Moved by two halves, there may be one word more.
      last_q     <= whole ? '1 :
                    (len_words[WordW-1:0] - word_t'(frame_i.verdict.found.tags != 2'd1));
      avail_q    <= len - 14'd14 - {10'd0, frame_i.verdict.found.tags, 2'd0};
    end
  end

  logic [DataW-1:0] moved;
  assign moved = off ? {raw_q[DataW-33:0], prev_q} : raw_q;

  prim_ram_1r1w #(.Width(DataW), .Depth(RingWords), .InBlock(1'b1)) u_ring (
    .clk_i, .we_i(in_valid_q && in_window), .waddr_i(wbase_q + ring_t'(beat)),
    .wdata_i(in_data_q),
    .re_i(run_q || at_once),
    .raddr_i(rbase_q + (!at_once ? ring_t'(k_q) : take_i ? ring_t'(words_q) : '0)),
    .rdata_o(raw));
  prim_ram_1r1w #(.Width(DataW), .Depth(Slots * Words), .InBlock(1'b1)) u_slots (
    .clk_i, .we_i(vx_q), .waddr_i({spare_i, x_q}), .wdata_i(moved),
    .re_i(run_q || at_once), .raddr_i(at_once ? {slot_i, word_t'(0)} : {slot_q, k_q}),
    .rdata_o(held));

  // ---------------------------------------------------------------- the word at hand
  logic [Halves-1:0][15:0] h, v;
  for (genvar j = 0; j < int'(Halves); j++) begin : g_half
    assign h[j] = {moved[16*j +: 8], moved[16*j+8 +: 8]};
    assign v[j] = {held_q[16*j +: 8], held_q[16*j+8 +: 8]};
  end

  // Half `n` of the IP header is in this word; as one bit for each half of the word; itself.
  function automatic logic here(input int unsigned n, input logic is_far, input word_t x);
    here = is_far ? (x == word_t'((11 + n) / Halves)) : (x == word_t'((7 + n) / Halves));
  endfunction
  function automatic logic [Halves-1:0] place(input int unsigned n, input logic is_far,
                                              input word_t x);
    place = '0;
    if (is_far) place[(11 + n) % Halves] = (x == word_t'((11 + n) / Halves));
    else        place[(7 + n) % Halves] = (x == word_t'((7 + n) / Halves));
  endfunction
  function automatic logic [15:0] half(input int unsigned n, input logic is_far,
                                       input logic [Halves-1:0][15:0] w);
    half = is_far ? w[(11 + n) % Halves] : w[(7 + n) % Halves];
  endfunction

  // TCP begins 10 or 20 halves behind the IP header; no frame with options or extensions is held.
  localparam int unsigned L4 = 10, L6 = 20;
  wire v6 = found.v6;

  // Ends of headers, in halves from the start: known with the half that has the data offset.
  logic [PosW-1:0] end_q, end_now;
  wire  [15:0]     offset_half = v6 ? half(L6 + 6, far, h) : half(L4 + 6, far, h);
  wire             has_offset  = v6 ? here(L6 + 6, far, x_q) : here(L4 + 6, far, x_q);
  wire  [PosW-1:0] end_new = PosW'(far ? 11 : 7) + PosW'(v6 ? L6 : L4) +
                             PosW'({offset_half[15:12], 1'b0});
  // At 64 bits options begin in a later word.
  assign end_now = (Halves > 4 && has_offset) ? end_new : end_q;

  logic not_tcp_q;
  logic [Halves-1:0] free, flags, told, counted;
  logic [Halves-1:0] loose, stamps;  // compared otherwise by the relaxed profile
  always_comb begin
    free  = v6 ? (place(2, far, x_q) | place(L6 + 2, far, x_q) | place(L6 + 3, far, x_q) |
                  place(L6 + 8, far, x_q))
               : (place(1, far, x_q) | place(2, far, x_q) | place(5, far, x_q) |
                  place(L4 + 2, far, x_q) | place(L4 + 3, far, x_q) | place(L4 + 8, far, x_q));
    flags = v6 ? place(L6 + 6, far, x_q) : place(L4 + 6, far, x_q);
    counted = '0;
    if (v6) for (int unsigned n = 4; n < 20; n++) counted |= place(n, far, x_q);
    else    for (int unsigned n = 6; n < 10; n++) counted |= place(n, far, x_q);
    for (int unsigned j = 0; j < Halves; j++) begin
      told[j] = ((PosW + 1)'(x_q) * (PosW + 1)'(Halves) + (PosW + 1)'(j) < {1'b0, end_now}) &&
                  !(off && x_q == '0 && j < 2);
    end
  end
  logic [Halves-1:0] differ;
  for (genvar j = 0; j < int'(Halves); j++) begin : g_differ
    wire [15:0] bits = (h[j] ^ v[j]) & ~(flags[j] ? 16'h0008 : 16'h0000);
    assign differ[j] = told[j] && !free[j] && !loose[j] && (bits != '0);
  end
  assign last = (x_q == last_q) || not_tcp_q ||
                ((PosW + 1)'(x_q) * (PosW + 1)'(Halves) + (PosW + 1)'(Halves) >= {1'b0, end_now});

  // ---------------------------------------------------------------- fields
  logic [ 3:0] ihl_q;
  logic        fragment_q, canonical_q;
  logic [ 7:0] protocol_q;
  logic [15:0] sum_q;
  logic [16:0] total_q;          // bytes from the IP header on
  logic [ 1:0] rare_q;           // SYN and FIN
  logic [ 9:0] offset_q;         // data offset and flags from CWR to RST
  lro_segment_t seg_q;
  logic [31:0] seq_q;
  logic [15:0] id_q;
  logic        differs_q;

  wire [15:0] h_proto4 = half(4, far, h), h_proto6 = half(3, far, h);
  wire [15:0] l4_sum   = v6 ? half(L6 + 8, far, h) : half(L4 + 8, far, h);
  wire        has_sum  = v6 ? here(L6 + 8, far, x_q) : here(L4 + 8, far, x_q);
  wire        proto_here = v6 ? here(3, far, x_q) : here(4, far, x_q);
  wire [7:0]  proto_now  = v6 ? h_proto6[15:8] : h_proto4[7:0];
  wire [15:0] ip0 = half(0, far, h), ip3 = half(3, far, h), ip5 = half(5, far, h);

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      end_q       <= '1;
      not_tcp_q   <= 1'b0;
      differs_q   <= 1'b0;
      canonical_q <= 1'b1;
    end else if (vx_q) begin
      differs_q <= differs_q || ((differ & ~stamps) != '0);
      if (has_offset) begin
        end_q    <= end_new;
        offset_q <= {offset_half[15:12], offset_half[7:5], offset_half[4:2]};
      end
      if (has_offset) rare_q <= offset_half[1:0];
      if (proto_here) begin
        protocol_q <= proto_now;
        not_tcp_q  <= (proto_now != 8'd6);
      end
      if (here(0, far, x_q)) ihl_q <= ip0[11:8];
      if (v6 ? here(2, far, x_q) : here(1, far, x_q)) begin
        total_q <= 17'(v6 ? half(2, far, h) : half(1, far, h)) + (v6 ? 17'd40 : 17'd0);
      end
      if (here(2, far, x_q)) id_q <= half(2, far, h);
      if (here(3, far, x_q)) fragment_q <= (ip3[13:0] != '0);
      if (here(5, far, x_q)) begin
        sum_q <= ip5;
        if (!v6 && ip5 == '1) canonical_q <= 1'b0;
      end
      if (has_sum && l4_sum == '1) canonical_q <= 1'b0;
      if (v6 ? here(L6 + 2, far, x_q) : here(L4 + 2, far, x_q)) begin
        seq_q[31:16] <= v6 ? half(L6 + 2, far, h) : half(L4 + 2, far, h);
      end
      if (v6 ? here(L6 + 3, far, x_q) : here(L4 + 3, far, x_q)) begin
        seq_q[15:0] <= v6 ? half(L6 + 3, far, h) : half(L4 + 3, far, h);
      end
    end
  end
  wire [3:0] doff = offset_q[9:6];
  wire cwr = offset_q[5], ece = offset_q[4], urg = offset_q[3], ack = offset_q[2],
       psh = offset_q[1], rst = offset_q[0], syn = rare_q[1], fin = rare_q[0];

  // One's complement sum of the addresses.
  logic [21:0] word_sum, addr_q;
  always_comb begin
    word_sum = '0;
    for (int unsigned j = 0; j < Halves; j++) word_sum += 22'(h[j] & {16{counted[j]}});
  end
  if (Halves == 4) begin : g_two_steps
    logic [21:0] word_sum_q;
    always_ff @(posedge clk_i) begin
      word_sum_q <= vx_q ? word_sum : '0;
      addr_q     <= start_i ? '0 : addr_q + word_sum_q;
    end
  end else begin : g_one_step
    always_ff @(posedge clk_i) begin
      addr_q <= start_i ? '0 : vx_q ? addr_q + word_sum : addr_q;
    end
  end
  function automatic logic [15:0] fold(input logic [21:0] sum);
    logic [16:0] once;
    once = 17'(sum[15:0]) + 17'(sum[21:16]);
    fold = once[15:0] + 16'(once[16]);
  endfunction

  // ---------------------------------------------------------------- what it asks for
  // Frames are shorter than 16 KiB, so that longer packets are cut off.
  logic [ 6:0] headers;       // bytes of both
  logic        extension, cut_off, unfit, control;
  always_comb begin
    headers = 7'(v6 ? 40 : 20) + {1'b0, doff, 2'b00};
    extension = (protocol_q inside {8'd0, 8'd43, 8'd44, 8'd51, 8'd60, 8'd135, 8'd139, 8'd140});
    cut_off = v6 ? (avail_q < 14'd40)
                 : (avail_q < {8'd0, ihl_q, 2'b00} || avail_q < 14'd20 || ihl_q < 4'd5);
    unfit   = (total_q > {3'd0, avail_q}) || (total_q < (v6 ? 17'd60 : 17'd40)) || (doff < 4'd5) ||
              (total_q < {10'd0, headers});
    control = cwr || urg || !ack || rst || syn || fin;
  end

  lro_class_e  cls;
  lro_cause_e  cause;
  always_comb begin
    cls   = ClsFlow;
    cause = LroUntrusted;
    if (!found.ip) begin
      cls = ClsPass;
    end else if (cut_off || (!v6 && !found.sum_ok)) begin
      cls = ClsQueue;
    end else if (v6 && extension) begin
      cls   = ClsAddresses;
      cause = LroExtension;
    end else if (protocol_q != 8'd6) begin
      cls = ClsPass;
    end else if (!v6 && ihl_q != 4'd5) begin
      cls   = ClsAddresses;
      cause = LroIpOptions;
    end else if (!v6 && fragment_q) begin
      cls   = ClsAddresses;
      cause = LroFragment;
    end else if (unfit) begin
      cls   = ClsAddresses;
      cause = LroMalformed;
    end else if (total_q < {3'd0, avail_q}) begin
      cause = LroTrailer;
    end else if (!frame_ok_q) begin
      cause = LroSum;
    end else if (!canonical_q) begin
      cause = LroCanonical;
    end else if (control) begin
      cause = LroControl;
    end else if (total_q == {10'd0, headers}) begin
      cause = LroEmpty;
    end else begin
      cls = ClsHold;
    end
  end

  function automatic logic [15:0] add(input logic [15:0] a, input logic [15:0] b);
    logic [16:0] once;
    once = 17'(a) + 17'(b);
    add = once[15:0] + 16'(once[16]);
  endfunction
  logic [ 7:0] ttl;
  logic [15:0] ip_base;
  wire  [15:0] ip_rest = add(~sum_q, ~total_q[15:0]);

  // ---------------------------------------------------------------- the relaxed profile
  // A frame that is appended is the copy that the next is compared with, so that held values are
  // those of the last segment.
  if (Relaxed) begin : g_relaxed
    function automatic logic [15:0] tcp_half(input int unsigned n,
                                             input logic [Halves-1:0][15:0] w);
      tcp_half = v6 ? half(L6 + n, far, w) : half(L4 + n, far, w);
    endfunction
    function automatic logic tcp_here(input int unsigned n);
      tcp_here = v6 ? here(L6 + n, far, x_q) : here(L4 + n, far, x_q);
    endfunction
    function automatic logic [Halves-1:0] tcp_place(input int unsigned n);
      tcp_place = v6 ? place(L6 + n, far, x_q) : place(L4 + n, far, x_q);
    endfunction
    always_comb begin
      // The other byte of the half with the time to live is the protocol's.
      loose  = (v6 ? place(3, far, x_q) : place(4, far, x_q)) | tcp_place(4) | tcp_place(5) |
               tcp_place(7);
      stamps = tcp_place(12) | tcp_place(13) | tcp_place(14) | tcp_place(15);
      if (!relaxed_i) begin
        loose  = '0;
        stamps = '0;
      end
    end

    logic [31:0] ack_q, held_ack_q, stamp_q, held_stamp_q, echo_q;
    logic [15:0] window_q, rest_q;
    logic [ 7:0] ttl_q;
    logic        nops_q, kind_q, stamps_q, differs2_q;
    wire  [15:0] h_ttl6 = half(3, far, h), h_ttl4 = half(4, far, h);
    wire         stamped = (doff == 4'd8) && nops_q && kind_q;
    wire  [31:0] ack_step = ack_q - held_ack_q, stamp_step = stamp_q - held_stamp_q;
    always_ff @(posedge clk_i) begin
      if (start_i) begin
        stamps_q <= 1'b0;
      end else if (vx_q) begin
        stamps_q <= stamps_q || ((differ & stamps) != '0);
        if (proto_here) ttl_q <= v6 ? h_ttl6[7:0] : h_ttl4[15:8];
        if (tcp_here(4)) {ack_q[31:16], held_ack_q[31:16]} <= {tcp_half(4, h), tcp_half(4, v)};
        if (tcp_here(5)) {ack_q[15:0], held_ack_q[15:0]} <= {tcp_half(5, h), tcp_half(5, v)};
        if (tcp_here(7)) window_q <= tcp_half(7, h);
        if (tcp_here(10)) nops_q <= (tcp_half(10, h) == 16'h0101);
        if (tcp_here(11)) kind_q <= (tcp_half(11, h) == 16'h080a);
        if (tcp_here(12)) begin
          {stamp_q[31:16], held_stamp_q[31:16]} <= {tcp_half(12, h), tcp_half(12, v)};
        end
        if (tcp_here(13)) begin
          {stamp_q[15:0], held_stamp_q[15:0]} <= {tcp_half(13, h), tcp_half(13, v)};
        end
        if (tcp_here(14)) echo_q[31:16] <= tcp_half(14, h);
        if (tcp_here(15)) echo_q[15:0] <= tcp_half(15, h);
      end
      // Neither goes back, modulo 2^32; stamps of another layout are equal.
      differs2_q <= differs_q || (relaxed_i && (ack_step[31] ||
                                                (stamped ? stamp_step[31] : stamps_q)));
      // The time to live is added when the least is known.
      rest_q <= ip_rest;
    end
    assign differs_o = differs2_q;
    assign ttl       = ttl_q;
    assign ip_base   = add(rest_q, {~ttl_q, 8'hff});
    assign latest_o  = '{on: relaxed_i, stamped: stamped, ttl: ttl_q, size: '0, window: window_q,
                         ack: ack_q, echo: echo_q};
    logic unused_steps;
    assign unused_steps = ^{ack_step, stamp_step, h_ttl6, h_ttl4};
  end else begin : g_strict
    assign loose     = '0;
    assign stamps    = '0;
    assign differs_o = differs_q;
    assign ttl       = '0;
    assign ip_base   = ip_rest;
    assign latest_o  = '0;
    logic unused_relaxed;
    assign unused_relaxed = relaxed_i;
  end

  always_ff @(posedge clk_i) begin
    seg_q <= '{
      cls: cls, cause: cause, push: psh, pay: total_q[13:0] - {7'd0, headers}, total: total_q[13:0],
      seq: seq_q, id: id_q, ttl: ttl,
      head: '{v6: v6, tags: found.tags, ece: ece,
              pay_at: 8'd14 + {4'd0, found.tags, 2'b00} + {1'b0, headers},
              ip_base: ip_base, addr_sum: fold(addr_q)}
    };
  end
  assign segment_o = seg_q;

  logic unused;
  assign unused = ^{frame_i, offset_half[11:8], len_words, h_proto4, h_proto6, ip0, ip3};

  `FERRONIC_ASSERT(NotStartedTwice, !start_i || (!run_q && !v1_q && !vx_q && !ended_q &&
                   !(late_q && Halves > 4)), clk_i,
                   rst_ni)
  `FERRONIC_ASSERT(TakenWhenDone, !take_i || done_q, clk_i, rst_ni)
endmodule
