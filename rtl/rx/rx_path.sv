// SPDX-License-Identifier: Apache-2.0 WITH SHL-2.1
//
// Receive path: frames from the wire to buffers in host memory.
//
//   wire -> rx_fifo (store and forward, with rx_steer beside it) -> rx_writer -> dma_write
//                    \-> frame RAM -----------------------------------> RAM read port
//
// The function reset `fn_rst_i` may come at any moment, for one cycle or more: all frames are thrown
// away, a frame that is half in is swallowed to its end. With `pause_i` what was begun ends by
// itself, no new buffer is asked for, and `idle_o` rises; frames in the FIFO stay there.
//
// The walker is asked for one buffer at a time. After an answer with `err` neither commit nor rewind
// follows; after `none` a rewind does. Commit and rewind never come in one cycle.
module rx_path
  import ferronic_pkg::*;
#(
  parameter int unsigned DataW = 64,
  parameter int unsigned RamBytes = (DataW >= 256) ? 32768 : 16384,
  parameter int unsigned RxWaitCycles = 12500,
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
endmodule
