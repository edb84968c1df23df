// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Streams whole frames from the frame RAM to the wire, without their virtio header, and frees their
// space. The first word of a frame is read for its header: a frame that asks for an offload is
// dropped here, because none is offered.
//
// Byte b of a frame is at slot address 12 + b, so beats are rotated by a constant. One cycle for
// the header and then one beat a cycle; latency three cycles. A function reset in the middle of a
// frame ends it on the wire with `last` and `abort`.
//
// Invariant: on the wire, every frame that was begun is ended, and a beat offered does not change.
`include "ferronic_assert.svh"
module tx_out
  import ferronic_pkg::*;
  import tx_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned RamBytes = 16384,
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned LaneW = $clog2(Lanes),
  localparam int unsigned BytesW = LaneW + 1,
  localparam int unsigned Words = RamBytes / Lanes,
  localparam int unsigned AddrW = $clog2(Words)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              fn_rst_i,
  output logic              idle_o,

  input  logic              frame_valid_i,
  output logic              frame_ready_o,
  input  tx_frame_t         frame_i,
  output logic              free_valid_o,
  output logic [AddrW:0]    free_words_o,

  output logic              ram_re_o,
  output logic [AddrW-1:0]  ram_raddr_o,
  output logic [Lanes-1:0]  ram_rinc_o,
  input  logic [DataW-1:0]  ram_rdata_i,

  output frame_event_t      event_o,
  output logic              drop_short_o,
  output logic              drop_long_o,
  output logic              drop_offload_o,
  output logic              drop_read_o,
  output logic              drop_other_o,

  output logic              tx_valid_o,
  input  logic              tx_ready_i,
  output logic              tx_last_o,
  output logic              tx_abort_o,
  output logic [BytesW-1:0] tx_bytes_o,
  output logic [DataW-1:0]  tx_data_o
);
  localparam int unsigned Rot = VirtioHdrBytes % Lanes;
  localparam int unsigned FirstWord = VirtioHdrBytes / Lanes;

  typedef logic [AddrW-1:0] word_t;
  typedef logic [AddrW:0]   count_t;

  // ---------------------------------------------------------------- reads
  logic        data_q;      // the header was read, its beats are
  word_t       base_q;      // slot of the frame at `frame_i`
  word_t       beat_word_q; // next word of beats
  logic [13:0] left_q;      // bytes to be read

  // What the RAM's output register holds.
  logic              rd_valid_q, rd_hdr_q, rd_last_q;
  logic [BytesW-1:0] rd_bytes_q;
  logic              bad_q; // of the frame whose beats are there
  logic              out_ready, abort_q, mid_q;

  wire rd_leave = rd_hdr_q || bad_q || (out_ready && !abort_q);
  wire advance = !rd_valid_q || rd_leave;
  wire whole = (frame_i.kind == TxOk);
  wire read_hdr = !data_q && frame_valid_i && whole && advance;
  wire read_beat = data_q && advance;
  wire last_beat = left_q <= 14'(Lanes);
  wire drop = !data_q && frame_valid_i && !whole && !rd_valid_q;
  wire hdr_leave = rd_valid_q && rd_hdr_q;
  wire count_t words = count_t'((15'(frame_i.len) + 15'(Lanes - 1)) >> LaneW);

  assign frame_ready_o = drop || (read_beat && last_beat);
  assign ram_re_o      = read_hdr || read_beat;
  assign ram_raddr_o   = data_q ? beat_word_q : base_q;
  assign ram_rinc_o    = data_q ? Lanes'((1 << Rot) - 1) : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      data_q       <= 1'b0;
      base_q       <= '0;
      rd_valid_q   <= 1'b0;
      free_valid_o <= 1'b0;
    end else if (fn_rst_i) begin
      data_q       <= 1'b0;
      base_q       <= '0;
      rd_valid_q   <= 1'b0;
      free_valid_o <= 1'b0;
    end else begin
      if (read_hdr) data_q <= 1'b1;
      else if (frame_ready_o) data_q <= 1'b0;
      if (frame_ready_o) base_q <= base_q + word_t'(words);
      if (advance) rd_valid_q <= ram_re_o;
      free_valid_o <= frame_ready_o;
    end
  end

  always_ff @(posedge clk_i) begin
    free_words_o <= words;
    if (read_hdr) begin
      beat_word_q <= base_q + word_t'(FirstWord);
      left_q      <= frame_i.len - 14'(VirtioHdrBytes);
    end else if (read_beat) begin
      beat_word_q <= beat_word_q + 1'b1;
      left_q      <= left_q - 14'(Lanes);
    end
    if (advance) begin
      rd_hdr_q   <= !data_q;
      rd_last_q  <= last_beat;
      rd_bytes_q <= last_beat ? left_q[BytesW-1:0] : BytesW'(Lanes);
    end
  end

  // ---------------------------------------------------------------- verdict and event
  // flags.NEEDS_CSUM or any gso_type (virtio 1.2, "Device Operation" of the network device).
  wire wants_offload = ram_rdata_i[0] || (ram_rdata_i[15:8] != 8'h00);

  logic        event_valid_q;
  tx_kind_e    event_kind_q;
  qid_t        event_q_q;
  logic [13:0] event_len_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      event_valid_q <= 1'b0;
      bad_q         <= 1'b0;
    end else if (fn_rst_i) begin
      event_valid_q <= 1'b0;
      bad_q         <= 1'b0;
    end else begin
      event_valid_q <= hdr_leave || drop;
      if (hdr_leave) bad_q <= wants_offload;
      else if (drop) bad_q <= 1'b0;
    end
  end

  // The header leaves in the cycle after it was read, when its frame is still at `frame_i`.
  always_ff @(posedge clk_i) begin
    event_kind_q <= frame_i.kind;
    event_q_q    <= frame_i.q;
    event_len_q  <= frame_i.len - 14'(VirtioHdrBytes);
  end

  assign event_o.valid  = event_valid_q;
  assign event_o.q      = event_q_q;
  assign event_o.drop   = (event_kind_q != TxOk) || bad_q;
  assign event_o.bytes  = {2'b00, event_len_q};
  assign drop_short_o   = event_valid_q && (event_kind_q == TxShort);
  assign drop_long_o    = event_valid_q && (event_kind_q == TxLong);
  assign drop_read_o    = event_valid_q && (event_kind_q == TxRead);
  assign drop_other_o   = event_valid_q && (event_kind_q == TxOther);
  assign drop_offload_o = event_valid_q && (event_kind_q == TxOk) && bad_q;

  // ---------------------------------------------------------------- wire
  // The register slice is not cleared by a function reset.
  logic              out_valid, out_last;
  logic [DataW-1:0]  rotated;
  assign out_valid = abort_q || (rd_valid_q && !rd_hdr_q && !bad_q);
  assign out_last  = abort_q || rd_last_q;
  wire   out_beat  = out_valid && out_ready;
  wire   mid       = out_beat ? !out_last : mid_q;

  if (Rot == 0) begin : g_no_rotate
    assign rotated = ram_rdata_i;
  end else begin : g_rotate
    assign rotated = {ram_rdata_i[8*Rot-1:0], ram_rdata_i[DataW-1:8*Rot]};
  end

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
    .in_data_i  ({out_last, abort_q, abort_q ? BytesW'(1) : rd_bytes_q, rotated}),
    .out_valid_o(tx_valid_o),
    .out_ready_i(tx_ready_i),
    .out_data_o ({tx_last_o, tx_abort_o, tx_bytes_o, tx_data_o})
  );

  assign idle_o = !data_q && !rd_valid_q && !event_valid_q && !abort_q && !tx_valid_o &&
                  !frame_valid_i;

  `FERRONIC_ASSERT(BytesInRange, !tx_valid_o || (tx_bytes_o != '0 && tx_bytes_o <= BytesW'(Lanes)),
                   clk_i, rst_ni)
  `FERRONIC_ASSERT(WholeBeats, !tx_valid_o || tx_last_o || tx_bytes_o == BytesW'(Lanes),
                   clk_i, rst_ni)
endmodule
