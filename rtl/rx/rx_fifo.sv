// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Store-and-forward FIFO of received frames. A frame lies in the receive RAM (outside) in a slot of
// whole words: 12 bytes of virtio header (zero, num_buffers 1), then its bytes. Bad frames vanish:
// the next frame is written over them.
//
// Byte b of a frame is at slot address 12 + b, so a beat is rotated by the constant 12 mod Lanes.
// Throughput: one beat a cycle, and one (two at 64 bits) cycles a frame for the header, spent ahead
// of the frame when the wire is quiet; one more for a frame whose sums are found right, to say so
// in its header. Latency: from the result of rx_check three cycles to `frame_valid_o`.
//
// The last beat of a frame waits for rx_filter, which may drop the frame.
//
// Frames leave by `frame_*` in the order of arrival; the slot stays until `release_*`, in the same
// order. `patch_*` sets num_buffers of a frame that left and was not released.
//
// Invariants: slots in use lie between `tail_q` and `base_q`; no beat is stored within eleven words
// of `tail_q`, up to four of which are scratch; at most `Frames` frames wait.
`include "ferronic_assert.svh"
module rx_fifo
  import ferronic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned RamBytes = 16384,
  parameter int unsigned Frames = 64,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned LaneW = $clog2(Lanes),
  localparam int unsigned BytesW = LaneW + 1,
  localparam int unsigned Words = RamBytes / Lanes,
  localparam int unsigned AddrW = $clog2(Words)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              fn_rst_i,
  output logic              idle_o,      // no frame is here, whole or in part

  input  logic              lossless_i,
  input  logic [15:0]       max_frame_i,

  input  logic              rx_valid_i,
  output logic              rx_ready_o,
  input  logic              rx_last_i,
  input  logic              rx_abort_i,
  input  logic [BytesW-1:0] rx_bytes_i,
  input  logic [DataW-1:0]  rx_data_i,

  // Beats that are stored, `last` of good frames only; for each of those a result comes back.
  input  logic              check_ready_i,  // a frame may begin
  output logic              beat_valid_o,
  output logic              beat_first_o,
  output logic              beat_last_o,
  output logic [BytesW-1:0] beat_bytes_o,
  output logic [DataW-1:0]  beat_data_o,
  input  logic              mark_i,         // say in its header that a frame's sums are right
  input  logic              result_valid_i,
  input  rx_verdict_t       verdict_i,

  // Beats as they are offered, for the filter: a frame ends when it is ready.
  output logic              offer_o,
  output logic              offer_first_o,
  input  logic              filter_ready_i,
  input  logic              filter_drop_i,

  output logic              frame_valid_o,
  input  logic              frame_ready_i,
  output rx_frame_t         frame_o,
  input  logic              release_valid_i,
  input  logic [15:0]       release_len_i,
  input  logic              patch_valid_i,
  output logic              patch_ready_o,
  input  logic [15:0]       patch_ptr_i,
  input  logic [15:0]       patch_num_buffers_i,

  // Some words in front of the oldest frame, for what is written beside frames. While
  // they are held nothing that is released is written over, and they stay where they are.
  input  logic              scratch_hold_i,
  input  logic              scratch_valid_i,
  output logic              scratch_ready_o,
  input  logic [1:0]        scratch_word_i,
  input  logic [DataW-1:0]  scratch_data_i,
  output logic [15:0]       scratch_ptr_o,   // byte address of the first

  input  logic              headers_ready_i, // whoever keeps a copy of headers has room for a frame
  output logic [Lanes-1:0]  ram_we_o,
  output logic [AddrW-1:0]  ram_waddr_o,
  output logic [Lanes-1:0]  ram_winc_o,
  output logic [DataW-1:0]  ram_wdata_o,

  output logic              drop_short_o,
  output logic              drop_long_o,
  output logic              drop_abort_o,
  output logic              drop_full_o,
  output logic              drop_filter_o
);
  if (DataW != 64 && DataW != 128 && DataW != 256 && DataW != 512) begin : g_bad_width
    $error("%m: DataW (%0d) must be 64, 128, 256 or 512", DataW);
  end
  if (RamBytes > 65536 || RamBytes < MaxFrameBytes + VirtioHdrBytes + 16 * Lanes) begin : g_bad_ram
    $error("%m: RamBytes (%0d) must hold the largest frame and be at most 65536", RamBytes);
  end

  localparam int unsigned Rot = VirtioHdrBytes % Lanes;
  localparam int unsigned FirstWord = VirtioHdrBytes / Lanes;
  localparam int unsigned RecW = 14 + $bits(rx_verdict_t);
  localparam int unsigned RecAddrW = $clog2(Frames);
  // Words that stay free, a power of two: the beat's own, and those of a header, for the age of
  // `room_q`, and the scratch.
  localparam int unsigned Margin = 16;
  localparam int unsigned ScratchWords = (lro_pkg::ScratchBytes + Lanes - 1) / Lanes;

  typedef logic [AddrW-1:0] word_t;

  function automatic word_t slot_words(logic [13:0] len);
    return word_t'((15'(len) + 15'(VirtioHdrBytes + Lanes - 1)) >> LaneW);
  endfunction

  // ---------------------------------------------------------------- wire
  // A frame that was begun before a function reset is swallowed here, ahead of the register slice.
  logic wire_mid_q, swallow_q, in_ready;
  wire  wire_beat = rx_valid_i && rx_ready_o;
  wire  wire_mid = wire_beat ? !rx_last_i : wire_mid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wire_mid_q <= 1'b0;
      swallow_q  <= 1'b0;
    end else begin
      wire_mid_q <= wire_mid;
      if (fn_rst_i) swallow_q <= wire_mid;
      else if (wire_beat && rx_last_i) swallow_q <= 1'b0;
    end
  end

  logic              in_valid, in_take, in_last, in_abort;
  logic [BytesW-1:0] in_bytes;
  logic [DataW-1:0]  in_data;

  prim_skid #(.Width(2 + BytesW + DataW)) u_in (
    .clk_i, .rst_ni,
    .clr_i      (fn_rst_i),
    .in_valid_i (rx_valid_i && !swallow_q),
    .in_ready_o (in_ready),
    .in_data_i  ({rx_last_i, rx_abort_i, rx_bytes_i, rx_data_i}),
    .out_valid_o(in_valid),
    .out_ready_i(in_take),
    .out_data_o ({in_last, in_abort, in_bytes, in_data})
  );
  assign rx_ready_o = in_ready;

  // ---------------------------------------------------------------- into the RAM
  typedef enum logic [1:0] {
    StHdr0 = 2'd0, // header (its first word at 64 bits)
    StHdr1 = 2'd1, // bytes 8 to 11 of the header, at 64 bits only
    StData = 2'd2,
    StSkip = 2'd3  // the rest of a frame that was dropped
  } state_e;

  state_e       state_q;
  word_t        base_q;    // first word of the slot
  word_t        pos_q;     // where the next beat begins
  word_t        tail_q;    // first word that was not released
  word_t        beat_q;    // beats of this frame that are stored
  logic         room_q, fresh_q, fresher_q, rec_room_q;
  logic [13:0]  max_q;
  logic         rel_valid_q;
  word_t        rel_words_q;
  wire          rel_held = rel_valid_q && scratch_hold_i;
  logic         good_q;
  logic [13:0]  good_len_q;
  word_t        good_base_q;
  // Records of whole frames, and how many they will be with those that wait for a result.
  logic [RecAddrW:0] rec_wptr_q, rec_rptr_q, rec_gptr_q, rec_level, rec_used;

  // A result ends a frame's stay here; the flags are set in its header first.
  logic         wait_ready, wait_valid;
  logic [13:0]  rec_len;
  word_t        rec_base;
  wire          rec_push = result_valid_i;
  wire          mark = result_valid_i && verdict_i.sum_ok && mark_i;
  wire          port_free = !patch_valid_i && !scratch_valid_i && !mark;
  wire          may_begin = room_q && rec_room_q && wait_ready && check_ready_i && headers_ready_i;
  wire          full_drop = !lossless_i && fresher_q && in_valid;

  // Length with this beat. `beat_q` stops a beat after `max_q`, so 15 bits hold it.
  wire  [14:0]  len = (15'(beat_q) << LaneW) + 15'(in_bytes);
  wire          too_long = len > {1'b0, max_q};
  wire          too_short = (len[14:4] == '0) && (len[3:0] < 4'(MinFrameBytes));
  wire          store = (state_q == StData) && in_valid && room_q && port_free &&
                        (filter_ready_i || !in_last);
  wire          ends = store && (in_last || too_long);
  wire          whole = store && in_last && !in_abort && !too_short && !too_long;
  wire          good = whole && !filter_drop_i;
  // Where the next beat begins, or the next slot: this beat fills words from byte `Rot` on.
  wire [BytesW:0] fill = (BytesW + 1)'(Rot + Lanes - 1) + (BytesW + 1)'(in_bytes);
  wire word_t   pos_next = pos_q + (in_last ? word_t'(fill[BytesW:LaneW]) : word_t'(1));
  wire word_t   used = pos_q - tail_q;

  always_comb begin
    in_take = 1'b0;
    unique case (state_q)
      StData:  in_take = store;
      StSkip:  in_take = in_valid;
      default: in_take = 1'b0;
    endcase
  end

  assign patch_ready_o   = !mark;
  assign scratch_ready_o = !mark && !patch_valid_i;
  wire word_t scratch_word = tail_q - word_t'(ScratchWords);
  assign scratch_ptr_o = 16'(scratch_word) << LaneW;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q    <= StHdr0;
      base_q     <= '0;
      pos_q      <= '0;
      tail_q     <= '0;
      beat_q     <= '0;
      fresh_q    <= 1'b0;
      fresher_q  <= 1'b0;
      good_q     <= 1'b0;
    end else if (fn_rst_i) begin
      state_q    <= StHdr0;
      base_q     <= '0;
      pos_q      <= '0;
      tail_q     <= '0;
      beat_q     <= '0;
      fresh_q    <= 1'b0;
      fresher_q  <= 1'b0;
      good_q     <= 1'b0;
    end else begin
      good_q     <= good;
      // Two cycles after the end of a frame `room_q` is of what came after it.
      fresh_q    <= 1'b1;
      fresher_q  <= fresh_q;
      if (rel_valid_q && !scratch_hold_i) tail_q <= tail_q + rel_words_q;
      if (good) base_q <= pos_next;
      if (state_q != StData) pos_q <= base_q + word_t'(FirstWord);
      else if (store) pos_q <= pos_next;
      if (ends) begin
        beat_q    <= '0;
        fresh_q   <= 1'b0;
        fresher_q <= 1'b0;
      end else if (store) begin
        beat_q <= beat_q + 1'b1;
      end
      unique case (state_q)
        StHdr0: begin
          if (may_begin) begin
            if (port_free) state_q <= (Lanes == 8) ? StHdr1 : StData;
          end else if (full_drop) begin
            state_q <= StSkip;
          end
        end
        StHdr1: if (port_free) state_q <= StData;
        StData: begin
          if (ends) begin
            state_q <= in_last ? StHdr0 : StSkip;
          end else if (!room_q && full_drop) begin
            state_q   <= StSkip;
            beat_q    <= '0;
            fresh_q   <= 1'b0;
            fresher_q <= 1'b0;
          end
        end
        StSkip: if (in_valid && in_last) state_q <= StHdr0;
        default: state_q <= StHdr0;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      room_q       <= 1'b0;
      rec_room_q   <= 1'b0;
      max_q        <= 14'(MaxFrameBytes);
      rel_valid_q  <= 1'b0;
      drop_short_o <= 1'b0;
      drop_long_o  <= 1'b0;
      drop_abort_o <= 1'b0;
      drop_full_o  <= 1'b0;
      drop_filter_o <= 1'b0;
    end else begin
      room_q       <= !(&used[AddrW-1:$clog2(Margin)]);
      rec_room_q   <= !rec_used[RecAddrW] && !(&rec_used[RecAddrW-1:1]);
      max_q        <= (max_frame_i > 16'(MaxFrameBytes)) ? 14'(MaxFrameBytes) : max_frame_i[13:0];
      rel_valid_q  <= (release_valid_i || rel_held) && !fn_rst_i;
      drop_abort_o <= store && in_last && in_abort && !fn_rst_i;
      drop_long_o  <= store && too_long && !(in_last && in_abort) && !fn_rst_i;
      drop_short_o <= store && in_last && !in_abort && too_short && !fn_rst_i;
      drop_filter_o <= whole && filter_drop_i && !fn_rst_i;
      drop_full_o  <= full_drop && !fn_rst_i &&
                      ((state_q == StHdr0 && !may_begin) || (state_q == StData && !room_q));
    end
  end

  always_ff @(posedge clk_i) begin
    if (release_valid_i || !rel_held) begin
      rel_words_q <= (rel_held ? rel_words_q : '0) + slot_words(release_len_i[13:0]);
    end
    good_len_q  <= len[13:0];
    good_base_q <= base_q;
  end

  // Frames that wait for their result.
  logic [4:0] wait_level;
  prim_fifo #(.Width(14 + AddrW), .Depth(16)) u_wait (
    .clk_i, .rst_ni,
    .clr_i     (fn_rst_i),
    .wr_valid_i(good_q),
    .wr_ready_o(wait_ready),
    .wr_data_i ({good_len_q, good_base_q}),
    .rd_valid_o(wait_valid),
    .rd_ready_i(rec_push),
    .rd_data_o ({rec_len, rec_base}),
    .level_o   (wait_level)
  );

  // One write a cycle: a patch, a header or a beat.
  logic [Lanes-1:0] data_inc;
  logic [DataW-1:0] rotated;
  assign data_inc = Lanes'((1 << Rot) - 1);
  if (Rot == 0) begin : g_no_rotate
    assign rotated = in_data;
  end else begin : g_rotate
    assign rotated = {in_data[DataW-8*Rot-1:0], in_data[DataW-1:DataW-8*Rot]};
  end

  localparam int unsigned NumByte = 10; // num_buffers in the header
  localparam int unsigned NumLane = NumByte % Lanes;
  localparam int unsigned NumWord = NumByte / Lanes;
  localparam logic [DataW-1:0] HdrData = DataW'(1) << (8 * NumLane);
  // Flags, byte 0 (virtio 1.2, "Device Operation" of the network device).
  localparam logic [7:0] DataValid = 8'd2;

  always_comb begin
    ram_winc_o  = '0;
    ram_waddr_o = base_q;
    ram_wdata_o = rotated;
    ram_we_o    = '0;
    if (mark) begin
      ram_we_o[0]      = 1'b1;
      ram_waddr_o      = rec_base;
      ram_wdata_o[7:0] = DataValid;
    end else if (patch_valid_i) begin
      ram_we_o[NumLane+:2]        = 2'b11;
      ram_waddr_o                 = patch_ptr_i[LaneW+:AddrW] + word_t'(NumWord);
      ram_wdata_o[8*NumLane+:16]  = patch_num_buffers_i;
    end else if (scratch_valid_i) begin
      ram_we_o    = '1;
      ram_waddr_o = scratch_word + word_t'(scratch_word_i);
      ram_wdata_o = scratch_data_i;
    end else begin
      unique case (state_q)
        StHdr0: begin
          ram_we_o    = may_begin ? ((Lanes == 8) ? '1 : Lanes'(12'hfff)) : '0;
          ram_wdata_o = (Lanes == 8) ? '0 : HdrData;
        end
        StHdr1: begin
          ram_we_o    = Lanes'(4'hf);
          ram_waddr_o = pos_q;
          ram_wdata_o = HdrData;
        end
        StData: begin
          ram_we_o    = {Lanes{store}};
          ram_waddr_o = pos_q;
          ram_winc_o  = data_inc;
        end
        default: ;
      endcase
    end
  end

  assign offer_o       = (state_q == StData) && in_valid;
  assign offer_first_o = (beat_q == '0);

  assign beat_valid_o = store;
  assign beat_first_o = (beat_q == '0);
  assign beat_last_o  = good;
  assign beat_bytes_o = in_bytes;
  assign beat_data_o  = in_data;

  // ---------------------------------------------------------------- records of whole frames
  // RAM, then its output register, then `out_q`: the slot address is summed up from registers only.
  logic               fetched_q, out_valid_q;
  logic [RecW-1:0]    rec_data;
  logic [13:0]        out_len_q;
  rx_verdict_t        out_verdict_q;
  word_t              out_word_q;

  assign rec_level = rec_wptr_q - rec_rptr_q;
  assign rec_used  = rec_gptr_q - rec_rptr_q;
  wire   out_pop   = out_valid_q && frame_ready_i;
  wire   out_load  = fetched_q && (!out_valid_q || out_pop);
  wire   rec_fetch = (rec_level != '0) && (!fetched_q || out_load);

  prim_ram_1r1w #(.Width(RecW), .Depth(Frames)) u_records (
    .clk_i,
    .we_i   (rec_push),
    .waddr_i(rec_wptr_q[RecAddrW-1:0]),
    .wdata_i({rec_len, verdict_i}),
    .re_i   (rec_fetch),
    .raddr_i(rec_rptr_q[RecAddrW-1:0]),
    .rdata_o(rec_data)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      rec_wptr_q  <= '0;
      rec_gptr_q  <= '0;
      rec_rptr_q  <= '0;
      fetched_q   <= 1'b0;
      out_valid_q <= 1'b0;
      out_word_q  <= '0;
    end else if (fn_rst_i) begin
      rec_wptr_q  <= '0;
      rec_gptr_q  <= '0;
      rec_rptr_q  <= '0;
      fetched_q   <= 1'b0;
      out_valid_q <= 1'b0;
      out_word_q  <= '0;
    end else begin
      if (good) rec_gptr_q <= rec_gptr_q + 1'b1;
      if (rec_push) rec_wptr_q <= rec_wptr_q + 1'b1;
      if (rec_fetch) rec_rptr_q <= rec_rptr_q + 1'b1;
      fetched_q   <= rec_fetch || (fetched_q && !out_load);
      out_valid_q <= out_load || (out_valid_q && !out_pop);
      if (out_pop) out_word_q <= out_word_q + slot_words(out_len_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (out_load) {out_len_q, out_verdict_q} <= rec_data;
  end

  assign frame_valid_o = out_valid_q;
  assign frame_o.ptr   = 16'(out_word_q) << LaneW;
  assign frame_o.len   = {2'b00, out_len_q};
  assign frame_o.verdict = out_verdict_q;

  assign idle_o = !in_valid && !out_valid_q && !fetched_q && (rec_used == '0) &&
                  (beat_q == '0) && (state_q != StSkip);

  // Only what lies inside the RAM and below the largest frame is looked at, in whole words.
  logic unused;
  assign unused = ^{release_len_i[15:14], patch_ptr_i, fill[LaneW-1:0], wait_level};

  `FERRONIC_ASSERT(RoomKept, !store || used < word_t'(Words - 11), clk_i, rst_ni)
  `FERRONIC_ASSERT(ScratchHeld, !scratch_valid_i || scratch_hold_i || fn_rst_i, clk_i, rst_ni)
  `FERRONIC_ASSERT(ResultHasFrame, !result_valid_i || wait_valid, clk_i, rst_ni)
  `FERRONIC_ASSERT(RecordsInRange, rec_used <= (RecAddrW + 1)'(Frames), clk_i, rst_ni)
  `FERRONIC_ASSERT_STABLE(FrameStable, frame_valid_o, frame_ready_i || fn_rst_i, frame_o,
                          clk_i, rst_ni)
endmodule
