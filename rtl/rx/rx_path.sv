// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Receive path: frames from the wire to buffers in host memory.
//
//   wire -> rx_fifo (store and forward, with rx_check beside it) -> rx_writer -> dma_write
//                    \-> frame RAM -----------------------------------> RAM read port
//
// The function reset `fn_rst_i` may come at any moment, for one cycle or more: all frames are
// thrown away, a frame that is half in is swallowed to its end. With `pause_i` what was begun ends
// by itself, no new buffer is asked for, and `idle_o` rises; frames in the FIFO stay there.
//
// The walker is asked for one buffer at a time. After an answer with `err` neither commit nor
// rewind follows; after `none` a rewind does. Commit and rewind never come in one cycle.
module rx_path
  import ferronic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned RamBytes = (DataW >= 256) ? 32768 : 16384,
  parameter int unsigned RxWaitCycles = 12500,
  parameter int unsigned MaxBuffers = 64, // of one frame; the walker must be able to give as many
  localparam int unsigned Lanes = DataW / 8,
  localparam int unsigned BytesW = $clog2(Lanes) + 1,
  localparam int unsigned WordW = 16 - $clog2(Lanes)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              fn_rst_i,
  input  logic              pause_i,
  output logic              idle_o,     // nothing in flight, and no frame waits unless paused
  output logic              stalled_o,  // as idle_o but for a frame that waits for a buffer without
                                        // a time limit: only `buf_avail_i` or the wire moves on

  // Settings. `pairs_in_use_i` is 1 to 64, `max_frame_i` counts bytes without FCS.
  input  logic [6:0]        pairs_in_use_i,
  input  logic              mrg_rxbuf_i,
  input  logic              guest_csum_i,
  input  logic              driver_ok_i,
  input  logic              lossless_i,
  input  logic [15:0]       max_frame_i,

  // Wire.
  input  logic              rx_valid_i,
  output logic              rx_ready_o,
  input  logic              rx_last_i,
  input  logic              rx_abort_i,
  input  logic [BytesW-1:0] rx_bytes_i,
  input  logic [DataW-1:0]  rx_data_i,

  // Walker: one buffer a request.
  output logic              buf_req_valid_o,
  input  logic              buf_req_ready_i,
  output qid_t              buf_req_q_o,
  input  logic              seg_valid_i,
  output logic              seg_ready_o,
  input  vq_seg_t           seg_i,
  output logic              buf_commit_o,
  output qid_t              buf_commit_q_o,
  output logic              buf_rewind_o,
  output qid_t              buf_rewind_q_o,
  input  logic              buf_avail_i,     // pulse: some receive queue has new buffers

  // dma_write: commands, and the read port of the frame RAM.
  output logic              wr_cmd_valid_o,
  input  logic              wr_cmd_ready_i,
  output dma_wr_cmd_t       wr_cmd_o,
  input  logic              wr_done_i,
  input  logic              ram_re_i,
  input  logic [WordW-1:0]  ram_raddr_i,
  input  logic [Lanes-1:0]  ram_rinc_i,
  output logic [DataW-1:0]  ram_rdata_o,

  // Used ring, counters.
  output logic              used_valid_o,
  input  logic              used_ready_i,
  output vq_used_t          used_o,
  output frame_event_t      event_o,         // `drop` is set for frames dropped after steering
  output logic              drop_short_o,    // one-cycle pulses, one a frame
  output logic              drop_long_o,
  output logic              drop_abort_o,
  output logic              drop_full_o,     // the frame FIFO had no space
  output logic              drop_nobuf_o,    // no buffer was posted in time, or it was too small
  output logic              drop_other_o     // broken descriptor chain
);
  localparam int unsigned AddrW = $clog2(RamBytes / Lanes);

  logic              check_ready, beat_valid, beat_first, beat_last, result_valid, sum_ok;
  logic [BytesW-1:0] beat_bytes;
  logic [DataW-1:0]  beat_data;
  logic [15:0]       hash;
  logic             frame_valid, frame_ready, release_valid, patch_valid, patch_ready;
  rx_frame_t        frame;
  logic [15:0]      release_len, patch_ptr, patch_num_buffers;
  logic [Lanes-1:0] ram_we, ram_winc;
  logic [AddrW-1:0] ram_waddr;
  logic [DataW-1:0] ram_wdata;
  logic             fifo_idle, writer_idle;

  rx_fifo #(.DataW(DataW), .RamBytes(RamBytes)) u_fifo (
    .clk_i, .rst_ni, .fn_rst_i,
    .idle_o             (fifo_idle),
    .lossless_i, .max_frame_i,
    .rx_valid_i, .rx_ready_o, .rx_last_i, .rx_abort_i, .rx_bytes_i, .rx_data_i,
    .check_ready_i      (check_ready),
    .beat_valid_o       (beat_valid),
    .beat_first_o       (beat_first),
    .beat_last_o        (beat_last),
    .beat_bytes_o       (beat_bytes),
    .beat_data_o        (beat_data),
    .mark_i             (guest_csum_i),
    .result_valid_i     (result_valid),
    .sum_ok_i           (sum_ok),
    .hash_i             (hash),
    .frame_valid_o      (frame_valid),
    .frame_ready_i      (frame_ready),
    .frame_o            (frame),
    .release_valid_i    (release_valid),
    .release_len_i      (release_len),
    .patch_valid_i      (patch_valid),
    .patch_ready_o      (patch_ready),
    .patch_ptr_i        (patch_ptr),
    .patch_num_buffers_i(patch_num_buffers),
    .ram_we_o           (ram_we),
    .ram_waddr_o        (ram_waddr),
    .ram_winc_o         (ram_winc),
    .ram_wdata_o        (ram_wdata),
    .drop_short_o, .drop_long_o, .drop_abort_o, .drop_full_o
  );

  rx_check #(.DataW(DataW)) u_check (
    .clk_i, .rst_ni,
    .clr_i         (fn_rst_i),
    .ready_o       (check_ready),
    .beat_valid_i  (beat_valid),
    .beat_first_i  (beat_first),
    .beat_last_i   (beat_last),
    .beat_bytes_i  (beat_bytes),
    .beat_data_i   (beat_data),
    .result_valid_o(result_valid),
    .sum_ok_o      (sum_ok),
    .hash_o        (hash)
  );

  lane_ram #(.DataW(DataW), .Bytes(RamBytes)) u_ram (
    .clk_i,
    .we_i   (ram_we),
    .waddr_i(ram_waddr),
    .winc_i (ram_winc),
    .wdata_i(ram_wdata),
    .re_i   (ram_re_i),
    .raddr_i(ram_raddr_i[AddrW-1:0]),
    .rinc_i (ram_rinc_i),
    .rdata_o(ram_rdata_o)
  );
  if (AddrW < WordW) begin : g_wrap
    logic unused; // addresses wrap at the size of the RAM
    assign unused = ^ram_raddr_i[WordW-1:AddrW];
  end

  rx_writer #(.RxWaitCycles(RxWaitCycles), .MaxBuffers(MaxBuffers)) u_writer (
    .clk_i, .rst_ni, .fn_rst_i, .pause_i,
    .idle_o             (writer_idle),
    .stalled_o,
    .pairs_in_use_i, .mrg_rxbuf_i, .driver_ok_i, .lossless_i,
    .frame_valid_i      (frame_valid),
    .frame_ready_o      (frame_ready),
    .frame_i            (frame),
    .release_valid_o    (release_valid),
    .release_len_o      (release_len),
    .patch_valid_o      (patch_valid),
    .patch_ready_i      (patch_ready),
    .patch_ptr_o        (patch_ptr),
    .patch_num_buffers_o(patch_num_buffers),
    .buf_req_valid_o, .buf_req_ready_i, .buf_req_q_o,
    .seg_valid_i, .seg_ready_o, .seg_i,
    .buf_commit_o, .buf_commit_q_o, .buf_rewind_o, .buf_rewind_q_o, .buf_avail_i,
    .wr_cmd_valid_o, .wr_cmd_ready_i, .wr_cmd_o, .wr_done_i,
    .used_valid_o, .used_ready_i, .used_o,
    .event_o, .drop_nobuf_o, .drop_other_o
  );

  assign idle_o = writer_idle && (pause_i || fifo_idle);
endmodule
