// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Transmit path: buffers in host memory to frames on the wire.
//
//   work -> tx_sched -> tx_reader -> dma_read -> landing RAM -> tx_stream -> tx_fifo -> wire
//                            \-> records -> tx_complete -> tx_offload -^ |
//                                               \-> used ring        tx_header
//
// tx_flow tells the receive path which flows are sent to.
//
// The function reset `fn_rst_i` may come at any moment, for one cycle or more: all frames are
// thrown away, a frame that is half out ends with last and abort. With `pause_i` what was begun
// ends by itself and `idle_o` rises.
//
// The walker is asked for one buffer at a time, and every buffer is committed after its last
// segment; nothing is committed after an answer with `none` or `err`.
module tx_path
  import ferronic_pkg::*;
  import tx_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned QueuePairs = 4,
  parameter int unsigned RamBytes = (DataW >= 256) ? 32768 : 16384,
  parameter bit          Steering = 1'b1,  // the receive path wants to know of flows
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned BytesW = $clog2(Lanes) + 1,
  localparam int unsigned WordW = 16 - $clog2(Lanes)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              fn_rst_i,
  input  logic              pause_i,
  input  tx_offload_t       offload_i,       // stable while there is work
  output logic              idle_o,          // nothing in flight, and no queue waits unless paused
  output logic              drained_o,       // likewise, but frames may wait for the wire

  // Work: a pulse when a queue became non-empty, and a combinational look-up.
  input  logic              work_valid_i,
  input  qid_t              work_q_i,
  output qid_t              check_q_o,
  input  logic              has_work_i,

  // Walker: one buffer a request.
  output logic              buf_req_valid_o,
  input  logic              buf_req_ready_i,
  output qid_t              buf_req_q_o,
  input  logic              seg_valid_i,
  output logic              seg_ready_o,
  input  vq_seg_t           seg_i,
  output logic              buf_commit_o,
  output qid_t              buf_commit_q_o,

  // dma_read: requests, and the write bus of the frame RAMs (only DstTx is taken).
  output logic              rd_req_valid_o,
  input  logic              rd_req_ready_i,
  output dma_rd_req_t       rd_req_o,
  input  dma_rd_done_t      rd_done_i,
  input  logic [Lanes-1:0]  ram_we_i,
  input  dma_dst_e          ram_dst_i,
  input  logic [WordW-1:0]  ram_waddr_i,
  input  logic [Lanes-1:0]  ram_winc_i,
  input  logic [DataW-1:0]  ram_wdata_i,

  // Used ring, counters, errors.
  output logic              used_valid_o,
  input  logic              used_ready_i,
  output vq_used_t          used_o,
  output frame_event_t      event_o,         // when the frame was read, or `drop`
  output logic              queue_error_o,   // pulse: a read of this queue's memory failed
  output qid_t              queue_error_q_o,
  output logic              drop_short_o,    // one-cycle pulses, one a frame
  output logic              drop_long_o,
  output logic              drop_offload_o,  // asks for an offload that was not negotiated
  output logic              drop_read_o,     // a read failed
  output logic              drop_other_o,    // broken descriptor chain
  output tx_flow_t          flow_o,          // of each frame that is sent

  // Wire.
  output logic              tx_valid_o,
  input  logic              tx_ready_i,
  output logic              tx_last_o,
  output logic              tx_abort_o,
  output logic [BytesW-1:0] tx_bytes_o,
  output logic [DataW-1:0]  tx_data_o
);
  localparam int unsigned AddrW = $clog2(RamBytes / Lanes);
  localparam int unsigned HdrBeats = (TxHdrBytes * 8 + DataW - 1) / DataW;
  localparam int unsigned HdrBeatW = (HdrBeats > 1) ? $clog2(HdrBeats) : 1;

  logic             seek, next_valid, next_take, keep, spent, extra, ret_valid, ret_ready, ret_off;
  qid_t             next_q, ret_q, extra_q;
  tx_len_t          cost, spent_bytes;
  logic [7:0]       extra_bytes;
  logic             rec_valid, rec_ready, frame_valid, frame_ready, drain;
  tx_record_t       rec;
  tx_frame_t        frame;
  logic             free_valid;
  logic [AddrW:0]   free_words;
  qid_t             part_q;
  tx_len_t          part;
  logic             part_bad;
  logic             look_re, stream_re;
  logic [AddrW-1:0] look_raddr, stream_raddr;
  logic [Lanes-1:0] stream_rinc;
  logic [DataW-1:0] ram_rdata;
  logic             job_valid, job_ready, loading, hdr_busy;
  tx_job_t          job;
  logic             hdr_idle, parse, update, seg_first, seg_last, hdr_ok;
  logic [13:0]      seg_bytes;
  hdr_layout_t      layout;
  logic [7:0]       hdr_len;
  logic [HdrBeatW-1:0] hdr_beat, load_beat;
  logic [DataW-1:0] hdr_data;
  logic             hdr_re, load, frame_room, frame_begins, room, take, beat_valid;
  logic [13:0]      frame_len;
  tx_beat_t         beat;
  logic [BytesW-1:0] beat_bytes, beat_skip;
  logic [DataW-1:0] beat_data;
  qid_t             beat_q;
  logic             sched_idle, reader_idle, complete_idle, offload_idle, stream_idle, fifo_idle;

  tx_sched #(.QueuePairs(QueuePairs)) u_sched (
    .clk_i, .rst_ni, .fn_rst_i,
    .idle_o       (sched_idle),
    .work_valid_i, .work_q_i, .check_q_o, .has_work_i,
    .seek_i       (seek),
    .next_valid_o (next_valid),
    .next_q_o     (next_q),
    .next_take_i  (next_take),
    .cost_i       (cost),
    .keep_o       (keep),
    .ret_valid_i  (ret_valid),
    .ret_ready_o  (ret_ready),
    .ret_q_i      (ret_q),
    .ret_off_i    (ret_off),
    .spent_i      (spent),
    .spent_bytes_i(spent_bytes),
    .extra_i      (extra),
    .extra_q_i    (extra_q),
    .extra_bytes_i(extra_bytes)
  );

  tx_reader #(.DataW(DataW), .RamBytes(RamBytes)) u_reader (
    .clk_i, .rst_ni, .fn_rst_i, .pause_i,
    .idle_o      (reader_idle),
    .drain_o     (drain),
    .seek_o      (seek),
    .next_valid_i(next_valid),
    .next_q_i    (next_q),
    .next_take_o (next_take),
    .cost_o      (cost),
    .keep_i      (keep),
    .spent_o     (spent),
    .spent_bytes_o(spent_bytes),
    .ret_valid_o (ret_valid),
    .ret_ready_i (ret_ready),
    .ret_q_o     (ret_q),
    .ret_off_o   (ret_off),
    .buf_req_valid_o, .buf_req_ready_i, .buf_req_q_o,
    .seg_valid_i, .seg_ready_o, .seg_i,
    .buf_commit_o, .buf_commit_q_o,
    .rd_req_valid_o, .rd_req_ready_i, .rd_req_o,
    .rd_done_i   (rd_done_i.valid),
    .rec_valid_o (rec_valid),
    .rec_ready_i (rec_ready),
    .rec_o       (rec),
    .free_valid_i(free_valid),
    .free_words_i(free_words)
  );

  // As many frames as the latency of a read covers, at the pace of the data path.
  tx_complete #(.Records((DataW >= 256) ? 32 : 16)) u_complete (
    .clk_i, .rst_ni, .fn_rst_i,
    .idle_o       (complete_idle),
    .rec_valid_i  (rec_valid),
    .rec_ready_o  (rec_ready),
    .rec_i        (rec),
    .rd_done_i,
    .drain_i      (drain),
    .used_valid_o, .used_ready_i, .used_o,
    .queue_error_o, .queue_error_q_o,
    .part_o       (part),
    .part_q_o     (part_q),
    .part_bad_o   (part_bad),
    .frame_valid_o(frame_valid),
    .frame_ready_i(frame_ready),
    .frame_o      (frame)
  );

  lane_ram #(.DataW(DataW), .Bytes(RamBytes)) u_ram (
    .clk_i,
    .we_i   ((ram_dst_i == DstTx) ? ram_we_i : '0),
    .waddr_i(ram_waddr_i[AddrW-1:0]),
    .winc_i (ram_winc_i),
    .wdata_i(ram_wdata_i),
    .re_i   (look_re || stream_re),
    .raddr_i(look_re ? look_raddr : stream_raddr),
    .rinc_i (look_re ? '0 : stream_rinc),
    .rdata_o(ram_rdata)
  );
  if (AddrW < WordW) begin : g_wrap
    logic unused; // addresses wrap at the size of the RAM
    assign unused = ^ram_waddr_i[WordW-1:AddrW];
  end

  tx_offload #(.DataW(DataW), .RamBytes(RamBytes)) u_offload (
    .clk_i, .rst_ni, .fn_rst_i, .offload_i,
    .idle_o       (offload_idle),
    .frame_valid_i(frame_valid),
    .frame_ready_o(frame_ready),
    .frame_i      (frame),
    .part_q_i     (part_q),
    .part_i       (part),
    .part_bad_i   (part_bad),
    .ram_re_o     (look_re),
    .ram_raddr_o  (look_raddr),
    .ram_rdata_i  (ram_rdata),
    .job_valid_o  (job_valid),
    .job_ready_i  (job_ready),
    .job_o        (job),
    .loading_i    (loading),
    .hdr_busy_i   (hdr_busy),
    .hdr_idle_i   (hdr_idle),
    .parse_o      (parse),
    .update_o     (update),
    .bytes_o      (seg_bytes),
    .first_o      (seg_first),
    .last_o       (seg_last),
    .ok_i         (hdr_ok),
    .layout_i     (layout),
    .hdr_len_i    (hdr_len),
    .extra_o      (extra),
    .extra_q_o    (extra_q),
    .extra_bytes_o(extra_bytes),
    .event_o,
    .drop_short_o, .drop_long_o, .drop_offload_o, .drop_read_o, .drop_other_o
  );

  tx_header #(.DataW(DataW)) u_header (
    .clk_i, .rst_ni,
    .clr_i      (fn_rst_i),
    .load_i     (load),
    .load_beat_i(load_beat),
    .load_data_i(beat_data),
    .re_i       (hdr_re),
    .beat_i     (hdr_beat),
    .data_o     (hdr_data),
    .idle_o     (hdr_idle),
    .parse_i    (parse),
    .update_i   (update),
    .bytes_i    (seg_bytes),
    .first_i    (seg_first),
    .last_i     (seg_last),
    .ok_o       (hdr_ok),
    .layout_o   (layout),
    .hdr_len_o  (hdr_len)
  );

  tx_stream #(.DataW(DataW), .RamBytes(RamBytes)) u_stream (
    .clk_i, .rst_ni, .fn_rst_i,
    .idle_o      (stream_idle),
    .loading_o   (loading),
    .hdr_busy_o  (hdr_busy),
    .job_valid_i (job_valid),
    .job_ready_o (job_ready),
    .job_i       (job),
    .free_valid_o(free_valid),
    .free_words_o(free_words),
    .ram_taken_i (look_re),
    .ram_re_o    (stream_re),
    .ram_raddr_o (stream_raddr),
    .ram_rinc_o  (stream_rinc),
    .ram_rdata_i (ram_rdata),
    .hdr_re_o    (hdr_re),
    .hdr_beat_o  (hdr_beat),
    .hdr_data_i  (hdr_data),
    .load_o      (load),
    .load_beat_o (load_beat),
    .frame_room_i(frame_room),
    .frame_o     (frame_begins),
    .frame_len_o (frame_len),
    .room_i      (room),
    .take_o      (take),
    .beat_valid_o(beat_valid),
    .beat_o      (beat),
    .beat_bytes_o(beat_bytes),
    .beat_q_o    (beat_q),
    .beat_skip_o (beat_skip),
    .beat_data_o (beat_data)
  );

  if (Steering && QueuePairs > 1) begin : g_flow
    tx_flow #(.DataW(DataW)) u_flow (
      .clk_i, .rst_ni,
      .clr_i       (fn_rst_i),
      .beat_valid_i(beat_valid),
      .beat_first_i(beat.first),
      .beat_last_i (beat.last),
      .beat_bytes_i(beat_bytes),
      .beat_data_i (beat_data),
      .beat_q_i    (beat_q),
      .flow_o
    );
  end else begin : g_no_flow
    assign flow_o = '0;
    logic unused_q;
    assign unused_q = ^beat_q;
  end

  tx_fifo #(.DataW(DataW), .RamBytes(RamBytes)) u_fifo (
    .clk_i, .rst_ni, .fn_rst_i,
    .idle_o      (fifo_idle),
    .frame_room_o(frame_room),
    .frame_i     (frame_begins),
    .frame_len_i (frame_len),
    .room_o      (room),
    .take_i      (take),
    .beat_valid_i(beat_valid),
    .beat_i      (beat),
    .beat_bytes_i(beat_bytes),
    .beat_skip_i (beat_skip),
    .beat_data_i (beat_data),
    .tx_valid_o, .tx_ready_i, .tx_last_o, .tx_abort_o, .tx_bytes_o, .tx_data_o
  );

  assign drained_o = reader_idle && complete_idle && (pause_i || sched_idle);
  assign idle_o    = drained_o && offload_idle && stream_idle && fifo_idle;
endmodule
